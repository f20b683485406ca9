"""A chart of figures with their intervals: a row for each suite, a dot for each encoder, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 640, 110, 24, 16, 34, 30
TICKS = range(0, 101, 20)

Interval = tuple[float, float, float]  # value, low, high


def interval_chart(rows: Mapping[str, Sequence[Interval]], names: Sequence[str]) -> str:
    """Draw figures in per cent; each row has one for each name."""
    step = ROW * (len(names) + 1)
    height = TOP + step * len(rows) + BOTTOM
    marks = [
        f'<line x1="{_across(x):.1f}" x2="{_across(x):.1f}" y1="{TOP}" y2="{height - BOTTOM}" '
        f'stroke="#ddd"/><text x="{_across(x):.1f}" y="{height - 12}" text-anchor="middle">{x} %'
        "</text>"
        for x in TICKS
    ]
    for place, name in enumerate(names):
        colour = COLOURS[place % len(COLOURS)]
        x = LEFT + place * (WIDTH - LEFT) / len(names)
        marks.append(
            f'<circle cx="{x:.1f}" cy="14" r="4" fill="{colour}"/>'
            f'<text x="{x + 8:.1f}" y="18">{escape(name)}</text>'
        )
    for number, (label, figures) in enumerate(rows.items()):
        top = TOP + step * number + ROW / 2
        middle = top + ROW * (len(names) - 1) / 2 + 4
        marks.append(f'<text x="6" y="{middle:.1f}">{escape(label)}</text>')
        for place, (value, low, high) in enumerate(figures):
            colour, y = COLOURS[place % len(COLOURS)], top + ROW * place
            marks.append(
                f'<line x1="{_across(low):.1f}" x2="{_across(high):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{colour}" stroke-width="2"/>'
                f'<circle cx="{_across(value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12">{"".join(marks)}</svg>\n'
    )


def _across(value: float) -> float:
    return LEFT + value / 100 * (WIDTH - LEFT - RIGHT)
