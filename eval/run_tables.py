"""Tables of a run's report, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from eval.run_folder import Run


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
                f"{run.source.id(source)} {run.target.id(target)}",
            ]
        )
    return table(["source", "target", "score", "ids"], rows, texts=2)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 0) -> str:
    """A table; the first ``texts`` columns are in languages that may be written right to left."""
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' dir=auto' if column < texts else ''}>{escape(cell)}</td>"
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )
