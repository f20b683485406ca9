"""Exact k nearest neighbours in both directions, of all rows or within pairs of documents.

Forward and backward search need the same matrix of similarities, which is computed once: as a table
where it fits one, else tile by tile (``miner.knn.tiled``). Axes: ``N`` source rows, ``M`` target
rows, ``D`` dimensions.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from miner.arrays import FloatArray, IntArray, Matrix, Neighbours
from miner.choices import check_choice
from miner.knn.core.codes import PRECISIONS, Precision
from miner.knn.core.rescore import (
    MAX_SIMILARITIES,
    best,
    check_search,
    checked_vectors,
    merge_some,
    search_table,
    unit_rows,
)
from miner.knn.tiled import Progress, search_tiles
from miner.threads import blocks

BLOCK_ROWS = 1024  # looked at together for equal ones
# From this share of repeated rows on, distinct rows are searched; fewer cost less than their copy.
MIN_DUPLICATE_SHARE = 1 / 20


class UniqueRows(NamedTuple):
    """Which of N rows are equal, and searched once: G groups, in the order of their first rows.

    ``first`` (G,) is the position of each group's first row, ``group`` (N,) each row's group;
    ``members`` (N,) are the rows by group, then position; those of group g lie from ``start[g]`` to
    ``start[g + 1]``.
    """

    first: IntArray
    group: IntArray
    members: IntArray
    start: IntArray


def search_both(
    source: ArrayLike,
    target: ArrayLike,
    *,
    k: int,
    precision: Precision | None = None,
    progress: Progress = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest targets of each source and the k nearest sources of each target.

    Exact: the result is that of a full sort by (cosine descending, position ascending), whatever
    the threads, the precision and the machine.

    Args:
        source: vectors of any scale, real numbers (N, D); a side may be empty.
        target: vectors (M, D).
        k: neighbours of each row; clipped to the size of the other side.
        precision: of the product; affects speed, never results (default: fastest here). bfloat16
            needs torch, and so does int8 if the CPU has no set of ``miner.instructions``.
        progress: called with the number of similarities computed so far, in parts.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions.

    Raises:
        ValueError: vectors that are not two-dimensional, not real, not finite or zero, k below 1,
            sides of different dimensions, or an unknown precision.
    """
    sides = [checked_vectors(source, "source"), checked_vectors(target, "target")]
    check_search(*sides, k=k)
    units = [unit_rows(side) for side in sides]
    return search_unit_rows(*units, k=k, precision=precision, progress=progress)


def search_unit_rows(
    source: Matrix,
    target: Matrix,
    *,
    k: int,
    precision: Precision | None = None,
    progress: Progress = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """Do as ``search_both`` with rows as ``miner.knn.core.rescore.unit_rows`` makes them.

    They are not looked at: rows of another length, or that are not finite, give nonsense.
    """
    check_search(source, target, k=k)
    k = min(k, max(len(source), len(target), 1))
    if precision:
        check_choice("precision", precision, PRECISIONS)
    if len(source) * len(target) <= MAX_SIMILARITIES:
        found = search_table(source, target, k=k)
        progress(len(source) * len(target))
        return found
    rows, columns = find_distinct(source), find_distinct(target)
    if not (_repetitive(rows) or _repetitive(columns)):
        return search_tiles(source, target, k=k, precision=precision, progress=progress)
    repeats = len(source) * len(target) / max(1, len(rows.first) * len(columns.first))
    forward, backward = search_tiles(
        source[rows.first],
        target[columns.first],
        k=k,
        precision=precision,
        progress=lambda products: progress(round(products * repeats)),
    )
    return (
        expand(forward, rows, columns, k=min(k, len(target))),
        expand(backward, columns, rows, k=min(k, len(source))),
    )


def _repetitive(rows: UniqueRows) -> bool:
    return len(rows.first) < (1 - MIN_DUPLICATE_SHARE) * len(rows.group)


def search_documents(
    source: Matrix,
    target: Matrix,
    documents: Iterable[tuple[IntArray, IntArray]],
    *,
    k: int,
    progress: Progress = lambda similarities: None,
) -> tuple[Neighbours, Neighbours]:
    """Do as ``search_unit_rows`` within pairs of documents, such as articles on one subject.

    A row's neighbours are those in the documents paired with its own, the local mining of Schwenk
    et al. 2021, "WikiMatrix: Mining 135M Parallel Sentences in 1620 Language Pairs from Wikipedia";
    ids are -1 where these have fewer rows. ``documents`` are the rows of the one and of the other
    of each pair, ascending: a document may be in many pairs, a pair of rows in one alone.
    """
    check_search(source, target, k=k)
    forward = Neighbours.empty(len(source), min(k, len(target)))
    backward = Neighbours.empty(len(target), min(k, len(source)))
    for rows, columns in documents:
        ahead, back = search_unit_rows(source[rows], target[columns], k=k)
        merge_some(forward, rows, Neighbours(ids=columns[ahead.ids], cosines=ahead.cosines))
        merge_some(backward, columns, Neighbours(ids=rows[back.ids], cosines=back.cosines))
        progress(len(rows) * len(columns))
    return forward, backward


def find_distinct(rows: Matrix) -> UniqueRows:
    """Group equal unit rows (N, D); reads them once, and again those that seem to be equal."""
    order = np.argsort(keys := _keys(rows), kind="stable")
    ordered = keys[order]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    leader = order[np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))]
    for block in blocks(len(rows), BLOCK_ROWS):  # an equal key may be chance
        repeated = block.start + np.flatnonzero(~new[block])
        differ = (rows[order[repeated]] != rows[leader[repeated]]).any(axis=1)
        leader[repeated[differ]] = order[repeated[differ]]
    leaders = np.empty(len(rows), dtype=np.int64)
    leaders[order] = leader
    first, group, counts = np.unique(leaders, return_inverse=True, return_counts=True)
    start = np.concatenate([[0], np.cumsum(counts)])
    return UniqueRows(first, group, members=np.argsort(group, kind="stable"), start=start)


def _keys(rows: Matrix) -> FloatArray:
    """Return a number for each row, equal for equal rows.

    Unit rows are multiples of 2**-26, so their products with integers of 20 bits are exact up to
    4,096 dimensions, and nearly always equal past that: where it is not, equal rows stay apart.
    """
    weights = np.random.default_rng(0).integers(1 << 20, size=rows.shape[1]).astype(np.float64)
    keys = np.empty(len(rows))
    for block in blocks(len(rows), BLOCK_ROWS):
        keys[block] = rows[block] @ weights
    return keys


def expand(found: Neighbours, queries: UniqueRows, base: UniqueRows, *, k: int) -> Neighbours:
    """Return the k neighbours of all rows from those of each distinct one, ids among distinct ones.

    Those k groups hold the k nearest rows, for whatever is in another group comes after the first
    row of each of theirs; of the group at place p, at most the first k - p rows count.
    """
    parts = [
        _expand(found.take(block), base, k) for block in blocks(max(1, len(found)), BLOCK_ROWS)
    ]
    return Neighbours(
        ids=np.concatenate([part.ids for part in parts])[queries.group],
        cosines=np.concatenate([part.cosines for part in parts])[queries.group],
    )


def _expand(found: Neighbours, base: UniqueRows, k: int) -> Neighbours:
    counts = np.diff(base.start)
    members = [(place, m) for place in range(found.ids.shape[1]) for m in range(k - place)]
    room = Neighbours.empty(len(found), max(k, len(members)))
    for slot, (place, member) in enumerate(members):
        group = found.ids[:, place]
        there = np.flatnonzero(member < counts[group])
        room.ids[there, slot] = base.members[base.start[group[there]] + member]
        room.cosines[there, slot] = found.cosines[there, place]
    return best(room, k=k)
