"""A second score for the pairs of a finished run, learned from those that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eval.runs.gold import Gold
from eval.runs.pairs import write_jsonl
from eval.runs.store import Run
from miner.rescoring import Rescorer, features
from miner.storage.places import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

FOLDS = 5
KEPT = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """The second scores of P pairs, float64 (P,).

    ``unseen`` are those that models give which were trained on the other four fifths of the pairs,
    by which a second score can be held against the first.
    """

    scores: Scores
    unseen: Scores


def rescore(run: Run, gold: Gold) -> Rescored:
    """Train on all pairs of a run: the known ones are right, all others are taken for wrong.

    A few right ones among these do no harm: the model's order of pairs stays the same if the known
    ones are a random part of the right ones (Elkan & Noto 2008).

    Raises:
        ValueError: no known pair was mined.
    """
    known, right = features(run.pairs, run.suspects), gold.judgements.correct
    fold = np.arange(len(right)) % FOLDS
    unseen = np.empty(len(right))
    for number in range(FOLDS):
        model = Rescorer.trained(known[fold != number], right[fold != number])
        unseen[fold == number] = model.scores(known[fold == number])
    return Rescored(scores=Rescorer.trained(known, right).scores(known), unseen=unseen)


def compare(run: Run, gold: Gold, rescored: Rescored) -> list[tuple[float, int, int, int]]:
    """Return for each share of pairs kept: it, how many these are, the known by either score."""
    rows = []
    for share in KEPT:
        kept = int(share * len(run.pairs))
        found = [
            int(gold.judgements.correct[np.argsort(-scores, kind="stable")[:kept]].sum())
            for scores in (run.pairs.score, rescored.unseen)
        ]
        rows.append((share, kept, found[0], found[1]))
    return rows


def write_rescored(run: Run, rescored: Rescored, path: Place) -> None:
    """Write the pairs as JSON lines, best first by the second score, and with the run's scores.

    Raises:
        OutputError: the file cannot be written.
    """
    order = np.argsort(-rescored.scores, kind="stable")
    figures = {"score": rescored.scores, "margin": run.margins}
    if run.by_words:
        figures["aligned_score"] = run.pairs.score
    write_jsonl(run, path, order, figures)
