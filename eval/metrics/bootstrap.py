"""The percentile bootstrap: how far a figure would move on another sample of the same kind.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13. Every figure here is a
function of sums over independent units (sentences): an error rate of a count, F1 of four counts,
Pearson's r of moments. So a unit is a row of numbers, and a resample a sum of rows.
Axes: ``U`` units, ``C`` numbers of each, ``R`` resamples.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Interval = tuple[float, float]

RESAMPLES = 1000
SIGNED = f"bootstrap-{RESAMPLES}"  # what a signature says of an interval


def resampled(
    units: FloatArray, statistic: Callable[[FloatArray], FloatArray], *, stream: int = 0
) -> FloatArray:
    """Compute a statistic of sums (R, C) of resampled units (U, C), U at least 1: float64 (R,).

    Data sets with the same sentences share a ``stream`` of random numbers, so that the same
    sentences are drawn of each and their mean moves as one; others must not.
    """
    random = np.random.default_rng([RESAMPLES, stream])
    sums = np.empty((RESAMPLES, units.shape[1]))
    for row in sums:
        row[:] = units[random.integers(len(units), size=len(units))].sum(axis=0)
    return statistic(sums)


def interval(samples: FloatArray) -> Interval:
    """Return the 95 % interval: percentiles 2.5 and 97.5 of resampled figures."""
    low, high = np.percentile(samples, (2.5, 97.5))
    return float(low), float(high)


def moments(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return what ``pearson`` needs of each pair: float64 (P, 6), taken about the means of all."""
    a, b = x - x.mean(), y - y.mean()
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b], axis=1)


def pearson(sums: FloatArray) -> FloatArray:
    """Return Pearson's r from sums (R, 6) of ``moments``: (R,), 0 where a side does not vary."""
    n, a, b, aa, bb, ab = sums.T
    below = np.sqrt(np.maximum(n * aa - a * a, 0) * np.maximum(n * bb - b * b, 0))
    r: FloatArray = np.divide(n * ab - a * b, below, out=np.zeros_like(below), where=below > 0)
    return r
