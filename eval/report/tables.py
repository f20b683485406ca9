"""Tables of a run's report, which the page's template lays out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eval.runs.store import Run
from miner.arrays import JudgedPairs


class Grid(NamedTuple):
    """Headings and rows of cells; the first ``texts`` columns may be written right to left."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 0


def pair_table(run: Run, places: Sequence[int]) -> Grid:
    """Return a table of the pairs at some places, with texts, scores and ids."""
    pairs = run.pairs.take(np.array(places, dtype=np.int64))
    texts = run.source.pair_texts(pairs.source), run.target.pair_texts(pairs.target)
    ids = run.source.pair_ids(pairs.source), run.target.pair_ids(pairs.target)
    scores = {run.score_name: pairs.score}
    if isinstance(pairs, JudgedPairs):
        scores["margin"] = pairs.margin
    shown = [[f"{score:.4f}" for score in column.tolist()] for column in scores.values()]
    both_ids = ["\n".join([*own, *others]) for own, others in zip(*ids, strict=True)]
    rows = list(zip(*texts, *shown, both_ids, strict=True))
    return Grid(["source", "target", *scores, "ids"], rows, texts=2)


def context_table(run: Run, source: int, target: int) -> Grid:
    """Return a table of a pair of rows with the sentences around them; empty without documents."""
    rows = (run.source, source), (run.target, target)
    around = [side.context(row) for side, row in rows]
    sides = [
        (before, side.text(row), after)
        for (side, row), (before, after) in zip(rows, around, strict=True)
    ]
    shown = list(zip(*sides, ("before", "pair", "after"), strict=True))
    heads = ["source", "target", "in its documents"]
    return Grid(heads, shown if any(map(any, around)) else [], texts=2)
