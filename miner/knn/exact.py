"""Find exact nearest neighbours in both directions.

Both directions need the same similarities, which are computed once: as a table if it is small, or
else in tiles (``miner.knn.tiled``). Axes: ``N`` source rows, ``M`` target rows, ``D`` dimensions.
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

BLOCK_ROWS = 1024  # compared at a time
MIN_DUPLICATE_SHARE = 1 / 20  # for fewer duplicates, copying the unique rows costs more


class UniqueRows(NamedTuple):
    """G groups of equal rows among N rows, in the order of their first rows.

    ``first`` (G,) are the first rows' positions, and ``group`` (N,) is each row's group. Group g
    has the rows ``members[start[g] : start[g + 1]]``, ascending.
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
    """Find the k nearest targets of each source, and sources of each target.

    The result is that of a sort by descending cosine, then position, on any machine and precision.
    Neighbours are (N, min(k, M)) of sources and (M, min(k, N)) of targets. Ids are positions.

    Args:
        source: vectors (N, D), real numbers of any scale. A side may be empty, (0, D).
        target: vectors (M, D), of any scale.
        k: neighbours per row, or all rows of the other side if it has fewer.
        precision: ``float32``, ``bfloat16`` or ``int8`` products (default: the fastest). It affects
            only speed. Above 2**22 pairs, ValueError says that it overflows or is wrong on this
            CPU. ModuleNotFoundError says that it needs torch, as bfloat16 does.
        progress: called with numbers of computed similarities, which sum to about N * M.

    Raises:
        ValueError: Vectors are not two-dimensional, not real, zero or not finite, k is below 1,
            dimensions differ, or the precision is unknown.
    """
    sides = [checked_vectors(source, "source"), checked_vectors(target, "target")]
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
    """Find the k nearest rows in both directions, among unit rows.

    Arguments, results and errors are as in ``search_both``, but ``source`` (N, D) and ``target``
    (M, D) must be from ``unit_rows``. That is not checked, and other rows give wrong results.
    """
    check_search(source, target, k=k)
    k = min(k, max(len(source), len(target), 1))
    if precision:
        check_choice("precision", precision, PRECISIONS)
    if len(source) * len(target) <= MAX_SIMILARITIES:
        both = search_table(source, target, k=k)
        progress(len(source) * len(target))
        return both
    rows, columns = find_distinct(source), find_distinct(target)
    least = 1 - MIN_DUPLICATE_SHARE
    if all(len(side.first) >= least * len(side.group) for side in (rows, columns)):
        return search_tiles(source, target, k=k, precision=precision, progress=progress)
    repeats = len(source) * len(target) / max(1, len(rows.first) * len(columns.first))
    forward, backward = search_tiles(
        source[rows.first],
        target[columns.first],
        k=k,
        precision=precision,
        progress=lambda products: progress(round(products * repeats)),
    )
    forward = expand(forward, rows, columns, k=min(k, len(target)))
    return forward, expand(backward, columns, rows, k=min(k, len(source)))


def search_documents(
    source: Matrix,
    target: Matrix,
    documents: Iterable[tuple[IntArray, IntArray]],
    *,
    k: int,
    progress: Progress = lambda similarities: None,
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest rows in both directions, within paired documents.

    This is the local mining of Schwenk et al. 2021, "WikiMatrix". ``source`` (N, D) and ``target``
    (M, D) are from ``unit_rows``. ``documents`` has the ascending positions of both sides' rows for
    each pair of documents. A document may be in several pairs. ``progress`` is called with numbers
    of similarities. Neighbours are (N, min(k, M)) and (M, min(k, N)). Ids are positions in a side,
    -1 if paired documents have fewer rows. Raises ValueError if ``k`` < 1 or dimensions differ.
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
    """Group equal unit rows (N, D), in rare cases in more than one group."""
    _, firsts, inverse = np.unique(_keys(rows), return_index=True, return_inverse=True)
    leaders = firsts[inverse]
    repeated = np.flatnonzero(leaders != np.arange(len(rows)))
    for block in blocks(len(repeated), BLOCK_ROWS):  # equal keys may be chance
        some = repeated[block]
        differ = (rows[some] != rows[leaders[some]]).any(axis=1)
        leaders[some[differ]] = some[differ]
    first, group, counts = np.unique(leaders, return_inverse=True, return_counts=True)
    start = np.concatenate([[0], np.cumsum(counts)])
    return UniqueRows(first, group, members=np.argsort(group, kind="stable"), start=start)


def _keys(rows: Matrix) -> FloatArray:
    """Return a number per row, equal for equal rows.

    Unit rows are multiples of 2**-26, so their products with integers of 20 bits are exact up to
    4,096 dimensions. Beyond, equal rows may rarely get different keys, which keeps them separate.
    """
    weights = np.random.default_rng(0).integers(1 << 20, size=rows.shape[1]).astype(np.float64)
    keys = np.empty(len(rows))
    for block in blocks(len(rows), BLOCK_ROWS):
        keys[block] = rows[block] @ weights
    return keys


def expand(neighbours: Neighbours, queries: UniqueRows, base: UniqueRows, *, k: int) -> Neighbours:
    """Expand neighbours among unique rows to neighbours among all rows.

    ``neighbours`` are the k nearest groups in ``base``, or all, of each group in ``queries``, none
    -1. The result has a row per row of the queries, and k columns of ids of rows, -1 if fewer.
    """
    counts, expanded = np.diff(base.start), Neighbours.empty(len(neighbours), k)
    members = [(place, m) for place in range(neighbours.ids.shape[1]) for m in range(k - place)]
    for block in blocks(len(neighbours), BLOCK_ROWS):
        groups, cosines = neighbours.ids[block], neighbours.cosines[block]
        room = Neighbours.empty(len(groups), max(k, len(members)))
        for slot, (place, member) in enumerate(members):
            group = groups[:, place]
            has_member = np.flatnonzero(member < counts[group])
            room.ids[has_member, slot] = base.members[base.start[group[has_member]] + member]
            room.cosines[has_member, slot] = cosines[has_member, place]
        found = best(room, k=k)
        expanded.ids[block], expanded.cosines[block] = found.ids, found.cosines
    return expanded.take(queries.group)
