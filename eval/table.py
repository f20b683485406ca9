"""Tables for the terminal: a label on the left, figures in columns under their headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LABEL_WIDTH = 10
LEAST_WIDTH = 9

Cell = float | int | str | tuple[float, float] | None


@dataclass(frozen=True)
class Table:
    """Headings of the label and of the columns.

    Cells that are floats are fractions from 0 to 1, shown in percent; a pair of floats is an
    interval of them; None is an empty cell; all else is shown as it is.
    """

    label: str
    columns: Sequence[str]

    @property
    def header(self) -> str:
        """The first line."""
        return self._line(self.label, self.columns)

    def row(self, label: str, *cells: Cell) -> str:
        """A line with a cell for each column; columns without a cell stay empty."""
        return self._line(label, [_shown(cell) for cell in cells])

    def _line(self, label: str, cells: Sequence[str]) -> str:
        widths = [max(LEAST_WIDTH, len(column) + 2) for column in self.columns]
        shown = (f" {cell:>{width - 1}}" for cell, width in zip(cells, widths, strict=False))
        return (label.ljust(LABEL_WIDTH) + "".join(shown)).rstrip()


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{100 * cell:.2f}"
        case (low, high):
            return f"{100 * low:.2f}-{100 * high:.2f}"
        case _:
            return str(cell)
