"""The cell join: the two-way search among rows that share a cell, for corpora past exact search.

Cells are Voronoi cells of k-means centroids, the same for both sides. Each row lies in its ``p``
nearest cells, and a pair is compared if it shares one. That is an inverted file written as a join:
both directions at once, one product for each pair and cell. With C even cells it costs p * p / C
of the exact search. What is found is the k best of all that share a cell with a row, so parts of a
side, searched with the same centroids, merge to what the whole finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Matrix, Neighbours
from miner.knn.core import passes
from miner.knn.core.candidates import Candidates
from miner.knn.core.codes import Codes, Precision, encode_both, round_to_int8
from miner.knn.core.passes import Tile, fallback_search, generate_candidates, loops, verify
from miner.knn.core.products import product, type_of_integers
from miner.knn.core.rescore import check_search, unit_rows
from miner.knn.core.tuning import choose
from miner.knn.method import ROUNDS
from miner.threads import blocks, in_threads

# A cell with this many times the mean load is split; even cells are the cheapest for their number.
CROWDED = 2.0
# Rows and columns of a tile: most cells are one, so that what they share is fetched once. While
# there are no candidates yet, all of its products are hits, 8 bytes each.
TILE = 2048


def train_cells(sample: Matrix, count: int) -> Matrix:
    """Return about ``count`` centroids (C, D) of a sample of both sides (S, D), all unit rows.

    Raises:
        ValueError: fewer rows than cells.
    """
    if not 1 <= count <= len(sample):
        raise ValueError(
            f"{count} cells cannot be made of {len(sample)} sentences; choose fewer, or 'exact'"
        )
    centroids = _k_means(sample, sample[_evenly(len(sample), count)])
    nearest = nearest_cells(sample, centroids, probes=1)[:, 0]
    parts = np.ceil(np.bincount(nearest, minlength=count) * count / len(sample)).astype(int)
    crowded = parts > CROWDED
    seeds = [centroids[~crowded]]
    for cell in np.flatnonzero(crowded):
        members = np.flatnonzero(nearest == cell)
        seeds.append(sample[members[_evenly(len(members), parts[cell])]])
    return _k_means(sample, np.concatenate(seeds))


def _evenly(rows: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` of the rows, at an even stride."""
    return np.arange(count) * rows // count


def _k_means(sample: Matrix, centroids: Matrix) -> Matrix:
    """Spherical k-means (S, D) from the given centroids, unit rows (C, D)."""
    for _ in range(ROUNDS):
        nearest = nearest_cells(sample, centroids, probes=1)[:, 0]
        means = np.zeros_like(centroids)
        loops().add_rows(sample, nearest, means)
        empty = ~means.any(axis=1)  # no rows, or rows that cancel out
        means[empty] = centroids[empty]
        centroids = unit_rows(means)
    return centroids


def nearest_cells(rows: Matrix, centroids: Matrix, *, probes: int) -> NDArray[np.int64]:
    """Return the cells of each row, (N, p), nearest first: by products of int8 codes.

    A row's cells depend on the row and the centroids alone: integers sum exactly, and the one
    rounding, by the centroid's step, is of one product. Costs N * C products.
    """
    integers = type_of_integers(rows.shape[1], 2 * len(rows) * centroids.size)
    numbers, steps = round_to_int8(centroids)
    codes, scale = numbers.astype(integers), steps[:, 0]
    cells = np.empty((len(rows), min(probes, len(centroids))), dtype=np.int64)

    def assign(block: slice) -> None:
        own, _ = round_to_int8(rows[block])
        loops().largest(product(own.astype(integers), codes), scale, cells[block])

    size = max(1, passes.TILE_ROWS * passes.TILE_COLUMNS // len(centroids))
    in_threads(assign, blocks(len(rows), size))
    return cells


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """The rows of one side by cell: those of cell c are ``rows[start[c]:start[c + 1]]``."""

    rows: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, cells: NDArray[np.integer], count: int) -> _Cells:
        order = np.argsort(cells, axis=None, kind="stable")
        loads = np.bincount(cells.ravel(), minlength=count)
        return cls(rows=order // cells.shape[1], start=np.concatenate([[0], np.cumsum(loads)]))

    def members(self, cell: int) -> NDArray[np.int64]:
        return self.rows[self.start[cell] : self.start[cell + 1]]

    def loads(self) -> NDArray[np.int64]:
        return np.diff(self.start)


@dataclass(frozen=True, kw_only=True)
class _Order:
    """One side by its rows' nearest cells: what is compared then lies close together.

    ``rows`` (N,) are the side's rows in that order, ``place`` (N,) is where each has gone.
    ``nearest`` has the places by nearest cell, ``cells`` by all of a row's cells.
    """

    rows: NDArray[np.int64]
    place: NDArray[np.int64]
    nearest: _Cells
    cells: _Cells

    @classmethod
    def of(cls, cells: NDArray[np.integer], count: int) -> _Order:
        rows = np.argsort(cells[:, 0], kind="stable")
        return cls(
            rows=rows,
            place=np.argsort(rows),
            nearest=_Cells.of(cells[rows, :1], count),
            cells=_Cells.of(cells[rows], count),
        )


def join_cells(
    source: Matrix,
    target: Matrix,
    source_cells: NDArray[np.integer],
    target_cells: NDArray[np.integer],
    *,
    count: int,
    k: int,
    precision: Precision | None = None,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest of the rows of the other side that share a cell, for both sides.

    Args:
        source: rows as ``miner.knn.core.rescore.unit_rows`` makes them, float32 (N, D).
        target: rows as ``unit_rows`` makes them, float32 (M, D).
        source_cells: the cells of each source row, nearest first, (N, p), from ``nearest_cells``.
        target_cells: those of each target row, (M, p).
        count: how many cells there are.
        k: neighbours of each row; clipped to the size of the other side.
        precision: of the product; the fastest here unless given.
        progress: called with the similarities that a step stands for; they sum to about N * M.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions, -1 where fewer rows share a cell. Cosines are exact.

    Raises:
        ValueError: k below 1, rows of different dimensions, or an unknown precision.
    """
    check_search(source, target, k=k)
    orders = [_Order.of(cells, count) for cells in (source_cells, target_cells)]
    # Each row's very nearest cell first: it has most of its neighbours, and what comes after meets
    # high floors. Those pairs are computed twice, 1 / p**2 of all.
    passes_of_cells = [[order.nearest for order in orders], [order.cells for order in orders]]
    pairs = sum(int(rows.loads() @ columns.loads()) for rows, columns in passes_of_cells)
    share = len(source) * len(target) / max(1, pairs)
    tuned = choose(source, target, k=k, precision=precision)
    left, right = _sorted(encode_both(source, target, tuned.precision), orders)
    forward, backward = generate_candidates(
        *(left, right, chain(*(_tiles(*cells) for cells in passes_of_cells))),
        kept=tuned.kept,
        repeated=True,
        progress=lambda products: progress(round(products * share)),
    )
    sources, targets = (source, left, orders[0]), (target, right, orders[1])
    return (
        _complete(sources, targets, forward, k=min(k, len(target))),
        _complete(targets, sources, backward, k=min(k, len(source))),
    )


def _sorted(codes: Sequence[Codes], orders: Sequence[_Order]) -> list[Codes]:
    """Return both sides' codes in their orders."""
    found = list(codes)

    def sort(side: int) -> None:
        found[side] = codes[side].part(orders[side].rows)

    in_threads(sort, range(2))
    return found


def _complete(
    queries: tuple[Matrix, Codes, _Order],
    base: tuple[Matrix, Codes, _Order],
    candidates: Candidates,
    *,
    k: int,
) -> Neighbours:
    """Rescore the candidates; search again, in their cells, for rows that may miss some."""
    (rows, codes, order), (others, other_codes, other_order) = queries, base
    neighbours, incomplete = verify((rows, codes), others, candidates, k=k)
    tiles = _tiles(order.cells, other_order.cells, only=order.place[incomplete])
    fallback_search((rows, codes), (others, other_codes), neighbours, tiles)
    return neighbours


def _tiles(left: _Cells, right: _Cells, *, only: NDArray[np.int64] | None = None) -> Iterator[Tile]:
    """Yield the rows (``only`` some of them) and columns of each cell."""
    wanted = np.full(int(left.rows.max(initial=-1)) + 1, only is None)
    if only is not None:
        wanted[only] = True
    for cell in range(len(left.start) - 1):
        rows, columns = left.members(cell), right.members(cell)
        rows = rows[wanted[rows]]
        for top in blocks(len(rows), TILE):
            for side in blocks(len(columns), TILE):
                yield Tile(rows=rows[top], columns=columns[side])
