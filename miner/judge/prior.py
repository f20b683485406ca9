"""Probabilities from the judge's scores, fitted to each run.

The judge's score of a pair is the log of how much likelier its features are in a correct pair than
in a wrong one. The probability also depends on the share of correct pairs, and corpora differ. So
the scores of a run are fitted by two distributions, of wrong and of correct pairs, each a peak with
exponential sides: a mixture of asymmetric Laplace distributions (Kotz, Kozubowski & Podgórski
2001). From 2 units above their peak, wrong pairs decay at a separate rate: the mean excess over a
threshold (Pickands 1975). From there to the peak of the correct pairs, the log odds of a pair are
linear in its score. Peaks, rates and shares are estimated by expectation maximisation from all
scores of the run, from leave-one-out pairs, and from prior pairs, which decide in small runs.

A leave-one-out pair is the best pair of a sentence after its probable translation is removed. It is
wrong, and was found like other wrong pairs, on the same subject and among the same near-copies.
Only the best candidate of each sentence counts. Axes: ``P`` pairs; ``B`` bins of scores, ascending;
``Q`` sentences of likely pairs, ``K`` neighbours of each.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Neighbours
from miner.margin import margin_scores

LIKELY = 0.5  # the probability from which a pair is more likely right than wrong
BINS_PER_UNIT = 16  # bins per unit of the score
MAX_SCORE = 16  # bins are between this and its negative
SCORES = (np.arange(-MAX_SCORE * BINS_PER_UNIT, MAX_SCORE * BINS_PER_UNIT) + 0.5) / BINS_PER_UNIT
MIN_MEAN_DISTANCE = 0.25 / BINS_PER_UNIT  # from a peak, in units: of pairs spread over a bin
# From the place of a reference peak to the least and greatest of a run's, in units: of wrong pairs
# and of correct ones, whose words match worse in languages that the judge has not learned from.
SHIFTS = (-1.5, 1.5), (-5.0, 1.5)
TAIL_OFFSET = 2.0  # units from the peak of wrong pairs to the start of their tail
PRIOR_WRONG_PAIRS = 10.0  # weight of the reference peak of wrong pairs
PRIOR_CORRECT_PAIRS = 10.0  # weight of the reference peak of correct pairs
PRIOR_LEAVE_ONE_OUT_PAIRS = 400.0  # weight of LOOKALIKE_RATE
LEAVE_ONE_OUT_WEIGHT = 2.0  # of a wrong leave-one-out pair, relative to another wrong pair
LOOKALIKE_RATE = 0.0005  # share of sentences without a translation that have a lookalike
MAX_LOOKALIKE_RATE = 0.25  # share of leave-one-out pairs from which a run warns
# Estimates and probabilities are rounded to these, by which no two processors' exp differ.
ESTIMATE, PROBABILITY = 2.0**-10, 2.0**-20
_STEPS = 200
MIN_PAIRS, MAX_PAIRS = 200, 1000  # whose sentences have leave-one-out pairs
NO_SCORES = np.empty(0)


class Peak(NamedTuple):
    """An asymmetric Laplace distribution of scores.

    Its log density rises by ``rise`` per unit of score up to ``place``, and then falls by ``fall``.
    """

    place: float
    rise: float
    fall: float

    @property
    def height(self) -> float:
        """The log of the density at the place."""
        return math.log(self.rise * self.fall / (self.rise + self.fall))

    def log_densities(self) -> FloatArray:
        """Return the log density at each bin of ``SCORES``, float64 (B,)."""
        away = SCORES - self.place
        return self.height - np.where(away > 0, self.fall, -self.rise) * away


Peaks = tuple[Peak, Peak]  # of wrong and of correct pairs


def fit_peak(counts: FloatArray, least: float = -math.inf, most: float = math.inf) -> Peak:
    """Fit a peak to the scores of pairs in bins by maximum likelihood.

    ``counts``, (B,), are pairs per bin of ``SCORES``, not all 0. The place is the centre of a bin
    from ``least`` to ``most``, which must contain one. See Kotz et al. 2001, section 3.5.
    """
    sums, total = np.cumsum(counts), counts.sum()
    moments = np.cumsum(counts * SCORES)
    below = np.maximum((SCORES * sums - moments) / total, MIN_MEAN_DISTANCE)
    above = np.maximum((moments[-1] - moments - SCORES * (total - sums)) / total, MIN_MEAN_DISTANCE)
    is_allowed = (SCORES >= least) & (SCORES <= most)
    roots = np.where(is_allowed, np.sqrt(below) + np.sqrt(above), np.inf)
    at = int(np.argmin(roots))
    both = math.sqrt(below[at] * above[at])
    return Peak(float(SCORES[at]), 1 / (below[at] + both), 1 / (above[at] + both))


class Tail(NamedTuple):
    """An exponential tail of scores above ``start``.

    ``share`` is its share of all pairs, and ``fall`` its rate of decay per unit of score.
    """

    start: float
    share: float
    fall: float

    @property
    def height(self) -> float:
        """The log of the density at the start."""
        return math.log(self.share * self.fall)

    def log_densities(self, peak: Peak) -> FloatArray:
        """Return log densities (B,), of ``peak`` up to ``start``, then the tail's."""
        above = SCORES - self.start
        return np.where(above > 0, self.height - self.fall * above, peak.log_densities())


def fit_tail(counts: FloatArray, start: float) -> Tail:
    """Fit an exponential tail to the pairs with scores above ``start``.

    ``counts``, float64 (B,), are pairs per bin of ``SCORES``, some above ``start``. A ``start``
    above the last bin but one is lowered to it.
    """
    start = min(start, float(SCORES[-2]))
    above = np.maximum(SCORES - start, 0)
    pairs = counts[above > 0].sum()
    return Tail(start, pairs / counts.sum(), pairs / (counts * above).sum())


def count_scores(scores: FloatArray) -> FloatArray:
    """Count finite scores per bin of ``SCORES``, outliers in the outer bins."""
    bins = np.floor(scores * BINS_PER_UNIT).astype(np.int64) + MAX_SCORE * BINS_PER_UNIT
    inside = bins.clip(0, len(SCORES) - 1)
    return np.bincount(inside, minlength=len(SCORES)).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """Probabilities that pairs are correct, by their scores.

    The probability of a score s is ``most`` / (1 + exp(-(``slope`` s + ``shift``))). ``share`` is
    the estimated share of correct pairs, and ``alike`` the share of leave-one-out (wrong) pairs
    with a probability of at least ``LIKELY``, 0.5.
    """

    slope: float = 1.0
    shift: float = 0.0
    most: float = 1.0
    share: float = 0.0
    alike: float = 0.0

    @classmethod
    def fit(cls, peaks: Peaks, blocks: Iterable[FloatArray], wrong: FloatArray = NO_SCORES) -> Self:
        """Fit probabilities to the scores of a run.

        ``peaks`` are the reference peaks of wrong and correct pairs, and ``blocks`` arrays of the
        scores of all pairs. ``wrong``, (N,), are the scores of leave-one-out pairs, maybe none.
        """
        counts = sum(map(count_scores, blocks), np.zeros(len(SCORES)))
        tail, right, right_or_alike = _fit_mixture(peaks, counts, count_scores(wrong))
        share = max(0.0, (right_or_alike - LOOKALIKE_RATE) / (1 - LOOKALIKE_RATE))
        shift = right.height - tail.height - right.rise * right.place - tail.fall * tail.start
        parameters = {
            "slope": right.rise + tail.fall,
            "shift": shift + math.log(right_or_alike / (1 - right_or_alike)),
            "most": share / right_or_alike,
            "share": share,
        }
        rounded = cls(**{name: round(x / ESTIMATE) * ESTIMATE for name, x in parameters.items()})
        likely = rounded.predict(wrong) >= LIKELY
        return replace(rounded, alike=float(likely.sum() / max(1, len(likely))))

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of P scores, float64 (P,), from 0 to ``most``."""
        chances = self.most * logistic(self.slope * scores + self.shift)
        return np.rint(chances / PROBABILITY) * PROBABILITY


def logistic(odds: FloatArray) -> FloatArray:
    """Return the probabilities, 0 to 1, of log odds of any shape."""
    return 1 / (1 + np.exp(-np.clip(odds, -700, 700)))


def _fit_mixture(peaks: Peaks, counts: FloatArray, known: FloatArray) -> tuple[Tail, Peak, float]:
    """Fit a tail of wrong pairs, a peak of correct ones, and its share."""
    below, above = (peak.log_densities() for peak in peaks)
    dense, pairs = np.exp([below, above]), [[PRIOR_WRONG_PAIRS], [PRIOR_CORRECT_PAIRS]]
    before = dense * (pairs / dense.sum(axis=1, keepdims=True))
    limits = np.add(SHIFTS, [[peak.place] for peak in peaks])
    right, share, alike = peaks[1], 0.1, LOOKALIKE_RATE
    for _ in range(_STEPS):
        log_odds = above - below
        correct_weights = counts * logistic(log_odds + math.log(share / (1 - share)))
        known_weights = known * logistic(log_odds + math.log(alike / (1 - alike)))
        last = right.place, share
        share = float(correct_weights.sum() + 0.5) / float(counts.sum() + 1)
        alike = float(known_weights.sum() + LOOKALIKE_RATE * PRIOR_LEAVE_ONE_OUT_PAIRS) / float(
            known.sum() + PRIOR_LEAVE_ONE_OUT_PAIRS
        )
        known_wrong = LEAVE_ONE_OUT_WEIGHT * (known - known_weights)
        others = before[0] + counts - correct_weights + known_wrong
        wrong = fit_peak(others, *limits[0])
        alike_or_right = before[1] + correct_weights + known_weights
        right = fit_peak(alike_or_right, *limits[1])
        tail = fit_tail(others, wrong.place + TAIL_OFFSET)
        below, above = tail.log_densities(wrong), right.log_densities()
        if right.place == last[0] and abs(share - last[1]) < 1e-7 * share:
            break
    return tail, right, share


def count_kept(scores: FloatArray, wrong: FloatArray, rule: str, limit: float) -> int:
    """Count the pairs that a rule keeps, which are the first pairs.

    ``scores``, (P,), are descending, and ``wrong``, (P,), ascending probabilities of being wrong.
    The rule ``fdr``, like any unknown one, keeps the most pairs with a mean of ``wrong`` up to
    ``limit``, those with equal scores together. ``threshold`` keeps scores above ``limit``,
    ``probability`` pairs correct with at least this probability, and ``all`` ignores it.
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


def sample_likely_pairs(probabilities: FloatArray) -> IntArray:
    """Sample at most 1,000 evenly spaced pairs with probabilities from 0.5.

    ``probabilities``, (P,), are descending. If fewer than 200 are 0.5 or more, the first 200 pairs,
    or all, are the sample. The result has the pairs' positions, int64, ascending.
    """
    count = max(int((probabilities >= LIKELY).sum()), min(len(probabilities), MIN_PAIRS))
    return np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)


class LeaveOneOutPairs(NamedTuple):
    """Pairs of sentences whose translation was removed, in arrays (N,).

    ``queries`` are positions among the Q sentences, ``rows`` the rows of the other side that these
    sentences are paired with, and ``cosine`` the cosines. ``own_mean`` and ``other_mean`` are the
    neighbourhood means of the sentence and of the row.
    """

    queries: IntArray
    rows: IntArray
    cosine: FloatArray
    own_mean: FloatArray
    other_mean: FloatArray


def leave_one_out_pairs(
    partners: IntArray,
    lists: Neighbours,
    other_means: FloatArray,
    mined: FloatArray,
    *,
    margin: str,
) -> LeaveOneOutPairs:
    """Return the best pair of each sentence after its partner is removed.

    The neighbour after the last of a list is unknown, so the mean without the partner uses the last
    cosine twice. A sentence has no pair if it has no other neighbours, or if the best of them has a
    mined pair of at least the same margin. Pairs are by ascending position of the sentence.
    ``partners`` (Q,) are the rows that sentences are paired with, and ``lists`` (Q, K) their
    neighbours, K at least 1. ``other_means`` (Q, K) are the neighbourhood means of the neighbours,
    and ``mined`` (Q, K) the highest margins of their mined pairs, -inf if none. Raises ValueError
    if ``margin`` is not one of ``miner.margin.MARGINS``.
    """
    is_neighbour = lists.ids != NO_NEIGHBOUR
    is_other = is_neighbour & (lists.ids != partners[:, None])
    cosines = np.where(is_neighbour, lists.cosines, 0).astype(np.float64)
    counts = is_neighbour.sum(axis=1)
    last = cosines[np.arange(len(lists)), np.maximum(counts - 1, 0)]
    sums = (cosines * is_other).sum(axis=1) + (counts - is_other.sum(axis=1)) * last
    means = sums / np.maximum(counts, 1)
    scores, own = np.full(is_other.shape, -np.inf), np.broadcast_to(means[:, None], is_other.shape)
    means_of_pairs = own[is_other], other_means[is_other]
    scores[is_other] = margin_scores(lists.cosines[is_other], *means_of_pairs, margin=margin)
    best = np.arange(len(lists)), scores.argmax(axis=1)
    queries = np.flatnonzero(scores[best] > np.maximum(mined[best], -np.finfo(float).max))
    at = queries, best[1][queries]
    return LeaveOneOutPairs(queries, lists.ids[at], cosines[at], means[queries], other_means[at])
