"""What to expect of the pairs above a threshold, from nothing but the run itself.

By the two groups that the scores of all pairs fall into (``miner.two_groups``), which say how many
pairs are wrong, and by how the scores of these fall off (``miner.wrong_tail``), of which some is
seen in what certain pairs' sentences would be paired with if their translations were not there.
Axes: ``B`` bins, ascending; ``D`` scores of sentences without their translation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.fdr import MIN_DECOYS, pooled
from miner.two_groups import Histogram, TwoGroups, converged, fit_groups
from miner.wrong_tail import WrongTail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

# In standard deviations of the wrong pairs' scores; medians are 0.6 apart at most in those sets.
MAX_SHIFT = 1.0
RESAMPLES = 200
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What is estimated of the pairs in each bin of ``histogram``, by ``groups`` and ``left_out``.

    ``left_out`` (D,) are the scores of sentences without their translation that could be used.
    ``wrong`` (B,) is how many in each bin and above are expected to be wrong; ``rates`` (B,) the
    least share of wrong pairs of any threshold that keeps a bin; ``probabilities`` (B,) how likely
    a pair of each bin is right.
    """

    histogram: Histogram
    groups: TwoGroups
    left_out: FloatArray
    wrong: FloatArray
    rates: FloatArray
    probabilities: FloatArray

    @classmethod
    def fitted(cls, histogram: Histogram, left_out: FloatArray | None = None) -> Calibration:
        """Fit to the scores of all pairs that were mined, and to some without their translation.

        Raises:
            ValueError: nothing can be estimated.
        """
        groups = fit_groups(histogram)
        kept = histogram.kept
        decoys = _usable(left_out, groups)
        tail = WrongTail.fitted(histogram, groups, decoys)
        wrong = np.minimum(kept[0] * tail.above(histogram.edges[:-1]), kept)
        used = np.flatnonzero(histogram.counts)[::-1]  # best first
        likely = 1 - pooled(np.diff(wrong[used], prepend=0.0), histogram.counts[used])
        return cls(
            histogram=histogram,
            groups=groups,
            left_out=decoys,
            wrong=wrong,
            rates=np.minimum.accumulate(wrong / np.maximum(kept, 1)),
            probabilities=np.interp(np.arange(len(kept)), used[::-1], likely[::-1]),
        )

    @classmethod
    def of(cls, scores: FloatArray, left_out: FloatArray | None = None) -> Calibration:
        """Fit to arrays of scores in any order."""
        ends = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)
        histogram = Histogram.empty(*ends)
        histogram.add(scores)
        return cls.fitted(histogram, left_out)

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
            interval=self._interval(first),
        )

    def _interval(self, first: int) -> tuple[float, float]:
        """Return that of the share of wrong pairs from a bin on, by fits to resampled scores."""
        random = np.random.default_rng(RESAMPLES)
        histogram, shares = self.histogram, []
        edge = histogram.edges[first : first + 1]
        for _ in range(RESAMPLES):
            sample = Histogram(
                counts=random.poisson(histogram.counts).astype(float), edges=histogram.edges
            )
            _, fitted = converged(sample, self.groups)
            left_out = random.choice(self.left_out, len(self.left_out))
            tail = WrongTail.fitted(sample, fitted, left_out)
            wrong = random.poisson(sample.counts.sum() * tail.above(edge)[0])
            shares.append(min(1.0, wrong / histogram.kept[first]))
        low, high = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return float(low), float(high)


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


def _usable(left_out: FloatArray | None, groups: TwoGroups) -> FloatArray:
    """Return the scores if they are enough and such as wrong pairs have, else none.

    They are not where sentences that have a translation have more that is like it than others do.
    """
    if left_out is None or len(np.unique(left_out)) < MIN_DECOYS:
        return np.empty(0)
    shift = abs(float(np.median(left_out)) - groups.mean) / groups.spread
    return left_out if shift <= MAX_SHIFT else np.empty(0)
