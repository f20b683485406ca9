"""Semantic textual similarity: do people and vectors agree on how alike two sentences are?

Pearson's r between scores of people and the angular similarity of the vectors, 1 - arccos(cos) / pi
(Cer et al. 2018, "Universal Sentence Encoder", equation 1; Chidambaram et al. 2019, section 3.5).
Axes: ``P`` pairs, ``D`` dim, ``R`` resamples.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def angular_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> FloatArray:
    """Return 1 - angle / pi of the rows of two float32 (P, D) of unit rows: float64 (P,), 0 to 1.

    A zero row is at a right angle to everything.
    """
    cosines = np.einsum("pd,pd->p", first.astype(np.float64), second.astype(np.float64))
    similarity: FloatArray = 1 - np.arccos(np.clip(cosines, -1, 1)) / np.pi
    return similarity


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
