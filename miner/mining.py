"""Mine pairs of vectors in memory, in one call."""

import numpy as np
from numpy.typing import ArrayLike

from miner.arrays import Pairs
from miner.choices import MARGINS, RETRIEVALS, check_choice
from miner.knn.exact import search_both
from miner.selection import candidate_pairs, select


def mine(
    source: ArrayLike,
    target: ArrayLike,
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: float = -np.inf,
) -> Pairs:
    """Mine translation pairs from two sets of sentence vectors held in memory.

    Args:
        source: vectors (N, D) of any scale. A side without rows gives no pairs.
        target: vectors (M, D).
        k: neighbourhood size.
        margin: ``ratio``, ``distance``, ``absolute`` or ``csls``.
        retrieval: ``max``, ``intersect``, ``forward`` or ``backward``.
        threshold: keep pairs that score strictly above it.

    Returns:
        Pairs, best first; ids are row positions.

    Raises:
        ValueError: an unknown margin or retrieval, k below 1, dimensions that differ, vectors that
            are not two-dimensional or not real, or rows that are zero or not finite.
    """
    check_choice("margin", margin, MARGINS)
    check_choice("retrieval", retrieval, RETRIEVALS)
    forward, backward = search_both(source, target, k=k)
    ids = {"source_ids": np.arange(len(forward)), "target_ids": np.arange(len(backward))}
    candidates = candidate_pairs(forward, backward, **ids, margin=margin)
    return select(candidates, retrieval=retrieval, threshold=threshold)
