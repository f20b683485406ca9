"""What to expect of the pairs above a threshold, from nothing but the scores of all pairs.

By the two groups that the scores fall into (``miner.two_groups``). Axes: ``B`` bins, ascending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.fdr import pooled
from miner.two_groups import Histogram, TwoGroups, converged, fit_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

RESAMPLES = 200
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What is estimated of the pairs in each bin of ``histogram``, by ``groups``.

    ``wrong`` (B,) is how many in each bin and above are expected to be wrong; ``rates`` (B,) the
    least share of wrong pairs of any threshold that keeps a bin; ``probabilities`` (B,) how likely
    a pair of each bin is right.
    """

    histogram: Histogram
    groups: TwoGroups
    wrong: FloatArray
    rates: FloatArray
    probabilities: FloatArray

    @classmethod
    def fitted(cls, histogram: Histogram) -> Calibration:
        """To the scores of all pairs that were mined.

        Raises:
            ValueError: nothing can be estimated.
        """
        groups = fit_groups(histogram)
        kept = histogram.kept
        wrong = np.minimum(kept[0] * groups.above(histogram.edges[:-1]), kept)
        used = np.flatnonzero(histogram.counts)[::-1]  # best first
        likely = 1 - pooled(np.diff(wrong[used], prepend=0.0), histogram.counts[used])
        return cls(
            histogram=histogram,
            groups=groups,
            wrong=wrong,
            rates=np.minimum.accumulate(wrong / np.maximum(kept, 1)),
            probabilities=np.interp(np.arange(len(kept)), used[::-1], likely[::-1]),
        )

    @classmethod
    def of(cls, scores: FloatArray) -> Calibration:
        """The same, of an array of scores in any order."""
        ends = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)
        histogram = Histogram.empty(*ends)
        histogram.add(scores)
        return cls.fitted(histogram)

    def threshold(self, rate: float) -> float:
        """The lowest that keeps at most this share of wrong pairs; infinite if none does.

        Pairs that score strictly above it are kept.
        """
        bins = np.flatnonzero((self.rates <= rate) & (self.histogram.kept > 0))
        if not len(bins):
            return math.inf
        return float(np.nextafter(self.histogram.edges[bins[0]], -np.inf))

    def probability(self, scores: FloatArray) -> FloatArray:
        """How likely each pair is right."""
        likely: FloatArray = self.probabilities[self.histogram.bins(scores)]
        return likely

    def expected(self, threshold: float) -> Expected:
        """What to expect of the pairs above a threshold that ``threshold`` returned."""
        first = int(np.searchsorted(self.histogram.edges, threshold))
        if first >= len(self.wrong):
            return Expected(pairs=0, wrong=0.0, share=0.0, interval=(0.0, 0.0))
        kept = self.histogram.kept[first]
        return Expected(
            pairs=int(kept),
            wrong=float(self.wrong[first]),
            share=float(self.wrong[first] / kept),
            interval=_interval(self.histogram, self.groups, first),
        )


@dataclass(frozen=True, kw_only=True)
class Expected:
    """How many of some pairs are expected to be wrong, their share, and its 95 % interval.

    The interval has what chance does to the fit and to the number of wrong pairs; not that the
    model may be wrong.
    """

    pairs: int
    wrong: float
    share: float
    interval: tuple[float, float]


def _interval(histogram: Histogram, groups: TwoGroups, first: int) -> tuple[float, float]:
    """Of the share of wrong pairs from a bin on, by fits to resampled pairs."""
    random = np.random.default_rng(RESAMPLES)
    shares, edge = [], histogram.edges[first : first + 1]
    for _ in range(RESAMPLES):
        sample = Histogram(
            counts=random.poisson(histogram.counts).astype(float), edges=histogram.edges
        )
        _, fitted = converged(sample, groups)
        wrong = random.poisson(sample.counts.sum() * fitted.above(edge)[0])
        shares.append(min(1.0, wrong / histogram.kept[first]))
    low, high = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
