"""Charts as SVG, drawn in a field of 640 x 260; colours are the page's, by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 24, 38
TICKS = 5
HOVERS = 40  # points of a line whose values a mouse finds

Points = Sequence[tuple[float, float]]


class Chart:
    """A field with axes from ``x`` and ``y``, (least, largest), that marks are drawn into.

    Heights are as ``scale`` says: with a square root, what is few can be seen beside what is many.
    """

    def __init__(
        self,
        *,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        labels: tuple[str, str],
        scale: Callable[[float], float] = float,
    ) -> None:
        self._x, self._y, self._scale = x, y, scale
        self._marks: list[str] = []
        self._title = title
        self._axes(labels)

    def bars(self, counts: Sequence[float], *, css: str) -> None:
        """Draw bars side by side over the whole width."""
        low, high = self._x
        step = (high - low) / len(counts)
        base = self._at(low, self._y[0])[1]
        for place, count in enumerate(counts):
            x, y = self._at(low + place * step, count)
            width = self._at(low + (place + 1) * step, 0)[0] - x
            self._marks.append(
                f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{max(0.5, width - 1):.1f}" '
                f'height="{max(0, base - y):.1f}"><title>{low + place * step:.4g} to '
                f"{low + (place + 1) * step:.4g}: {count:,g}</title></rect>"
            )

    def line(self, points: Points, *, css: str) -> None:
        """Draw a line through points."""
        path = " ".join("{:.1f},{:.1f}".format(*self._at(x, y)) for x, y in points)
        self._marks.append(f'<polyline class="{css}" points="{path}"/>')
        for x, y in points[:: max(1, len(points) // HOVERS)]:
            across, down = self._at(x, y)
            self._marks.append(
                f'<circle class="hover" cx="{across:.1f}" cy="{down:.1f}" r="5"><title>'
                f"{x:.4g}: {y:.4g}</title></circle>"
            )

    def dots(self, points: Points, *, css: str) -> None:
        """Draw a dot for each point."""
        for x, y in points:
            across, down = self._at(x, y)
            self._marks.append(
                f'<circle class="{css}" cx="{across:.1f}" cy="{down:.1f}" r="1.6">'
                f"<title>{x:g}, {y:g}</title></circle>"
            )

    def upright(self, x: float, *, css: str, label: str) -> None:
        """Draw a vertical line with a label at its head."""
        across, _ = self._at(x, 0)
        self._marks.append(
            f'<line class="{css}" x1="{across:.1f}" x2="{across:.1f}" y1="{TOP}" '
            f'y2="{HEIGHT - BOTTOM}"/><text x="{across + 4:.1f}" y="{TOP + 10}">{escape(label)}'
            "</text>"
        )

    def svg(self) -> str:
        """Return the whole chart."""
        title = escape(self._title)
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
            f"<title>{title}</title>{''.join(self._marks)}</svg>"
        )

    def _at(self, x: float, y: float) -> tuple[float, float]:
        low, high = map(self._scale, self._y)
        across = (x - self._x[0]) / (self._x[1] - self._x[0])
        up = (self._scale(y) - low) / (high - low)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    def _axes(self, labels: tuple[str, str]) -> None:
        for y in ticks(*self._y):
            _, down = self._at(self._x[0], y)
            self._marks.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down:.1f}" '
                f'y2="{down:.1f}"/><text class="end" x="{LEFT - 6}" y="{down + 4:.1f}">{y:g}</text>'
            )
        for x in ticks(*self._x):
            across, _ = self._at(x, self._y[0])
            self._marks.append(
                f'<text class="middle" x="{across:.1f}" y="{HEIGHT - 20}">{x:g}</text>'
            )
        self._marks.append(
            f'<text class="middle" x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 3}">{escape(labels[0])}'
            f'</text><text x="2" y="14">{escape(labels[1])}</text>'
        )


def ticks(low: float, high: float) -> list[float]:
    """Return at most ``TICKS`` + 1 round numbers from ``low`` to ``high``: of 1, 2 or 5."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]
