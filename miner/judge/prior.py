"""From the judge's scores to probabilities, by what a run itself shows.

The judge's score of a pair is the log of how much likelier its features are in a right pair than in
a wrong one. How likely the pair is right depends on how many of all pairs are, too: that share is
estimated from the scores by expectation maximisation (Saerens, Latinne & Decaestecker 2002). And
corpora differ in how much alike their wrong pairs are: in news, sentences that are no translations
of each other have less in common than in manuals. So ``slope`` and ``shift`` of the log
odds are estimated, too, which takes scores that are known to be of wrong pairs
(``miner.judge.left_out``): the exponential tilt model of a mixture (Qin 1999). Where a run has few,
both stay near 1 and 0.

All here is about the pairs that a run has chosen: of each sentence, its best candidate. Axes: ``P``
pairs; ``B`` bins of scores, ascending.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

LIKELY = 0.5  # the probability from which a pair is more likely right than wrong
BINS = 64  # of a unit of the score, in which scores are counted
# How much the slope is held near 1 and the shift near 0: the inverses of their variances.
HELD_SLOPE, HELD_SHIFT = 1.0, 0.1
SLOPES = 0.7, 2.0  # or one left-out that is right after all, a story told twice, would decide
MAX_STEP = 0.25  # of either at a time: Newton's own may lead away where both groups are far apart
MAX_ALIKE = 0.25
# Estimates and probabilities are rounded to these, by which no two processors' exp differ.
ESTIMATE, PROBABILITY = 2.0**-10, 2.0**-20
_STEPS = 300


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """The log odds of a pair of score s to be right are ``slope`` s + ``shift`` + ``prior``.

    ``prior`` is the log odds of the share of right pairs. ``alike`` is the share of pairs known to
    be wrong that look right, where these could not be used.
    """

    slope: float = 1.0
    shift: float = 0.0
    prior: float = 0.0
    alike: float | None = None

    @classmethod
    def estimated(
        cls, blocks: Iterable[FloatArray], wrong: FloatArray | None = None
    ) -> Probabilities:
        """Estimate from all scores, in blocks, and from some, (D,), of pairs known to be wrong.

        These are not used where over ``MAX_ALIKE`` of them look right: where translated sentences
        have near-copies, and are not like others then.
        """
        counted: Counter[int] = Counter()
        for scores in blocks:
            counted.update(np.floor(scores * BINS).astype(np.int64).tolist())
        found = cls._fitted(counted, Counter())
        if wrong is None or not len(wrong):
            return found
        alike = float((found.of_scores(wrong) >= LIKELY).mean())
        if alike > MAX_ALIKE:
            return replace(found, alike=alike)
        return cls._fitted(counted, Counter(np.floor(wrong * BINS).astype(np.int64).tolist()))

    @classmethod
    def _fitted(cls, counted: Counter[int], known: Counter[int]) -> Probabilities:
        bins = sorted({*counted, *known})
        found = _tilted(
            np.array(bins, dtype=np.float64) / BINS,
            np.array([counted[one] for one in bins], dtype=np.float64),
            np.array([known[one] for one in bins], dtype=np.float64),
        )
        slope, shift, prior = (round(one / ESTIMATE) * ESTIMATE for one in found)
        return cls(slope=slope, shift=shift, prior=prior)

    @property
    def share(self) -> float:
        """The share of all pairs that is right."""
        return 1 / (1 + math.exp(-self.prior))

    def of_scores(self, scores: FloatArray) -> FloatArray:
        """Return how likely each of P pairs is right, from 0 to 1."""
        chances = _logistic(self.slope * scores + self.shift + self.prior)
        rounded: FloatArray = np.rint(chances / PROBABILITY) * PROBABILITY
        return rounded


def _logistic(odds: FloatArray) -> FloatArray:
    chances: FloatArray = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
    return chances


def _tilted(
    scores: FloatArray, counts: FloatArray, wrong: FloatArray
) -> tuple[float, float, float]:
    """Return slope, shift and prior by expectation maximisation.

    Args:
        scores: float64 (B,).
        counts: how many pairs have each, float64 (B,).
        wrong: the same of pairs known to be wrong; slope and shift are estimated if there are any.
    """
    slope, shift, share, pairs = 1.0, 0.0, 0.5, float(counts.sum())
    for _ in range(_STEPS):
        likely = _logistic(slope * scores + shift + math.log(share / (1 - share)))
        before, share = (slope, shift, share), (float((counts * likely).sum()) + 0.5) / (pairs + 1)
        if wrong.any():
            # In the pooled sample, right pairs are fewer than among all pairs.
            odds = math.log(share * pairs / ((1 - share) * pairs + wrong.sum()))
            slope, shift = _step(scores, counts + wrong, counts * likely, (slope, shift, odds))
        now = slope, shift, share
        if all(abs(one - two) < 1e-7 * share for one, two in zip(now, before, strict=True)):
            break
    return slope, shift, math.log(share / (1 - share))


def _step(
    scores: FloatArray,
    counts: FloatArray,
    right: FloatArray,
    now: tuple[float, float, float],
) -> tuple[float, float]:
    """Return slope and shift after a step of Newton's method for logistic regression."""
    slope, shift, odds = now
    chances = _logistic(slope * scores + shift + odds)
    rest, spread = right - counts * chances, counts * chances * (1 - chances)
    slopes = float((rest * scores).sum()) - HELD_SLOPE * (slope - 1)
    shifts = float(rest.sum()) - HELD_SHIFT * shift
    curve = float((spread * scores * scores).sum()) + HELD_SLOPE
    mixed, flat = float((spread * scores).sum()), float(spread.sum()) + HELD_SHIFT
    scale = curve * flat - mixed * mixed
    steps = (slopes * flat - shifts * mixed) / scale, (shifts * curve - slopes * mixed) / scale
    shorter = min(1.0, *(MAX_STEP / max(abs(step), MAX_STEP) for step in steps))
    slope, shift = slope + shorter * steps[0], shift + shorter * steps[1]
    return min(max(slope, SLOPES[0]), SLOPES[1]), shift


def count_kept(scores: FloatArray, wrong: FloatArray, rule: str, limit: float) -> int:
    """Return how many of the best-first pairs a rule keeps; pairs that score alike stay together.

    Args:
        scores: float64 (P,).
        wrong: float64 (P,), how likely each is wrong.
        rule: what ``limit`` is of: ``fdr``, ``threshold``, ``probability``, or ``all``.
        limit: the share of wrong pairs, the score, or the probability to keep to.
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
