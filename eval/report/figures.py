"""The numbers of a run's report: pure functions over arrays.

Axes: ``P`` pairs, ``B`` bins, ``U`` points of a curve.
"""

import numpy as np
from numpy.typing import NDArray

from eval.metrics.bucc import BuccScore, Judgements, score_at

FloatArray = NDArray[np.float64]

BINS = 60
CURVE_POINTS = 200
DECILES = 10


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
    low, high = spread(judgements.scores)
    thresholds = np.linspace(low, high, CURVE_POINTS, endpoint=False).tolist()
    return [score_at(judgements, threshold) for threshold in thresholds]


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
