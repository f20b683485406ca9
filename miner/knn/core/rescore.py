"""Cosines that depend only on the two vectors.

The last bits of a float32 product depend on the tile, the threads and the machine. Searches
therefore only generate candidates, whose cosines are computed in float64 from unit rows of
multiples of 2**-26. Products of two such numbers, and all partial sums, are multiples of 2**-52
below 2, which fit into a float64's 53 bits. So the sum is exact in any order, and results do not
change with tiles, shards, threads or CPUs.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from miner.arrays import IntArray, Matrix, Neighbours
from miner.knn.core.products import loops
from miner.threads import blocks, run_in_threads

MIN_SIZE_TO_COMPILE = 1 << 21  # numbers; for fewer, loading compiled loops takes longer
BLOCK_ROWS = 1 << 12
BLOCK_BYTES = 1 << 21  # float64 vectors at a time; larger blocks fall out of the cache
MAX_SIMILARITIES = 1 << 22  # of a table; for more, loading Numba (half a second) pays
TABLE_ROWS = 1024  # of both sides, multiplied at a time
HALF = 2.0**112  # factor of float16 exponent bits read as float32
UNIT_BITS = 26  # rounding to 2**-26 moves a cosine by about 6e-9, rounding it to float32 by 2e-8


def unit_rows(
    vectors: NDArray[np.floating],
    out: Matrix | None = None,
    *,
    rows: IntArray | None = None,
    places: IntArray | None = None,
) -> Matrix:
    """Scale vectors to length 1, rounded to multiples of 2**-26.

    Args:
        vectors: real numbers (R, D). Rows must be finite and not zero, which is not checked.
        out: the float32 array to fill and return, or None for a new one (N, D).
        rows: positions of the N vectors to scale, in any order (default: all).
        places: their positions in ``out`` (default: 0 to N - 1).
    """
    rows = np.arange(len(vectors)) if rows is None else rows
    units = np.empty((len(rows), vectors.shape[1]), dtype=np.float32) if out is None else out
    places = np.arange(len(rows)) if places is None else places
    many = vectors.size >= MIN_SIZE_TO_COMPILE or "miner.knn.core.compiled" in sys.modules
    if vectors.dtype in (np.float16, np.float32) and many:
        narrow = vectors.dtype == np.float16
        numbers = np.ascontiguousarray(vectors).view(np.uint16 if narrow else np.float32)
        scales = HALF if narrow else 1.0, 2.0**UNIT_BITS

        def fill_block(block: slice) -> None:
            loops().unit_rows(numbers, rows[block], scales, units, places[block])

        run_in_threads(fill_block, blocks(len(rows), BLOCK_ROWS))
        return units
    size = max(1, BLOCK_BYTES // (8 * max(1, vectors.shape[1])))

    def fill(start: int) -> None:
        block = vectors[rows[start : start + size]].astype(np.float64, order="C")
        if vectors.dtype.itemsize > 4:  # squares may overflow or underflow
            _, exponents = np.frexp(np.abs(block).max(axis=1, keepdims=True, initial=0))
            np.ldexp(block, -exponents, out=block)
        block *= 2.0**UNIT_BITS / np.sqrt(square_lengths(block))[:, None]
        np.rint(block, out=block)
        units[places[start : start + size]] = block * 2.0**-UNIT_BITS

    run_in_threads(fill, range(0, len(rows), size))
    return units


def square_lengths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the squares of each row (N, D) in a fixed order, to float64 (N,)."""
    # As in compiled loops, eight lanes sum every eighth square, and are then added by pairs.
    squares = np.zeros((len(rows), -(-rows.shape[1] // 8), 8))
    np.multiply(rows, rows, out=squares.reshape(len(rows), -1)[:, : rows.shape[1]])
    lanes: NDArray[np.float64] = squares.sum(axis=1)
    while lanes.shape[1] > 1:
        lanes = lanes[:, ::2] + lanes[:, 1::2]
    return lanes[:, 0]


def checked_vectors(vectors: ArrayLike, side: str) -> NDArray[Any]:
    """Check vectors, and return them as an array (N, D).

    N may be 0. The dtype stays.

    Raises:
        ValueError: Vectors are not two-dimensional, not of real numbers, or a row is zero or not
            finite. The message begins with ``side``.
    """
    rows = np.asarray(vectors)
    if rows.ndim != 2:
        raise ValueError(
            f"{side} vectors have the shape {rows.shape}; expected one row per sentence: (N, D)"
        )
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"{side} vectors are of type {rows.dtype}; expected real numbers")
    # Norms of large or small numbers would overflow or underflow.
    ends = rows.max(axis=1, initial=0), rows.min(axis=1, initial=0)
    largest = np.maximum(*(np.abs(end.astype(np.float64)) for end in ends))
    bad = np.flatnonzero(~(np.isfinite(largest) & (largest > 0)))
    if len(bad):
        raise ValueError(
            f"{side} row {bad[0]} is zero or not finite ({len(bad)} such rows); "
            "remove these sentences"
        )
    return rows


def check_search(source: NDArray[Any], target: NDArray[Any], *, k: int) -> None:
    """Check k, and that vectors (N, D) and (M, D) have the same dimensions.

    Raises:
        ValueError: k is below 1, or the dimensions differ.
    """
    if k < 1:
        raise ValueError(f"k is {k}; a neighbourhood needs at least 1 sentence")
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"source vectors have {source.shape[1]} dimensions, target vectors {target.shape[1]}; "
            "embed both sides with the same encoder"
        )


def rescore(queries: Matrix, base: Matrix, candidates: IntArray, *, k: int) -> Neighbours:
    """Return each query's ``k`` nearest candidates by exact cosine, then id.

    ``queries`` (N, D) and ``base`` (M, D) are rows from ``unit_rows``. ``candidates``, int64 (N,
    C), are distinct positions in ``base``, or -1. The result has min(k, C) columns.
    """
    neighbours = Neighbours.empty(len(queries), min(k, candidates.shape[1]))

    def fill(block: slice) -> None:
        lists = neighbours.ids[block], neighbours.cosines[block]
        loops().rescore(queries[block], base, candidates[block], *lists)

    if neighbours.ids.shape[1]:
        run_in_threads(fill, blocks(len(queries), BLOCK_ROWS))
    return neighbours


def best(neighbours: Neighbours, *, k: int) -> Neighbours:
    """Keep the ``k`` neighbours of each row with the highest cosines.

    They are sorted by descending cosine, then ascending id, and unused columns, -1 and -inf, are
    last. The result has ``k`` columns, or as many as ``neighbours`` if it has fewer.
    """
    order = np.lexsort((neighbours.ids, -neighbours.cosines), axis=1)[:, :k]
    return Neighbours(
        ids=np.take_along_axis(neighbours.ids, order, axis=1),
        cosines=np.take_along_axis(neighbours.cosines, order, axis=1),
    )


def merge(parts: Sequence[Neighbours], *, k: int) -> Neighbours:
    """Merge the lists of the same N rows in all ``parts`` into one.

    A row has its best ``k`` distinct neighbours, by cosine, then id. The columns are ``k``, or the
    sum of the columns of ``parts`` if that is less. ``parts`` is not empty.
    """
    merged = Neighbours.empty(len(parts[0]), min(k, sum(part.ids.shape[1] for part in parts)))
    for part in parts:
        merge_some(merged, np.arange(len(part)), part)
    return merged


def merge_some(neighbours: Neighbours, rows: NDArray[np.integer], others: Neighbours) -> None:
    """Merge ``others``, neighbours of some ``rows`` (P,), into all lists.

    Both are best first. ``neighbours`` (N, K) keeps the K best distinct ones, in place.
    """
    if neighbours.ids.shape[1]:
        lists = neighbours.ids, neighbours.cosines
        loops().merge(*lists, rows, others.ids, others.cosines)


def search_table(source: Matrix, target: Matrix, *, k: int) -> tuple[Neighbours, Neighbours]:
    """Search unit rows (N, D) and (M, D) by a table (N, M) of all cosines.

    Neighbours are (N, min(k, M)) and (M, min(k, N)), ties by position. ``k`` is at least 1.
    """
    table = np.empty((len(source), len(target)), dtype=np.float32)
    for columns in blocks(len(target), TABLE_ROWS):
        others = target[columns].astype(np.float64).T
        for rows in blocks(len(source), TABLE_ROWS):
            table[rows, columns] = source[rows].astype(np.float64) @ others
    return _best_of_rows(table, k), _best_of_rows(np.ascontiguousarray(table.T), k)


def _best_of_rows(table: Matrix, k: int) -> Neighbours:
    rows, columns = table.shape
    k = min(k, columns)
    if not table.size:
        return Neighbours.empty(rows, k)
    least = np.partition(table, columns - k, axis=1)[:, columns - k]
    row, column = np.nonzero(table >= least[:, None])  # including all equal to the k-th
    order = np.lexsort((column, -table[row, column], row))
    start = np.searchsorted(row, np.arange(rows))
    ids = column[order[start[:, None] + np.arange(k)]]
    return Neighbours(ids=ids, cosines=np.take_along_axis(table, ids, axis=1))
