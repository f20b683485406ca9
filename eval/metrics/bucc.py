"""Precision, recall and F1 of mined pairs against gold pairs.

The task is that of the BUCC workshops (Zweigenbaum, Sharoff & Rapp 2017, 2018). The order of lines
does not matter, because a threshold never separates equal scores. A candidate stands for all ids of
its texts, and is correct if any combination is gold. A gold pair counts once. Axes: ``P``
candidates, ``U`` distinct scores.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from miner.arrays import FloatArray, IntArray, Mask

IdPair = tuple[str, str]
Ids = tuple[str, ...]
Counts = int | IntArray | FloatArray


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """P candidate pairs with scores and ids.

    ``scores``, float64 (P,), must exceed -inf, or ValueError is raised. ``sources[p]`` and
    ``targets[p]`` are all ids of both texts of p, at least one each. The first ids name the pair.
    """

    scores: FloatArray
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
        """Return the candidates at indices ``positions``, in that order."""
        return Candidates(
            scores=self.scores[positions],
            sources=[self.sources[position] for position in positions],
            targets=[self.targets[position] for position in positions],
        )

    def name(self, position: int) -> IdPair:
        """Return the first ids of the candidate at ``position``, which name it."""
        return self.sources[position][0], self.targets[position][0]


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """Ranked candidates, compared with the gold pairs.

    Attributes:
        scores: of the candidates, float64 (P,), best first.
        correct: whether any combination of a candidate's ids is gold, bool (P,).
        new_gold: number of a candidate's gold pairs that none before it has, int64 (P,).
        gold: number of all gold pairs.
    """

    scores: FloatArray
    correct: Mask
    new_gold: IntArray
    gold: int


@dataclass(frozen=True, kw_only=True)
class BuccScore:
    """The score of the candidates that a threshold keeps.

    Attributes:
        threshold: maybe infinite.
        extracted: number of candidates that it keeps.
        correct: number of correct candidates among them.
        found: number of gold pairs among them; equals ``correct`` if no sentence is a duplicate.
        gold: number of all gold pairs.
    """

    threshold: float
    extracted: int
    correct: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of extracted candidates that are correct, 0 without any."""
        return self.correct / self.extracted if self.extracted else 0.0

    @property
    def fdr(self) -> float:
        """The share of extracted candidates that are wrong, 0 without any."""
        return 1 - self.precision if self.extracted else 0.0

    @property
    def recall(self) -> float:
        """The share of gold pairs that are extracted, 0 without gold pairs."""
        return self.found / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 0 if no pair is correct."""
        return float(f1_of(self.extracted, self.correct, self.found, self.gold))


def f1_of(extracted: Counts, correct: Counts, found: Counts, gold: Counts) -> FloatArray:
    """Compute F1 of counts, or of arrays of them, as in ``BuccScore``."""
    # One division of whole numbers, so equal F1 values are equal floats.
    return 2 * correct * found / np.maximum(correct * gold + found * extracted, 1)


def rank(candidates: Candidates) -> Candidates:
    """Sort by descending score, ties in order, and keep the best per ``name``."""
    first: dict[IdPair, int] = {}
    for position in np.argsort(-candidates.scores, kind="stable").tolist():
        first.setdefault(candidates.name(position), position)
    return candidates.take(list(first.values()))


def judge(ranked: Candidates, gold: Collection[IdPair]) -> Judgements:
    """Compare candidates from ``rank`` with distinct gold pairs of ids."""
    targets_of: defaultdict[str, set[str]] = defaultdict(set)
    for source, target in gold:
        targets_of[source].add(target)
    correct = np.zeros(len(ranked), dtype=np.bool_)
    new_gold = np.zeros(len(ranked), dtype=np.int64)
    counted: set[IdPair] = set()
    for position, (sources, targets) in enumerate(zip(ranked.sources, ranked.targets, strict=True)):
        gold_ids = targets_of.keys() & sources
        hits = {(id_, match) for id_ in gold_ids for match in targets_of[id_].intersection(targets)}
        correct[position], new_gold[position] = bool(hits), len(hits - counted)
        counted |= hits
    return Judgements(scores=ranked.scores, correct=correct, new_gold=new_gold, gold=len(gold))


def score_at(judgements: Judgements, threshold: float) -> BuccScore:
    """Score the candidates strictly above a threshold, maybe infinite."""
    extracted = _above(judgements.scores, threshold)
    return BuccScore(
        threshold=threshold,
        extracted=extracted,
        correct=int(judgements.correct[:extracted].sum()),
        found=int(judgements.new_gold[:extracted].sum()),
        gold=judgements.gold,
    )


def best_score(judgements: Judgements) -> BuccScore:
    """Score the candidates at the threshold with the best F1.

    Of several best thresholds, the highest is used. It is about halfway between the lowest kept and
    the highest dropped score, just below the lowest if all are kept, or inf if none is correct.
    """
    scores = judgements.scores
    next_scores = np.append(scores, -np.inf)[1:]
    extracted_u = np.flatnonzero(scores != next_scores) + 1
    correct_u = np.cumsum(judgements.correct, dtype=np.int64)[extracted_u - 1]
    found_u = np.cumsum(judgements.new_gold, dtype=np.int64)[extracted_u - 1]
    f1_u = f1_of(extracted_u, correct_u, found_u, judgements.gold)
    if not f1_u.any():
        return score_at(judgements, math.inf)
    last = int(extracted_u[f1_u.argmax()]) - 1
    return score_at(judgements, threshold_between(float(scores[last]), float(next_scores[last])))


def threshold_between(kept: float, dropped: float) -> float:
    """Return a threshold below ``kept`` and not below the next lower score.

    That score is ``dropped``, -inf if ``kept`` is the lowest.
    """
    if dropped == -math.inf:
        return math.nextafter(kept, -math.inf)
    middle = kept / 2 + dropped / 2  # the sum could overflow
    return middle if dropped <= middle < kept else dropped  # no float is between the two


def extracted_pairs(ranked: Candidates, threshold: float) -> list[IdPair]:
    """Return the names of ``rank``'s candidates above ``threshold``, in order."""
    return [ranked.name(position) for position in range(_above(ranked.scores, threshold))]


def _above(scores: FloatArray, threshold: float) -> int:
    return int(np.searchsorted(-scores, -threshold, side="left"))
