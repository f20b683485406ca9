"""Eigen-similarity: how alike the graphs of two languages' sentences are, 0 for equal spectra.

Chidambaram et al. 2019, equation 3, after Søgaard et al. 2018. Axes: ``N`` sentences, ``D`` dim.
"""

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = 10  # of a sentence, in the binary graph
GRAPHS = ("distances", "neighbours")


def spectrum(vectors: NDArray[np.float32], graph: str) -> NDArray[np.float64]:
    """Return the eigenvalues of a graph's Laplacian, L = D - A, ascending: float64 (N,).

    A holds the cosine distances (``distances``; the paper does not say what is on its edges) or 1
    where one of two sentences is among the nearest of the other (``neighbours``).

    Args:
        vectors: float32 (N, D), unit rows.
        graph: one of ``GRAPHS``.
    """
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, -np.inf if graph == "neighbours" else 1)
    if graph == "neighbours":
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
        edges = np.zeros_like(cosines)
        np.put_along_axis(edges, nearest, 1, axis=1)
        edges = np.maximum(edges, edges.T)
    else:
        edges = 1 - cosines
    values = np.linalg.eigvalsh(np.diag(edges.sum(axis=1)) - edges)
    return values.astype(np.float64)


def spectral_difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the sum of the squared differences of two spectra (N,), in order."""
    return float(np.square(np.sort(first) - np.sort(second)).sum())
