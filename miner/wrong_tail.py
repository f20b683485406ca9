"""How wrong pairs' scores fall off where right pairs begin to hide them.

Above their upper quartile scores of wrong pairs fall off exponentially, near enough, and how
steeply differs from corpus to corpus: sentences of one script share names to the letter, those of
software documentation differ in a word. It is seen in two places. Between the quartile and the
first right pairs the scores are those of wrong pairs and of hardly any others. And sentences of
certain pairs without their translation (``miner.left_out``) find wrong pairs at any height.
Both are fitted as one, by expectation maximisation: pairs above that window are as many as the law
has there, whatever is seen. Axes: ``B`` bins, ascending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from miner.fdr import TAIL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from miner.two_groups import Histogram, TwoGroups

    FloatArray = NDArray[np.float64]

NORMAL = NormalDist()
CLEAR = 0.8  # the chance of being wrong that a score of the window has at least
# Before anything is seen, the tail is taken to fall as a normal one does at its upper tenth, which
# is no slower than it does further on; that counts as much as this many pairs.
PRIOR = 10
PRIOR_EXCESS = 0.1 / NORMAL.pdf(NORMAL.inv_cdf(0.9))  # in standard deviations
_MAX_STEPS = 300


@dataclass(frozen=True, kw_only=True)
class WrongTail:
    """A share of ``groups``' wrong pairs is above ``start``, by ``excess`` on average.

    Below, they are normal.
    """

    groups: TwoGroups
    start: float
    share: float
    excess: float

    @classmethod
    def fitted(cls, histogram: Histogram, groups: TwoGroups, left_out: FloatArray) -> WrongTail:
        """Fit to the pairs between the groups and to some scores without their translation.

        Args:
            histogram: of the scores of all pairs.
            groups: fitted to these.
            left_out: float64 (D,), in any order; there may be none.
        """
        known = PRIOR, PRIOR * PRIOR_EXCESS * groups.spread
        if len(left_out):
            beyond = left_out - np.quantile(left_out, TAIL)
            beyond = beyond[beyond > 0]
            known = known[0] + len(beyond), known[1] + float(beyond.sum())
        tail = cls(
            groups=groups,
            start=groups.mean + NORMAL.inv_cdf(TAIL) * groups.spread,
            share=1 - TAIL,
            excess=known[1] / known[0],
        )
        right = _right_pairs(histogram, groups)
        first = int(np.searchsorted(histogram.centres, tail.start))
        clear = tail.pairs(histogram)[first:] >= CLEAR / (1 - CLEAR) * right[first:]
        end = first + (len(clear) if clear.all() else int(clear.argmin()))
        return tail._converged(histogram, right, slice(first, end), known) if end > first else tail

    def _converged(
        self, histogram: Histogram, right: FloatArray, window: slice, known: tuple[float, float]
    ) -> WrongTail:
        """Fit from here on; ``known`` are the number and the sum of what is above other starts."""
        counts, places = histogram.counts[window], histogram.centres[window] - self.start
        width = float(histogram.edges[window.stop]) - self.start
        total, right = float(histogram.counts.sum()), right[window]
        widths = total * np.diff(histogram.edges)[window]
        tail = self
        for _ in range(_MAX_STEPS):
            law = widths * tail._density(places)
            wrong = counts * law / np.maximum(law + right, np.finfo(float).tiny)
            seen = float(wrong.sum())
            hidden = seen / math.expm1(width / tail.excess)
            pairs = seen + hidden + known[0]
            beyond = float(wrong @ places) + hidden * (width + tail.excess) + known[1]
            before, tail = (
                tail,
                WrongTail(
                    groups=self.groups,
                    start=self.start,
                    share=min(1.0, (seen + hidden) / (self.groups.wrong * total)),
                    excess=beyond / pairs,
                ),
            )
            if abs(tail.excess - before.excess) < 1e-6 * tail.excess:
                break
        return tail

    def above(self, scores: FloatArray) -> FloatArray:
        """The share of all pairs that is wrong and scores above each score."""
        distances = (scores - self.groups.mean) / self.groups.spread
        body = np.array([NORMAL.cdf(-one) for one in distances.tolist()])
        tail = self.share * np.exp(-np.maximum(0, scores - self.start) / self.excess)
        shares: FloatArray = self.groups.wrong * np.where(
            scores < self.start, np.maximum(body, self.share), tail
        )
        return shares

    def pairs(self, histogram: Histogram) -> FloatArray:
        """How many wrong pairs the tail has in each bin, (B,); meant for those above its start."""
        widths = np.diff(histogram.edges)
        density = self._density(histogram.centres - self.start)
        pairs: FloatArray = histogram.counts.sum() * widths * density
        return pairs

    def _density(self, places: FloatArray) -> FloatArray:
        falling = np.exp(-np.maximum(0, places) / self.excess)
        density: FloatArray = self.groups.wrong * self.share / self.excess * falling
        return density


def _right_pairs(histogram: Histogram, groups: TwoGroups) -> FloatArray:
    """Return how many right pairs the groups have in each bin."""
    distances = (histogram.centres - groups.right_mean) / groups.spread
    bell = np.exp(-(distances**2) / 2) / (groups.spread * math.sqrt(2 * math.pi))
    pairs: FloatArray = (
        histogram.counts.sum() * np.diff(histogram.edges) * (1 - groups.wrong) * bell
    )
    return pairs
