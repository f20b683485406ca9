"""Partial whitening of a bag encoder: directions in which all sentences vary count for less.

Sentence vectors spread most along what is common to a kind of text, which says little of whether
two sentences translate each other. As a bag's vector is a sum, a linear map of sentence vectors is
a linear map of the table and costs nothing at encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


def partly_whitened(table: Matrix, vectors: Matrix, *, power: float) -> Matrix:
    """Multiply ``table`` by the covariance of ``vectors`` to the power of ``-power / 2``.

    Full whitening (power 1; Su et al. 2021, "Whitening Sentence Representations") makes all
    directions vary alike; power 0 changes nothing.

    Args:
        table: subword vectors, float32 (V, D).
        vectors: sentence vectors that the table gives, float32 (S, D).
        power: from 0 to 1.

    Returns:
        The new table, float32 (V, D).
    """
    covariance = np.cov(vectors, rowvar=False, dtype=np.float64)
    variances, directions = np.linalg.eigh(covariance)
    variances = np.maximum(variances, variances[-1] * 1e-6)  # few sentences leave some at zero
    scales = (variances / variances.mean()) ** (-power / 2)
    return np.asarray(table @ ((directions * scales) @ directions.T), dtype=np.float32)
