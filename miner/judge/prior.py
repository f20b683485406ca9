"""Probabilities from the judge's scores, fitted to each run.

The judge's score of a pair is the log of how much likelier its features are in a right pair than in
a wrong one. How likely the pair is right depends on how many of all pairs are, too; and corpora
differ in how much alike their wrong pairs are, and in how well words match in the right ones. So
the scores of a run are described as two groups, the wrong and the right pairs, each by a peak with
exponential sides: a mixture of asymmetric Laplace distributions (Kotz, Kozubowski & Podgórski
2001). Some way above their peak, where it is decided which pairs are right, the wrong ones fall at
a rate of their own: the mean excess over a threshold (Pickands 1975). From there to the peak of the
right pairs, the log odds of a pair are linear in its score. Places, rates and shares are estimated
by expectation maximisation from three sources: all scores of the run, those of pairs that are known
to be wrong, and a few pairs as they usually are, which decide where a run has few of its own.

Known to be wrong is the best that is left for a sentence without its translation. Leave out the
target of a pair that is likely right: what its source would be paired with then is a wrong pair,
found as wrong pairs are found, on the same subject and among the same near-copies.

All here is about the pairs that a run has chosen: of each sentence, its best candidate. Axes: ``P``
pairs; ``B`` bins of scores, ascending; ``Q`` sentences of likely pairs, ``K`` neighbours of each.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Neighbours
from miner.margin import margin_scores

LIKELY = 0.5  # the probability from which a pair is more likely right than wrong
BINS, MOST = 16, 16  # of a unit of the score; the greatest score, and the least below 0
SCORES = (np.arange(-MOST * BINS, MOST * BINS) + 0.5) / BINS
LEAST_MEAN = 0.25 / BINS  # distance from a place: as if spread over a bin, where all are in it
REACH = 1.5  # how far from its usual place a peak of a run may be
TAIL = 2.0  # how far above the peak of the wrong pairs their tail starts
# How many wrong and right pairs what is usual counts for, and how many known ones for ALIKE.
USUAL_WRONG, USUAL_RIGHT, USUAL_KNOWN = 20.0, 25.0, 1000.0
# Of sentences without a translation, the share that finds one that looks like it all the same.
ALIKE = 0.0005
MAX_ALIKE = 0.25  # of the pairs known to be wrong
# Estimates and probabilities are rounded to these, by which no two processors' exp differ.
ESTIMATE, PROBABILITY = 2.0**-10, 2.0**-20
_STEPS = 200
MAX_PAIRS = 1000  # more would cost time and say little more
NONE_KNOWN = np.empty(0)  # scores


class Peak(NamedTuple):
    """An asymmetric Laplace distribution by its peak and two rates."""

    place: float
    rise: float
    fall: float

    @property
    def height(self) -> float:
        """The log of the density at the place."""
        return math.log(self.rise * self.fall / (self.rise + self.fall))

    def log_densities(self) -> FloatArray:
        """Return the log densities of all bins, (B,)."""
        away = SCORES - self.place
        return self.height - np.where(away > 0, self.fall, -self.rise) * away


Peaks = tuple[Peak, Peak]  # of wrong and of right pairs


def fit_peak(counts: FloatArray, near: float = 0.0, reach: float = math.inf) -> Peak:
    """Fit a peak to pairs in bins, (B,), within ``reach`` of ``near``.

    The likelihood at a place falls with the sum of the roots of the mean distances on both sides of
    it, from which the rates follow (Kotz et al. 2001, section 3.5).
    """
    sums, total = np.cumsum(counts), counts.sum()
    moments = np.cumsum(counts * SCORES)
    below = np.maximum((SCORES * sums - moments) / total, LEAST_MEAN)
    above = np.maximum((moments[-1] - moments - SCORES * (total - sums)) / total, LEAST_MEAN)
    roots = np.where(np.abs(SCORES - near) <= reach, np.sqrt(below) + np.sqrt(above), np.inf)
    at = int(np.argmin(roots))
    both = math.sqrt(below[at] * above[at])
    return Peak(float(SCORES[at]), 1 / (below[at] + both), 1 / (above[at] + both))


class Tail(NamedTuple):
    """A tail above ``start``, with its share and its rate of decay."""

    start: float
    share: float
    fall: float

    @property
    def height(self) -> float:
        """The log of the density at the start."""
        return math.log(self.share * self.fall)

    def log_densities(self, peak: Peak) -> FloatArray:
        """Return the log densities of all bins, (B,), a peak's up to the start."""
        above = SCORES - self.start
        return np.where(above > 0, self.height - self.fall * above, peak.log_densities())


def fit_tail(counts: FloatArray, start: float) -> Tail:
    """Fit a tail to counts in bins, (B,), which contain other pairs also."""
    start = min(start, float(SCORES[-2]))
    above = np.maximum(SCORES - start, 0)
    pairs = counts[above > 0].sum()
    return Tail(start, pairs / counts.sum(), pairs / (counts * above).sum())


def count_scores(scores: FloatArray) -> FloatArray:
    """Count P scores in bins, (B,)."""
    bins = np.clip(np.floor(scores * BINS).astype(np.int64) + MOST * BINS, 0, len(SCORES) - 1)
    return np.bincount(bins, minlength=len(SCORES)).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """Probabilities that pairs are correct, by their scores.

    That of score s is ``most`` / (1 + exp(-(``slope`` s + ``shift``))).

    ``share`` of all pairs is right. ``alike`` is the share of pairs known to be wrong that are
    likely right by this.
    """

    slope: float = 1.0
    shift: float = 0.0
    most: float = 1.0
    share: float = 0.0
    alike: float = 0.0

    @classmethod
    def estimated(
        cls, usual: Peaks, blocks: Iterable[FloatArray], known: FloatArray = NONE_KNOWN
    ) -> Self:
        """Fit to all scores, in blocks, and to scores of wrong pairs, (D,).

        ``usual`` are the peaks of other runs.
        """
        counts = sum(map(count_scores, blocks), np.zeros(len(SCORES)))
        tail, right, looking = _mixture(usual, counts, count_scores(known))
        share = max(0.0, (looking - ALIKE) / (1 - ALIKE))
        shift = right.height - tail.height - right.rise * right.place - tail.fall * tail.start
        found = {
            "slope": right.rise + tail.fall,
            "shift": shift + math.log(looking / (1 - looking)),
            "most": share / looking,
            "share": share,
        }
        rounded = cls(**{name: round(one / ESTIMATE) * ESTIMATE for name, one in found.items()})
        likely = rounded.of_scores(known) >= LIKELY
        return replace(rounded, alike=float(likely.sum() / max(1, len(likely))))

    def of_scores(self, scores: FloatArray) -> FloatArray:
        """Return how likely each of P pairs is right, from 0 to 1."""
        chances = self.most * logistic(self.slope * scores + self.shift)
        return np.rint(chances / PROBABILITY) * PROBABILITY


def logistic(odds: FloatArray) -> FloatArray:
    """Return the probabilities of log odds."""
    return 1 / (1 + np.exp(-np.clip(odds, -700, 700)))


def _mixture(usual: Peaks, counts: FloatArray, known: FloatArray) -> tuple[Tail, Peak, float]:
    """Fit a tail of wrong pairs, a peak of correct ones, and its share.

    ``counts`` are pairs in bins, ``known`` those known to be wrong, of which few are where right
    ones are: (B,).
    """
    below, above = (peak.log_densities() for peak in usual)
    counted = zip(map(np.exp, (below, above)), (USUAL_WRONG, USUAL_RIGHT), strict=True)
    before = [dense * (pairs / dense.sum()) for dense, pairs in counted]
    right, share, alike = usual[1], 0.1, ALIKE
    for _ in range(_STEPS):
        apart = above - below
        looking = counts * logistic(apart + math.log(share / (1 - share)))
        known_looking = known * logistic(apart + math.log(alike / (1 - alike)))
        last = right.place, share
        share = float(looking.sum() + 0.5) / float(counts.sum() + 1)
        alike = float(known_looking.sum() + ALIKE * USUAL_KNOWN) / float(known.sum() + USUAL_KNOWN)
        others = before[0] + counts - looking + known - known_looking
        wrong = fit_peak(others, usual[0].place, REACH)
        right = fit_peak(before[1] + looking + known_looking, usual[1].place, REACH)
        tail = fit_tail(others, wrong.place + TAIL)
        below, above = tail.log_densities(wrong), right.log_densities()
        if right.place == last[0] and abs(share - last[1]) < 1e-7 * share:
            break
    return tail, right, share


def count_kept(scores: FloatArray, wrong: FloatArray, rule: str, limit: float) -> int:
    """Count the pairs that a rule keeps, the best first.

    Pairs with equal scores stay together.

    ``wrong`` (P,) is how likely each is wrong. ``limit`` is of what the rule names: ``fdr``, the
    share of wrong pairs, ``threshold``, the score, or ``probability``; ``all`` has none.
    """
    if rule == "all":
        return len(scores)
    if rule == "threshold":
        return int((scores > limit).sum())
    if rule == "probability":
        return int((wrong <= 1 - limit).sum())
    last = np.searchsorted(-scores, -scores, side="right")
    within = np.cumsum(wrong)[last - 1] <= limit * last
    return int(last[within].max(initial=0))


def likely_places(probabilities: FloatArray) -> IntArray:
    """Return positions of at most ``MAX_PAIRS`` likely pairs, best first."""
    count = int((probabilities >= LIKELY).sum())
    return np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)


class LeftPairs(NamedTuple):
    """Pairs of some of Q sentences ``queries`` with ``rows``.

    All have one value for each pair, in order: the cosine, and the means of both neighbourhoods.
    """

    queries: IntArray
    rows: IntArray
    cosine: FloatArray
    own_mean: FloatArray
    other_mean: FloatArray


def best_left(
    partners: IntArray, lists: Neighbours, theirs: FloatArray, taken: FloatArray, *, margin: str
) -> LeftPairs:
    """Return the best pair of each of Q sentences without its partner.

    The neighbour that comes after the last of a list is not known; for the mean, it is taken to be
    as near as that one. The best pair is mined unless its row has a better one.

    Args:
        partners: (Q,), the row that each sentence is paired with.
        lists: the neighbours of the sentences, with their partners where these are among them.
        theirs: (Q, K), the mean cosine of each neighbour's own neighbourhood.
        taken: (Q, K), the margin of the mined pair that each neighbour has, -inf if none.
        margin: one of ``miner.margin.MARGINS``.
    """
    there = lists.ids != NO_NEIGHBOUR
    left = there & (lists.ids != partners[:, None])
    cosines = np.where(there, lists.cosines, 0).astype(np.float64)
    last = cosines[np.arange(len(lists)), np.maximum(there.sum(axis=1) - 1, 0)]
    gone = there.sum(axis=1) - left.sum(axis=1)
    means = ((cosines * left).sum(axis=1) + gone * last) / np.maximum(there.sum(axis=1), 1)
    scores = np.full(left.shape, -np.inf)
    owners = np.broadcast_to(means[:, None], left.shape)
    scores[left] = margin_scores(lists.cosines[left], owners[left], theirs[left], margin=margin)
    best = np.arange(len(lists)), scores.argmax(axis=1)
    mined = np.flatnonzero(scores[best] > np.maximum(taken[best], -np.finfo(float).max))
    at = mined, best[1][mined]
    return LeftPairs(mined, lists.ids[at], cosines[at], means[mined], theirs[at])
