"""The numbers of a run's report, and its charts, which the page's template draws in 640 x 260.

Axes: ``P`` pairs, ``B`` bins, ``U`` points of a curve.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.metrics.bootstrap import FloatArray
from eval.metrics.bucc import BuccScore, Judgements, score_at

Points = Sequence[tuple[float, float]]

BINS, CURVE_POINTS, DECILES, TICKS = 60, 200, 10, 5
WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 24, 38


def histogram(scores: FloatArray, *, low: float, high: float, bins: int = BINS) -> list[int]:
    """Count scores in bins of equal width; those outside are in the first or the last one: (B,)."""
    counts, _ = np.histogram(np.clip(scores, low, high), bins=bins, range=(low, high))
    found: list[int] = counts.tolist()
    return found


def spread(scores: FloatArray) -> tuple[float, float]:
    """Return the scores that a chart goes from and to, which are never the same."""
    low, high = float(scores.min()), float(scores.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def gold_curve(judgements: Judgements) -> list[BuccScore]:
    """Score at thresholds between the least and the largest score, ascending: (U,)."""
    thresholds = np.linspace(*spread(judgements.scores), CURVE_POINTS, endpoint=False).tolist()
    return [score_at(judgements, threshold) for threshold in thresholds]


def hubs(lists: NDArray[np.int64], *, most: int) -> list[tuple[int, int]]:
    """Return up to ``most`` rows that most lists hold, and how many: largest first, ties by row."""
    order = np.argsort(-lists, kind="stable")[:most]
    return [(row, int(lists[row])) for row in order.tolist() if lists[row]]


def decile_ranks(pairs: int) -> list[int]:
    """Return a position in the middle of each tenth of ``pairs``, without repetition."""
    middles = [int((decile + 0.5) / DECILES * pairs) for decile in range(DECILES)]
    return sorted({min(rank, pairs - 1) for rank in middles}) if pairs else []


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A field with axes from ``x`` and ``y``, (least, largest), and marks in it.

    Heights are as ``scale`` says: with a square root, what is few can be seen beside what is many.
    Marks have their class: ``bars``, counts side by side over the whole width; ``lines`` through
    points. ``uprights`` are vertical lines at a place, with a label.
    """

    title: str
    labels: tuple[str, str]
    x: tuple[float, float] = (0, 1)
    y: tuple[float, float] = (0, 1)
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
