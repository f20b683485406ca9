"""Tables of a run's report, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from eval.runs.store import Run
from miner.arrays import JudgedPairs


def pair_table(run: Run, places: Sequence[int]) -> str:
    """Return a table of the pairs at some places, with texts, scores and ids."""
    pairs = run.pairs.take(np.array(places, dtype=np.int64))
    texts = run.source.pair_texts(pairs.source), run.target.pair_texts(pairs.target)
    ids = run.source.pair_ids(pairs.source), run.target.pair_ids(pairs.target)
    scores = {run.score_name: pairs.score}
    if isinstance(pairs, JudgedPairs):
        scores["margin"] = pairs.margin
    shown = [[f"{score:.4f}" for score in column.tolist()] for column in scores.values()]
    both_ids = ["\n".join([*own, *others]) for own, others in zip(*ids, strict=True)]
    rows = [list(row) for row in zip(*texts, *shown, both_ids, strict=True)]
    return table(["source", "target", *scores, "ids"], rows, texts=2)


def context_table(run: Run, source: int, target: int) -> str:
    """Return a table of a pair of rows with the sentences around them; "" without documents."""
    rows = (run.source, source), (run.target, target)
    around = [side.context(row) for side, row in rows]
    if not any(map(any, around)):
        return ""
    sides = [
        (before, side.text(row), after)
        for (side, row), (before, after) in zip(rows, around, strict=True)
    ]
    shown = [list(row) for row in zip(*sides, ("before", "pair", "after"), strict=True)]
    return table(["source", "target", "in its documents"], shown, texts=2)


def folded(title: str, html: str) -> str:
    """Return a section that stays closed until a reader opens it."""
    return f"<details><summary>{escape(title)}</summary>{html}</details>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 0) -> str:
    """Return a table; the first ``texts`` columns may be written right to left.

    Ids and numbers, which have no space in them, are not broken.
    """
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_kind(cell, text=column < texts)}>{escape(cell)}</td>"
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    kind = ' class="texts"' if texts else ""
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _kind(cell: str, *, text: bool) -> str:
    if text:
        return " dir=auto"
    return "" if " " in cell else " class=whole"
