"""How many of the mined pairs are wrong, estimated from nothing but their scores.

The two-groups model (Efron 2008): the scores of wrong pairs are one group, those of right ones
another. Scores by words (``miner.word_match``) are two bells with a valley between them, so both
are seen where there are enough of both. Wrong pairs are many low scores and few high ones, and it
is the high ones that count; how these fall off is ``miner.wrong_tail``'s to see.

Margins alone have no valley, and one group alone could be either: both are refused. Axes: ``B``
bins of equal width, ascending; so memory and time do not grow with the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

BINS = 4096  # a group of scores is some hundred bins wide
MIN_PAIRS = 100
# In standard deviations between the means of both groups. The BUCC-style sets have 4.5 to 5.6;
# parallel texts (NTREX, Tatoeba) 2.2 to 3.3; of texts without translations some have more, where
# the second group is a few pairs only (six languages, 2026-11-22; docs/scores.md).
MIN_SEPARATION = 3.0
_STARTS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)  # the share of wrong pairs the fit begins with
_MAX_STEPS = 500


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How many scores lie in each of B bins: ``counts`` is float64 (B,), ``edges`` (B + 1,)."""

    counts: FloatArray
    edges: FloatArray

    @classmethod
    def empty(cls, lowest: float, highest: float) -> Histogram:
        """Bins for scores from ``lowest`` to ``highest``."""
        return cls(counts=np.zeros(BINS), edges=np.linspace(lowest, highest, BINS + 1))

    def add(self, scores: FloatArray) -> None:
        """Count some scores."""
        np.add.at(self.counts, self.bins(scores), 1)

    def bins(self, scores: FloatArray) -> NDArray[np.int64]:
        """The bin of each score; those beyond the ends are in the first and last."""
        found = np.searchsorted(self.edges, scores, side="right") - 1
        return np.clip(found, 0, len(self.counts) - 1)

    @property
    def centres(self) -> FloatArray:
        """The middle of each bin, (B,)."""
        middles: FloatArray = (self.edges[:-1] + self.edges[1:]) / 2
        return middles

    @property
    def kept(self) -> FloatArray:
        """How many pairs there are in each bin and above, (B,)."""
        sums: FloatArray = self.counts[::-1].cumsum()[::-1]
        return sums


@dataclass(frozen=True, kw_only=True)
class TwoGroups:
    """``wrong``, a share of all pairs, score ``mean`` on average, the others ``right_mean``.

    ``spread`` is the standard deviation in both groups.
    """

    wrong: float
    mean: float
    right_mean: float
    spread: float

    @property
    def separation(self) -> float:
        """How far the groups are apart, in standard deviations."""
        return (self.right_mean - self.mean) / self.spread


def fit_groups(histogram: Histogram) -> TwoGroups:
    """The two groups of the greatest likelihood, by expectation maximisation.

    Raises:
        ValueError: there are too few pairs, or no two groups can be told apart.
    """
    pairs = int(histogram.counts.sum())
    if pairs < MIN_PAIRS:
        raise ValueError(
            f"{pairs} pairs are too few to estimate how many are wrong; "
            f"at least {MIN_PAIRS} are needed"
        )
    fits = [converged(histogram, start) for start in _starts(histogram)]
    groups = max(fits, key=lambda fit: fit[0])[1] if fits else None
    if groups is None or groups.separation < MIN_SEPARATION:
        separation = groups.separation if groups else 0.0
        raise ValueError(
            f"how many of the {pairs:,} pairs are wrong cannot be estimated: their scores do not "
            f"fall into two groups (separation {separation:.2f}, at least {MIN_SEPARATION:g} is "
            "needed). Nearly all may be right, as in parallel texts, or nearly all wrong; mine "
            "without --fdr and look at some"
        )
    return groups


def _starts(histogram: Histogram) -> Iterator[TwoGroups]:
    """One group of each side of some scores."""
    x, weights = histogram.centres, histogram.counts
    share = weights.cumsum() / weights.sum()
    for start in _STARTS:
        lower = np.where(share <= start, weights, 0)
        upper = weights - lower
        if lower.any() and upper.any():
            means = float(lower @ x / lower.sum()), float(upper @ x / upper.sum())
            spread = lower @ (x - means[0]) ** 2 + upper @ (x - means[1]) ** 2
            yield TwoGroups(
                wrong=float(lower.sum() / weights.sum()),
                mean=means[0],
                right_mean=means[1],
                spread=_spread(float(spread / weights.sum()), histogram),
            )


def _spread(variance: float, histogram: Histogram) -> float:
    """At least the width of a bin, below which nothing is known."""
    return max(math.sqrt(variance), float(histogram.edges[1] - histogram.edges[0]))


def converged(histogram: Histogram, groups: TwoGroups) -> tuple[float, TwoGroups]:
    """Fit from some groups on; the mean log likelihood that the fit ends with, and its groups."""
    used = histogram.counts > 0
    x, weights = histogram.centres[used], histogram.counts[used]
    total = weights.sum()
    likelihood = -math.inf
    logs = np.empty((2, len(x)))
    for _ in range(_MAX_STEPS):
        shares, means = (groups.wrong, 1 - groups.wrong), (groups.mean, groups.right_mean)
        for log, share, mean in zip(logs, shares, means, strict=True):
            np.subtract(x, mean, out=log)
            log /= groups.spread
            np.square(log, out=log)
            log /= 2
            np.subtract(np.log(share), log, out=log)
        together = np.logaddexp(logs[0], logs[1])
        before, likelihood = likelihood, float(weights @ together / total) - math.log(groups.spread)
        logs -= together
        wrong, right = parts = np.multiply(weights, np.exp(logs, out=logs))
        sums = wrong.sum(), right.sum()
        if min(sums) < 1e-3 or likelihood - before < 1e-9:
            break
        mean, right_mean = (
            float(part @ x / count) for part, count in zip(parts, sums, strict=True)
        )
        spread = wrong @ np.square(x - mean) + right @ np.square(x - right_mean)
        groups = TwoGroups(
            wrong=float(sums[0] / total),
            mean=mean,
            right_mean=right_mean,
            spread=_spread(float(spread / total), histogram),
        )
    return likelihood, groups
