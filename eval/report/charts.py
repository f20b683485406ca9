"""Numbers and charts of a run's report, which a template draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eval.metrics.bucc import BuccScore, Judgements, score_at
from miner.arrays import FloatArray, IntArray

Points = Sequence[tuple[float, float]]

BINS = 60  # of a histogram
CURVE_POINTS = 200
MAX_STEPS = 5  # between the ticks of an axis
WIDTH, HEIGHT = 640, 260  # of a chart, in pixels
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 24, 38  # margins of a chart, in pixels


def histogram(scores: FloatArray, *, low: float, high: float, bins: int = BINS) -> list[int]:
    """Count scores in equal bins from ``low`` to ``high``, others in end bins."""
    counts, _ = np.histogram(np.clip(scores, low, high), bins=bins, range=(low, high))
    return list(map(int, counts))


def spread(scores: FloatArray) -> tuple[float, float]:
    """Return the lowest and highest of P > 0 scores, each 0.5 beyond if equal."""
    low, high = float(scores.min()), float(scores.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def gold_curve(judgements: Judgements) -> list[BuccScore]:
    """Score P > 0 candidates at 200 even thresholds in their ``spread``."""
    thresholds = np.linspace(*spread(judgements.scores), CURVE_POINTS, endpoint=False).tolist()
    return [score_at(judgements, threshold) for threshold in thresholds]


def hubs(lists: IntArray, *, most: int) -> list[tuple[int, int]]:
    """Return the rows that are in the most neighbour lists.

    ``lists``, int64 (N,), counts the lists that contain each row. Up to ``most`` rows come with
    this number, the highest first, ties by row. Rows in no list are omitted.
    """
    order = np.argsort(-lists, kind="stable")[:most]
    return [(row, int(lists[row])) for row in order.tolist() if lists[row]]


def decile_ranks(pairs: int) -> list[int]:
    """Return the middle index of each tenth of ``pairs``, distinct, ascending."""
    return sorted({int((decile + 0.5) / 10 * pairs) for decile in range(10)}) if pairs else []


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with two axes, which a template draws in 640 by 260 pixels.

    Attributes:
        labels: of the x axis and the y axis.
        x, y: the lowest and the highest value of the axis.
        scale: transforms heights; a square root keeps low bars visible.
        bars: histograms over the whole width, each a CSS class and the heights.
        lines: each a CSS class and the points.
        dots: points that no line joins.
        uprights: vertical lines, each a value of x and a label.
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
        """The round numbers to label on the x axis, and on the y axis."""
        return ticks(*self.x), ticks(*self.y)

    def across(self, x: float) -> float:
        """Return the distance of a value ``x`` from the left edge, in pixels."""
        return LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def down(self, y: float) -> float:
        """Return the distance of a value ``y`` from the top edge, in pixels."""
        low, high = map(self.scale, self.y)
        return HEIGHT - BOTTOM - (self.scale(y) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def ticks(low: float, high: float) -> list[float]:
    """Return up to 6 multiples of 1, 2 or 5 times 10**n between low < high."""
    rough = (high - low) / MAX_STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]
