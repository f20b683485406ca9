"""What a report says of a run, in numbers: pure functions over arrays.

Axes: ``P`` pairs, ``B`` bins, ``U`` points of a curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.metrics.bucc import Judgements, score_at

FloatArray = NDArray[np.float64]

BINS = 60
CURVE_POINTS = 200
DECILES = 10


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How many scores lie in each of B bins of equal width between ``low`` and ``high``."""

    low: float
    high: float
    counts: list[int]


def histogram(scores: FloatArray, *, low: float, high: float, bins: int = BINS) -> Histogram:
    """Count scores; those outside are in the first or the last bin."""
    counts, _ = np.histogram(np.clip(scores, low, high), bins=bins, range=(low, high))
    return Histogram(low=low, high=high, counts=counts.tolist())


def spread(scores: FloatArray) -> tuple[float, float]:
    """Return the scores that a chart goes from and to, which are never the same."""
    low, high = float(scores.min()), float(scores.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Precision, recall and F1 above each of U thresholds, ascending."""

    thresholds: list[float]
    precision: list[float]
    recall: list[float]
    f1: list[float]


def gold_curve(judgements: Judgements) -> Curve:
    """Compute precision, recall and F1 at thresholds between the least and the largest score."""
    low, high = spread(judgements.scores)
    thresholds = np.linspace(low, high, CURVE_POINTS, endpoint=False).tolist()
    scores = [score_at(judgements, threshold) for threshold in thresholds]
    return Curve(
        thresholds=thresholds,
        precision=[score.precision for score in scores],
        recall=[score.recall for score in scores],
        f1=[score.f1 for score in scores],
    )


def hubs(lists: NDArray[np.int64], *, most: int) -> list[tuple[int, int]]:
    """Return at most ``most`` rows that most lists hold, and how many: largest first, ties by row.

    ``lists`` is from ``miner.filters.occurrences``.
    """
    order = np.argsort(-lists, kind="stable")[:most]
    return [(row, int(lists[row])) for row in order.tolist() if lists[row]]


def decile_ranks(pairs: int) -> list[int]:
    """Return a position in the middle of each tenth of ``pairs``, without repetition."""
    middles = [int((decile + 0.5) / DECILES * pairs) for decile in range(DECILES)]
    return sorted({min(rank, pairs - 1) for rank in middles}) if pairs else []
