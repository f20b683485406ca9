"""Cosines that depend on the two vectors alone, whatever found the pair.

A matrix product's last bits depend on the tile that it was computed in. Searches therefore only
propose candidates; their cosines are computed here, pair by pair and always in the same order of
summation, so that results do not change with tiles, shards or threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import NO_NEIGHBOUR, Neighbours

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_BYTES = 1 << 25  # gathered float64 vectors at a time; larger blocks fall out of the cache


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows scaled to length 1 as float32 (N, D); rows must not be zero."""
    single = np.asarray(vectors, dtype=np.float32)
    norms = np.sqrt(np.einsum("nd,nd->n", single, single, dtype=np.float64))
    return np.asarray(single / norms[:, None], dtype=np.float32)


def rescore(
    queries: NDArray[np.float32],
    base: NDArray[np.float32],
    candidates: NDArray[np.int64],
    *,
    k: int,
) -> Neighbours:
    """The best ``k`` of each row's candidates by exact cosine; ties by id, lowest first.

    Reads N * C vectors of D numbers: memory traffic bounds it.

    Args:
        queries: unit rows, (N, D).
        base: unit rows, (M, D).
        candidates: positions in ``base``, (N, C), each at most once in a row; -1 for none.
        k: neighbours to keep, at most C.
    """
    cosines = np.empty(candidates.shape, dtype=np.float32)
    rows = max(1, BLOCK_BYTES // (8 * base.shape[1] * max(1, candidates.shape[1])))
    for start in range(0, len(queries), rows):
        block = slice(start, start + rows)
        gathered = base[candidates[block]].astype(np.float64)
        cosines[block] = np.einsum("ncd,nd->nc", gathered, queries[block].astype(np.float64))
    cosines[candidates == NO_NEIGHBOUR] = -np.inf
    return best(Neighbours(ids=candidates, cosines=cosines), k=k)


def best(neighbours: Neighbours, *, k: int) -> Neighbours:
    """Sort each row by (cosine descending, id ascending) and keep the first ``k``."""
    order = np.lexsort((neighbours.ids, -neighbours.cosines), axis=1)[:, :k]
    return Neighbours(
        ids=np.take_along_axis(neighbours.ids, order, axis=1),
        cosines=np.take_along_axis(neighbours.cosines, order, axis=1),
    )


def merge(parts: list[Neighbours], *, k: int) -> Neighbours:
    """The best ``k`` over neighbours of the same rows found in disjoint parts of the other side."""
    return best(
        Neighbours(
            ids=np.concatenate([part.ids for part in parts], axis=1),
            cosines=np.concatenate([part.cosines for part in parts], axis=1),
        ),
        k=k,
    )
