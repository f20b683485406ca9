"""A second score for the pairs of a finished run, learned from those that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eval.runs.marks import Judged
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

    ``unseen`` are, of judged pairs, those that models give which were trained on the other four
    fifths of these, by which a second score can be held against the first.
    """

    scores: Scores
    unseen: Scores


def rescore(run: Run, judged: Judged) -> Rescored:
    """Train on the judged pairs of a run; of gold these are all, and those not in it are wrong.

    A few right ones among these do no harm: the model's order of pairs stays the same if the known
    ones are a random part of the right ones (Elkan & Noto 2008).

    Raises:
        ValueError: the judged pairs are all right, or all wrong.
    """
    figures, right = features(run.pairs, run.suspects), judged.right
    known = figures[judged.places]
    scores = Rescorer.trained(known, right).scores(figures)
    unseen = scores.copy()
    fold = np.arange(len(right)) % FOLDS
    for number in range(FOLDS):
        model = Rescorer.trained(known[fold != number], right[fold != number])
        unseen[judged.places[fold == number]] = model.scores(known[fold == number])
    return Rescored(scores=scores, unseen=unseen)


def compare(run: Run, judged: Judged, rescored: Rescored) -> list[tuple[float, int, int, int]]:
    """Return for each share of pairs kept: it, how many these are, the right ones by either score.

    Only judged pairs count as right.
    """
    right = np.zeros(len(run.pairs), dtype=np.int64)
    right[judged.places] = judged.right
    rows = []
    for share in KEPT:
        kept = int(share * len(run.pairs))
        found = [
            int(right[np.argsort(-scores, kind="stable")[:kept]].sum())
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
