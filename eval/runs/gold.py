"""A run held against known pairs."""

from dataclasses import dataclass

from eval.metrics.bucc import BuccScore, IdPair, Judgements, best_score, judge, rank
from eval.runs.store import Run


@dataclass(frozen=True, kw_only=True)
class Gold:
    """The known pairs, the best that a threshold could do, and what is right of the pairs."""

    known: frozenset[IdPair]
    judgements: Judgements
    best: BuccScore

    @classmethod
    def of(cls, run: Run, known: frozenset[IdPair]) -> "Gold":
        """Hold a run against known pairs."""
        judgements = judge(rank(run.candidates()), known)
        return cls(known=known, judgements=judgements, best=best_score(judgements))
