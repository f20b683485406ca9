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
    """Mine translation pairs from the sentence vectors of two languages.

    Pairs are best first, ties in the order of source, then target. Ids are row positions.

    Args:
        source: vectors (N, D), real numbers of any scale. A side without rows gives no pairs.
        target: vectors (M, D), of any scale.
        k: number of nearest neighbours per sentence, whose mean cosine the margin uses.
        margin: ``ratio``, ``distance``, ``absolute`` or ``csls`` (``miner.margin``).
        retrieval: ``max``, ``intersect``, ``forward`` or ``backward`` (``miner.selection.select``).
        threshold: keep pairs with a margin above it.

    Raises:
        ValueError: The margin or retrieval is unknown, k is below 1, dimensions differ, vectors are
            not two-dimensional or not real, or a row is zero or not finite.
    """
    check_choice("margin", margin, MARGINS)
    check_choice("retrieval", retrieval, RETRIEVALS)
    forward, backward = search_both(source, target, k=k)
    ids = {"source_ids": np.arange(len(forward)), "target_ids": np.arange(len(backward))}
    candidates = candidate_pairs(forward, backward, **ids, margin=margin)
    return select(candidates, retrieval=retrieval, threshold=threshold)
