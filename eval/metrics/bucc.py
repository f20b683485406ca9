"""Scoring mined pairs against gold: precision, recall and F1, at a threshold or at the best one.

The task is that of the BUCC workshops (Zweigenbaum, Sharoff & Rapp 2017, 2018): two lists of
sentences with ids, some of them translations of each other; a system returns scored id pairs.

Three rules differ from the scripts in circulation, because those make a figure depend on accident:

* A threshold cannot part equal scores, so candidates with the same score stand or fall together.
* A sentence that occurs more than once has several ids. A candidate stands for all of them, and is
  correct if any combination is gold.
* A gold pair is found once, however many candidates have it, and an id pair that comes twice
  counts once, with its best score.

Axes: ``P`` candidates, ``U`` distinct scores.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IdPair = tuple[str, str]
Ids = tuple[str, ...]
Scores = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """P candidate pairs; a ValueError says which score is NaN or -inf, as none could keep it.

    ``scores`` is float64 (P,). ``sources[p]`` and ``targets[p]`` hold every id of the candidate's
    two texts; the first of each names the candidate.
    """

    scores: Scores
    sources: Sequence[Ids]
    targets: Sequence[Ids]

    def __post_init__(self) -> None:
        assert len(self.scores) == len(self.sources) == len(self.targets)
        bad = np.flatnonzero(np.isnan(self.scores) | (self.scores == -np.inf))
        if len(bad):
            raise ValueError(
                f"candidate {bad[0] + 1} has the score {self.scores[bad[0]]}; "
                "scores must be numbers above -inf"
            )

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, positions: Sequence[int]) -> "Candidates":
        """Return the candidates at some positions, in that order."""
        return Candidates(
            scores=self.scores[positions],
            sources=[self.sources[position] for position in positions],
            targets=[self.targets[position] for position in positions],
        )

    def name(self, position: int) -> IdPair:
        """Return the id pair that the candidate at ``position`` is counted and written as."""
        return self.sources[position][0], self.targets[position][0]


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """P ranked candidates held against gold.

    ``scores`` is float64 (P,), best first; ``correct`` bool (P,); ``found`` int64 (P,), the gold
    pairs that no better candidate found already; ``gold`` the number of gold pairs.
    """

    scores: Scores
    correct: NDArray[np.bool_]
    found: NDArray[np.int64]
    gold: int


@dataclass(frozen=True, kw_only=True)
class BuccScore:
    """The score of the candidates strictly above ``threshold``.

    ``extracted`` counts those candidates, ``correct`` the correct ones among them, ``found`` the
    gold pairs they find (``correct``, but where sentences repeat) and ``gold`` all gold pairs.
    Shares of nothing are 0.
    """

    threshold: float
    extracted: int
    correct: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        """Correct candidates among those extracted."""
        return self.correct / self.extracted if self.extracted else 0.0

    @property
    def fdr(self) -> float:
        """Wrong candidates among those extracted."""
        return 1 - self.precision if self.extracted else 0.0

    @property
    def recall(self) -> float:
        """Gold pairs found among all."""
        return self.found / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        below = self.correct * self.gold + self.found * self.extracted
        return (2 * self.correct * self.found) / below if self.correct else 0.0


def rank(candidates: Candidates) -> Candidates:
    """Sort best first, ties in the order given; an id pair that comes again is dropped."""
    first: dict[IdPair, int] = {}
    for position in np.argsort(-candidates.scores, kind="stable").tolist():
        first.setdefault(candidates.name(position), position)
    return candidates.take(list(first.values()))


def judge(ranked: Candidates, gold: Collection[IdPair]) -> Judgements:
    """Hold the candidates from ``rank`` against gold, no pair of which comes twice."""
    targets_of: defaultdict[str, set[str]] = defaultdict(set)
    for source, target in gold:
        targets_of[source].add(target)
    correct = np.zeros(len(ranked), dtype=np.bool_)
    found = np.zeros(len(ranked), dtype=np.int64)
    already: set[IdPair] = set()
    for position, (sources, targets) in enumerate(zip(ranked.sources, ranked.targets, strict=True)):
        known = targets_of.keys() & sources
        hits = {(own, other) for own in known for other in targets_of[own].intersection(targets)}
        correct[position], found[position] = bool(hits), len(hits - already)
        already |= hits
    return Judgements(scores=ranked.scores, correct=correct, found=found, gold=len(gold))


def score_at(judgements: Judgements, threshold: float) -> BuccScore:
    """Score the candidates strictly above ``threshold``."""
    extracted = _above(judgements.scores, threshold)
    return BuccScore(
        threshold=threshold,
        extracted=extracted,
        correct=int(judgements.correct[:extracted].sum()),
        found=int(judgements.found[:extracted].sum()),
        gold=judgements.gold,
    )


def best_score(judgements: Judgements) -> BuccScore:
    """Score at the threshold with the best F1; of several, at the highest.

    The threshold is halfway between the last score kept and the first one dropped, just below the
    last where all are kept, and inf (keep nothing) where no candidate is correct.
    """
    scores = judgements.scores
    following = np.append(scores, -np.inf)[1:]
    extracted_u = np.flatnonzero(scores != following) + 1
    correct_u = np.cumsum(judgements.correct, dtype=np.int64)[extracted_u - 1]
    found_u = np.cumsum(judgements.found, dtype=np.int64)[extracted_u - 1]
    # One division of whole numbers: equal F1 values are equal floats, so ties are true ties.
    below = correct_u * judgements.gold + found_u * extracted_u
    f1_u = 2 * correct_u * found_u / np.maximum(below, 1)
    if not f1_u.any():
        return score_at(judgements, math.inf)
    last = int(extracted_u[f1_u.argmax()]) - 1
    return score_at(judgements, threshold_between(float(scores[last]), float(following[last])))


def threshold_between(kept: float, dropped: float) -> float:
    """Return a threshold below ``kept``, but not below ``dropped``, the lesser; -inf is none."""
    if dropped == -math.inf:
        return math.nextafter(kept, -math.inf)
    middle = kept / 2 + dropped / 2  # halved first: a sum could overflow
    return middle if dropped <= middle < kept else dropped  # neighbours among the floats


def extracted_pairs(ranked: Candidates, threshold: float) -> list[IdPair]:
    """Return the id pairs strictly above ``threshold``, best first, each by its first ids."""
    return [ranked.name(position) for position in range(_above(ranked.scores, threshold))]


def _above(scores: Scores, threshold: float) -> int:
    return int(np.searchsorted(-scores, -threshold, side="left"))
