"""Precision, recall and F1 of alignments of sentences, as Vecalign's score.py counts them.

Strict: a bead is right if gold has the same one. Lax: if a sentence pair in it is also in a bead
of gold. Precision counts all beads that were found, those with an empty side too; recall counts
the beads of gold that have both sides.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]

Bead = tuple[tuple[int, ...], tuple[int, ...]]
"""Positions of the source and of the target sentences, ascending."""


@dataclass(frozen=True, kw_only=True)
class BeadScore:
    """Fractions from 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 where both are 0."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def record(self) -> dict[str, float]:
        """Return the score for JSON."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


def judge_beads(found: Collection[Bead], gold: Collection[Bead]) -> Counts:
    """Return whether each different bead of ``found`` is right: 1 or 0, strict and lax, (B, 2)."""
    known = set(gold)
    partners: dict[int, set[int]] = {}
    for source, target in gold:
        for position in source:
            partners.setdefault(position, set()).update(target)
    judged = [
        (bead in known, bead in known or _overlaps(bead, partners))
        for bead in dict.fromkeys(found)
        if bead != ((), ())
    ]
    return np.array(judged, dtype=np.float64).reshape(-1, 2)


def score_beads(found: Iterable[Bead], gold: Iterable[Bead]) -> tuple[BeadScore, BeadScore]:
    """Return the strict and the lax score of an alignment."""
    found, gold = list(found), list(gold)
    precision = _shares(judge_beads(found, gold))
    recall = _shares(judge_beads(_two_sided(gold), _two_sided(found)))
    strict, lax = (
        BeadScore(precision=float(p), recall=float(r))
        for p, r in zip(precision, recall, strict=True)
    )
    return strict, lax


def _shares(judged: Counts) -> Counts:
    return judged.mean(axis=0) if len(judged) else np.zeros(2)


def _two_sided(beads: Iterable[Bead]) -> list[Bead]:
    return [bead for bead in beads if all(bead)]


def _overlaps(bead: Bead, partners: dict[int, set[int]]) -> bool:
    source, target = bead
    return any(not partners.get(position, set()).isdisjoint(target) for position in source)
