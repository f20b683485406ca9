"""Confidence intervals by the percentile bootstrap.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13. A unit, such as a sentence,
is a row of numbers. A figure is a function of sums of rows, such as F1 of four counts.
Axes: ``U`` units, ``C`` numbers per unit, ``R`` resamples, ``P`` pairs of numbers.
"""

from collections.abc import Callable

import numpy as np

from miner.arrays import FloatArray

Interval = tuple[float, float]
Statistic = Callable[[FloatArray], FloatArray]

RESAMPLES = 1000
INTERVAL_METHOD = f"bootstrap-{RESAMPLES}"  # as signatures name it


def resample(units: FloatArray, statistic: Statistic, *, stream: int = 0) -> FloatArray:
    """Compute a figure of 1,000 random resamples of units.

    A resample is the sum of U rows, drawn with repeats from ``units``, float64 (U, C) with U > 0
    and C numbers per unit. ``statistic`` maps the sums, float64 (1000, C), to the result (1000,).
    Calls with the same ``stream`` and U draw the same rows.
    """
    random = np.random.default_rng([RESAMPLES, stream])
    draws = (random.integers(len(units), size=len(units)) for _ in range(RESAMPLES))
    return statistic(np.array([units[rows].sum(axis=0) for rows in draws], dtype=np.float64))


def interval(samples: FloatArray) -> Interval:
    """Return percentiles 2.5 and 97.5, the 95% interval of ``samples`` (R,)."""
    low, high = np.percentile(samples, (2.5, 97.5))
    return float(low), float(high)


def moments(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the terms whose sums ``pearson`` needs, float64 (P, 6).

    ``x`` and ``y`` are finite, float64 (P,) with P > 0. Their means are subtracted first.
    """
    a, b = x - x.mean(), y - y.mean()
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b], axis=1)


def pearson(sums: FloatArray) -> FloatArray:
    """Compute r (R,) from sums (R, 6) of ``moments``, 0 if a side is constant."""
    n, a, b, aa, bb, ab = sums.T
    denominator = np.sqrt(np.maximum(n * aa - a * a, 0) * np.maximum(n * bb - b * b, 0))
    r: FloatArray = np.zeros_like(denominator)
    np.divide(n * ab - a * b, denominator, out=r, where=denominator > 0)
    return r
