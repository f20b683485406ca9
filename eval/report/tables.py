"""Tables of a run's report, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from eval.runs.store import Run


def pair_table(run: Run, places: Iterable[int]) -> str:
    """The pairs at some places, with texts, score and ids."""
    rows = []
    for place in places:
        source, target = int(run.pairs.source[place]), int(run.pairs.target[place])
        rows.append(
            [
                run.source.text(source),
                run.target.text(target),
                f"{float(run.pairs.score[place]):.4f}",
                ids_of(run, source, target),
            ]
        )
    return table(["source", "target", "score", "ids"], rows, texts=2)


def ids_of(run: Run, source: int, target: int) -> str:
    """The ids of a source row and a target row, in two lines."""
    return f"{run.source.id(source)}\n{run.target.id(target)}"


def folded(title: str, html: str) -> str:
    """What a reader opens if it is wanted."""
    return f"<details><summary>{escape(title)}</summary>{html}</details>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 0) -> str:
    """A table; the first ``texts`` columns are in languages that may be written right to left.

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
