"""Mining as one call over arrays: search both ways, score, select."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Pairs
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both
from miner.margin import check_margin
from miner.selection import candidate_pairs, check_retrieval, select

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mine(
    source: NDArray[np.floating],
    target: NDArray[np.floating],
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: float = -np.inf,
) -> Pairs:
    """Mine translation pairs from two sets of sentence vectors held in memory.

    Args:
        source: float (N, D); rows need not be unit vectors, but must be finite and not zero.
        target: float (M, D).
        k: neighbourhood size.
        margin: ``ratio``, ``distance``, ``absolute`` or ``csls``.
        retrieval: ``max``, ``intersect``, ``forward`` or ``backward``.
        threshold: keep pairs that score strictly above it.

    Returns:
        Pairs, best first; ids are row positions.

    Raises:
        ValueError: an unknown margin or retrieval, k below 1, dimensions that differ, or rows
            that are zero or not finite.
    """
    check_margin(margin)
    check_retrieval(retrieval)
    for side, vectors in (("source", source), ("target", target)):
        # Not the norms: of large or small numbers they overflow or vanish.
        largest = np.abs(vectors).max(axis=1, initial=0)
        bad = np.flatnonzero(~(np.isfinite(largest) & (largest > 0)))
        if len(bad):
            raise ValueError(
                f"{side} row {bad[0]} is zero or not finite ({len(bad)} such rows); "
                "leave those sentences out"
            )
    forward, backward = search_both(unit_rows(source), unit_rows(target), k=k)
    candidates = candidate_pairs(
        forward,
        backward,
        source_ids=np.arange(len(source)),
        target_ids=np.arange(len(target)),
        margin=margin,
    )
    return select(candidates, retrieval=retrieval, threshold=threshold)
