"""Charts, which the page's template draws in a field of 640 x 260; colours are the page's."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 24, 38
TICKS = 5

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A field with axes from ``x`` and ``y``, (least, largest), and marks in it.

    Heights are as ``scale`` says: with a square root, what is few can be seen beside what is many.
    Marks have their class: ``bars``, counts side by side over the whole width; ``lines`` through
    points. ``uprights`` are vertical lines at a place, with a label.
    """

    title: str
    x: tuple[float, float]
    y: tuple[float, float]
    labels: tuple[str, str]
    scale: Callable[[float], float] = float
    bars: Sequence[tuple[str, Sequence[float]]] = ()
    lines: Sequence[tuple[str, Points]] = ()
    dots: Points = ()
    uprights: Sequence[tuple[float, str]] = ()

    @property
    def ticks(self) -> tuple[list[float], list[float]]:
        """Round numbers of both axes."""
        return ticks(*self.x), ticks(*self.y)

    def across(self, x: float) -> float:
        """Return where a value is from the left."""
        return LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def down(self, y: float) -> float:
        """Return where a value is from the top."""
        low, high = map(self.scale, self.y)
        return HEIGHT - BOTTOM - (self.scale(y) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def ticks(low: float, high: float) -> list[float]:
    """Return at most ``TICKS`` + 1 round numbers from ``low`` to ``high``: of 1, 2 or 5."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]
