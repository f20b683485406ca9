"""Equal rows, searched once: their neighbours are the same, and so are they as neighbours."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Matrix, Neighbours
from miner.knn.core.rescore import best

BLOCK_ROWS = 1024


@dataclass(frozen=True, kw_only=True)
class Distinct:
    """Which of N rows are equal: G groups, in the order of their first rows.

    ``first`` (G,) is the position of each group's first row, ``group`` (N,) each row's group;
    ``members`` (N,) are the rows by group, then position; those of group g lie from ``start[g]`` to
    ``start[g + 1]``.
    """

    first: NDArray[np.int64]
    group: NDArray[np.int64]
    members: NDArray[np.int64]
    start: NDArray[np.int64]


def find_distinct(rows: Matrix) -> Distinct:
    """Group equal unit rows (N, D); reads them once, and again those that seem to be equal."""
    order = np.argsort(keys := _keys(rows), kind="stable")
    ordered = keys[order]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    leader = order[np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))]
    for start in range(0, len(rows), BLOCK_ROWS):  # an equal key may be chance
        block = slice(start, start + BLOCK_ROWS)
        repeated = start + np.flatnonzero(~new[block])
        differ = (rows[order[repeated]] != rows[leader[repeated]]).any(axis=1)
        leader[repeated[differ]] = order[repeated[differ]]
    leaders = np.empty(len(rows), dtype=np.int64)
    leaders[order] = leader
    first, group, counts = np.unique(leaders, return_inverse=True, return_counts=True)
    return Distinct(
        first=first,
        group=group,
        members=np.argsort(group, kind="stable"),
        start=np.concatenate([[0], np.cumsum(counts)]),
    )


def _keys(rows: Matrix) -> NDArray[np.float64]:
    """Return a number for each row, equal for equal rows.

    Unit rows are multiples of 2**-26, so their products with integers of 20 bits are exact up to
    4,096 dimensions, and nearly always equal past that: where it is not, equal rows stay apart.
    """
    weights = np.random.default_rng(0).integers(1 << 20, size=rows.shape[1]).astype(np.float64)
    keys = np.empty(len(rows))
    for start in range(0, len(rows), BLOCK_ROWS):
        keys[start : start + BLOCK_ROWS] = rows[start : start + BLOCK_ROWS] @ weights
    return keys


def expand(found: Neighbours, queries: Distinct, base: Distinct, *, k: int) -> Neighbours:
    """Neighbours (N, k) of all rows from the k of each distinct one, ids among distinct ones.

    Those k groups hold the k nearest rows, for whatever is in another group comes after the first
    row of each of theirs; of the group at place p, at most the first k - p rows count.
    """
    blocks = [
        _expand(found.part(slice(start, start + BLOCK_ROWS)), base, k)
        for start in range(0, max(1, len(found)), BLOCK_ROWS)
    ]
    return Neighbours(
        ids=np.concatenate([block.ids for block in blocks])[queries.group],
        cosines=np.concatenate([block.cosines for block in blocks])[queries.group],
    )


def _expand(found: Neighbours, base: Distinct, k: int) -> Neighbours:
    counts = np.diff(base.start)
    width = found.ids.shape[1]
    members = [(place, m) for place in range(width) for m in range(k - place)]
    shape = len(found), max(k, len(members))
    ids = np.full(shape, NO_NEIGHBOUR, dtype=np.int64)
    cosines = np.full(shape, -np.inf, dtype=np.float32)
    for slot, (place, member) in enumerate(members):
        group = found.ids[:, place]
        there = np.flatnonzero(member < counts[group])
        ids[there, slot] = base.members[base.start[group[there]] + member]
        cosines[there, slot] = found.cosines[there, place]
    return best(Neighbours(ids=ids, cosines=cosines), k=k)
