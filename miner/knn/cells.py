"""The cell join, an approximate search among rows that share a cell.

Cells are Voronoi cells of k-means centroids, the same for both sides. Each row is assigned to its
``p`` nearest cells, and a pair is compared if its rows share a cell. With C balanced cells it costs
p * p / C of the exact search. Neighbours are the k best of all rows in shared cells, so results of
parts of a side, or of ranges of cells, merge to the result of the whole. Axes: ``N`` source rows,
``M`` target rows, ``D`` dimensions.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Matrix, Neighbours, evenly_spaced
from miner.knn.core import passes
from miner.knn.core.codes import Codes, Precision, codes_of, encode_both
from miner.knn.core.passes import TopK, growing_blocks
from miner.knn.core.products import DEPTH, LARGE, loops
from miner.knn.core.rescore import check_search, unit_rows
from miner.knn.core.tuning import PART_TRIAL_ROWS, choose, type_of_integers
from miner.knn.method import PROBES, ROUNDS
from miner.knn.tiled import Progress
from miner.threads import blocks, even_blocks, run_in_threads

Cells: TypeAlias = NDArray[np.integer]  # of each row, nearest first, -1 if fewer: (N, p)
Both: TypeAlias = tuple[Matrix, Matrix]

# A cell with more than this many times the mean load is split. Even loads are cheapest.
MAX_LOAD_RATIO = 2.0
TILE = 2048  # rows and columns; a cell of this size shares fetched vectors
BRANCHES = 8  # cells per node in ``_order_by_proximity``
BALANCE_ROWS_PER_CELL = 10  # of the sample, whose loads are balanced
BALANCE_ROUNDS = 3
BALANCE_STEP = 0.04  # share of the mean gap between a row's first and last cell
GAP_SAMPLE_ROWS = 1000  # that measure this gap
PROBE_SLACK = 2  # cells that a row may have more or fewer than average
FARTHEST = 1000  # one in this many pairs of nearest rows meets beyond the farthest gap
TUNING_CELLS = 16  # adjacent cells whose rows choose the precision and the candidates


def train_cells(sample: Matrix, count: int) -> Matrix:
    """Train about ``count`` cells on unit rows (S, D), sampled on both sides.

    The centroids are float32 (C, D + 1): unit vectors, and a last coordinate that balances the
    cells' loads. Adjacent centroids are similar. C may exceed ``count``, as large cells are split.

    Raises:
        ValueError: ``count`` is below 1 or above S.
    """
    if not 1 <= count <= len(sample):
        raise ValueError(
            f"--index cells{count}: {len(sample)} sentences are fewer than its cells; use fewer "
            "cells, or --index exact"
        )
    centroids = _k_means(sample, sample[evenly_spaced(len(sample), count)])
    nearest = nearest_cells(sample, centroids, probes=1)[:, 0]
    parts = np.ceil(np.bincount(nearest, minlength=count) * count / len(sample)).astype(int)
    crowded = parts > MAX_LOAD_RATIO
    seeds = [centroids[~crowded]]
    for cell in np.flatnonzero(crowded):
        members = np.flatnonzero(nearest == cell)
        seeds.append(sample[members[evenly_spaced(len(members), parts[cell])]])
    return _balance_loads(_order_by_proximity(_k_means(sample, np.concatenate(seeds))), sample)


def _balance_loads(centroids: Matrix, sample: Matrix) -> Matrix:
    """Add a penalty to each centroid, (C, D + 1), so that loads are more even.

    Some centroids are similar to many rows (hubs: Radovanović et al. 2010), and a cell costs the
    square of its load. The penalty is subtracted from a row's cosine to the centroid. It is
    proportional to the logarithm of the load and to the gap between a row's nearest cells.
    """
    count = min(len(sample), BALANCE_ROWS_PER_CELL * len(centroids))
    rows = sample[evenly_spaced(len(sample), count)]
    cells = nearest_cells(rows, centroids, probes=PROBES)
    sampled = slice(None, None, max(1, len(rows) // GAP_SAMPLE_ROWS))
    units = rows[sampled].astype(np.float64)  # products of unit rows sum exactly
    first, last = (np.einsum("nd,nd->n", units, centroids[cells[sampled, at]]) for at in (0, -1))
    step = BALANCE_STEP * math.fsum(first - last) / len(units)

    def penalised(penalties: FloatArray) -> Matrix:
        numbers = (-penalties / _penalty_scale(rows)).astype(np.float32)
        return np.concatenate([centroids, numbers[:, None]], axis=1)

    def loads_of(cells: IntArray) -> FloatArray:
        return (np.bincount(cells.ravel(), minlength=len(centroids)) + 1).astype(np.float64)

    penalties, loads = np.zeros(len(centroids)), loads_of(cells)
    for _ in range(BALANCE_ROUNDS):
        # CPUs differ in the last bits of logarithms.
        tried = penalties + step * np.round(np.log(loads / loads.mean()), 6)
        tried_loads = loads_of(nearest_cells(rows, penalised(tried), probes=PROBES))
        if tried_loads @ tried_loads < loads @ loads:
            penalties, loads = tried, tried_loads
        else:
            step /= 2
    return penalised(penalties)


def _penalty_scale(rows: Matrix) -> float:
    """Return the last coordinate of unit rows (N, D), twice a typical one."""
    return 2 / math.sqrt(rows.shape[1])


def _order_by_proximity(centroids: Matrix) -> Matrix:
    """Order centroids by their own cells, recursively, as in a tree."""
    if len(centroids) <= BRANCHES:
        return centroids
    parents = centroids[evenly_spaced(len(centroids), len(centroids) // BRANCHES)]
    nearest = nearest_cells(centroids, _order_by_proximity(_k_means(centroids, parents)), probes=1)
    return centroids[np.argsort(nearest[:, 0], kind="stable")]


def _k_means(sample: Matrix, centroids: Matrix) -> Matrix:
    for _ in range(ROUNDS):
        nearest = nearest_cells(sample, centroids, probes=1)[:, 0]
        means = np.zeros_like(centroids)
        loops().add_rows(sample, nearest, means)
        empty = ~means.any(axis=1)  # without rows, or rows that cancel out
        means[empty] = centroids[empty]
        centroids = unit_rows(means)
    return centroids


class ProbeRadius(NamedTuple):
    """The largest gaps at which a row is assigned to a cell.

    A gap is the row's product with its nearest centroid minus its product with the cell's centroid:
    cosines, less penalties. ``farthest`` limits all gaps, and ``usual`` the gaps after a row's
    first max(1, probes - 2) cells.
    """

    usual: float
    farthest: float


def nearest_cells(
    rows: Matrix, centroids: Matrix, *, probes: int, reach: ProbeRadius | None = None
) -> IntArray:
    """Find the cells of unit rows (N, D) by products of integer codes.

    A row's cells depend on no other row, because integers sum exactly. ``centroids`` are from
    ``train_cells``, (C, D + 1), or have no penalties, (C, D). Cells are int64 (N, min(probes, C)),
    nearest first, ties by number. With a ``reach``, from ``fit_probe_radius`` for these ``probes``,
    they are (N, min(probes + 2, C)), about ``probes`` per row but at least 1, with -1 at the end.
    """
    if reach is None:
        return _nearest(rows, centroids, probes)[0]
    cells, gaps = _nearest(rows, centroids, probes + PROBE_SLACK)
    least = max(1, probes - PROBE_SLACK)
    beyond = gaps > reach.farthest
    beyond[:, least:] |= gaps[:, least:] > reach.usual
    cells[beyond] = NO_NEIGHBOUR
    return cells


def fit_probe_radius(
    rows: Matrix, nearest: Matrix, centroids: Matrix, *, probes: int
) -> ProbeRadius:
    """Fit the probe radius to rows and their nearest rows of the other side.

    ``rows`` (N, D) are a sample of unit rows, N >= 1, and ``nearest`` (N, D) the nearest row of the
    other side for each. ``centroids`` and ``probes`` are as in ``nearest_cells``. Within the
    radius, rows have about ``probes`` cells. All but one in 1,000 pairs share a cell within half
    the ``farthest`` gap, if that many share any. Both gaps are unlimited if ``probes`` >= C.
    """
    if probes >= len(centroids):
        return ProbeRadius(usual=LARGE, farthest=LARGE)
    least = max(1, probes - PROBE_SLACK)
    cells, gaps = _nearest(rows, centroids, probes + PROBE_SLACK)
    other_cells, other_gaps = _nearest(nearest, centroids, probes + PROBE_SLACK)
    pair_gaps = np.maximum(gaps[:, :, None], other_gaps[:, None, :])
    pair_gaps[cells[:, :, None] != other_cells[:, None, :]] = LARGE
    meeting = np.sort(pair_gaps.min(axis=(1, 2)))
    farther = np.sort(gaps[:, least:], axis=None)
    return ProbeRadius(
        usual=float(farther[: len(rows) * (probes - least) + 1][-1]),
        farthest=2 * float(meeting[-1 - len(meeting) // FARTHEST]),
    )


def _nearest(rows: Matrix, centroids: Matrix, count: int) -> tuple[IntArray, Matrix]:
    """Return each row's ``count`` nearest cells, and their gaps to the first."""
    integers = type_of_integers(centroids.shape[1], 2 * len(rows) * centroids.size)
    columns = codes_of(np.pad(centroids, ((0, 0), (0, -centroids.shape[1] % DEPTH))), integers)
    dim, kept = rows.shape[1], min(count, len(centroids))
    cells = np.empty((len(rows), kept), dtype=np.int64)
    gaps = np.empty((len(rows), kept), dtype=np.float32)

    def assign(block: slice) -> None:
        padded = np.zeros((len(rows[block]), columns.numbers.shape[1]), dtype=np.float32)
        padded[:, :dim], padded[:, dim : centroids.shape[1]] = rows[block], _penalty_scale(rows)
        row_codes = codes_of(padded, integers)
        # A row's own step does not change the order of its products.
        unscaled = replace(row_codes, scale=np.ones(len(padded), np.float32))
        bounds, cells[block] = passes.best_columns(unscaled, columns, kept=kept)
        gaps[block] = (bounds[:, :1] - bounds) * row_codes.scale[:, None]

    run_in_threads(assign, blocks(len(rows), TILE))
    return cells, gaps


def cut_cells(source_cells: Cells, target_cells: Cells, *, count: int, most: int) -> list[range]:
    """Cut ``count`` cells into ranges of cells with up to ``most`` rows each.

    ``source_cells`` (N, p) and ``target_cells`` (M, p) are the cells of each row, -1 if unused.
    Rows of both sides count, once per range. Ranges are in order and contain all cells. A cell with
    more rows than ``most`` is a range by itself.
    """
    cells = np.concatenate([source_cells, target_cells]).astype(np.int64)
    ranges, start = [], 0
    while start < count:
        first = np.where(cells < start, count, cells).min(axis=1)  # each row's first cell from here
        rows = np.bincount(first, minlength=count)[start:count].cumsum()
        stop = start + max(1, int(np.searchsorted(rows, most, side="right")))
        ranges.append(range(start, stop))
        start = stop
    return ranges


def rows_in_cells(cells: Cells, part: range) -> IntArray:
    """Return ascending positions in ``cells`` (N, p) with a cell in ``part``."""
    return np.asarray(loops().rows_in(cells, part.start, part.stop))


def by_nearest_cell(cells: Cells, part: range) -> IntArray:
    """Sort positions of rows by their nearest cell in ``part``, then position.

    ``cells`` (N, p) are each row's, nearest first, -1 if unused. Rows without a cell in the part
    are last. ``join_cells`` reads rows in this order.
    """
    return np.argsort(_cells_in_range(cells, part)[1], kind="stable")


def _cells_in_range(cells: Cells, part: range) -> tuple[Cells, Cells]:
    # Cells, counted from the first of the part and ``len(part)`` outside, and each row's first.
    inside = (cells >= part.start) & (cells < part.stop)
    kind = np.min_scalar_type(len(part))
    own = np.where(inside, cells - part.start, len(part)).astype(kind)
    return own, own[np.arange(len(own)), inside.argmax(axis=1)]


class _CellOrder(NamedTuple):
    """Positions of rows by nearest cell, and cells' places in this order.

    Cell c of the part, counted from 0, has ``rows[places[start[c] : start[c + 1]]]``.
    """

    rows: IntArray
    places: IntArray
    start: IntArray

    @classmethod
    def of(cls, cells: Cells, part: range) -> Self:
        own, nearest = _cells_in_range(cells, part)
        rows = np.argsort(nearest, kind="stable")
        by_cell = np.argsort(own[rows], axis=None, kind="stable")
        loads = np.bincount(own.ravel(), minlength=len(part))[: len(part)]
        start = np.concatenate([[0], np.cumsum(loads)])
        return cls(rows, by_cell[: start[-1]] // cells.shape[1], start)

    def members(self, cell: int) -> IntArray:
        return self.places[self.start[cell] : self.start[cell + 1]]

    def loads(self) -> IntArray:
        return np.diff(self.start)


class _Side(NamedTuple):
    """A side of a join, with rows and codes in the order of nearest cells."""

    rows: Matrix
    codes: Codes
    order: _CellOrder

    @classmethod
    def of(cls, rows: Matrix, codes: Codes, order: _CellOrder, names: IntArray | None) -> Self:
        if names is not None:
            codes = replace(codes, ids=names.astype(np.int32))
        if np.array_equal(order.rows, np.arange(len(rows))):
            return cls(rows, codes, order)
        return cls(rows.take(order.rows, axis=0), codes.take(order.rows), order)

    def nearest(self, k: int, least: Matrix | None) -> TopK:
        """Return unused neighbours, with floors for ``least`` (N,) in input order."""
        nearest = TopK.empty(len(self.rows), k)
        if least is not None:
            nearest.floors[:] = np.nextafter(least[self.order.rows], np.float32(-np.inf))
        return nearest

    def in_order(self, nearest: TopK) -> Neighbours:
        """Return neighbours in the rows' original order."""
        return nearest.neighbours.take(np.argsort(self.order.rows))


def _tiles(
    left: _CellOrder, right: _CellOrder, cut: Callable[[int, int], list[slice]]
) -> Iterator[passes.Tile]:
    """Yield tiles of each cell's rows and columns."""
    for cell in range(len(left.start) - 1):
        rows, columns = left.members(cell), right.members(cell)
        for top in cut(len(rows), TILE):
            for side in cut(len(columns), TILE):
                yield passes.Tile(rows=rows[top], columns=columns[side])


def join_cells(
    sides: Both,
    cells: tuple[Cells, Cells],
    *,
    part: range,
    k: int,
    names: tuple[IntArray, IntArray] | None = None,
    floors: Both | None = None,
    precision: Precision | None = None,
    progress: Progress = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest rows in shared cells of ``part``, in both directions.

    Neighbours are (N, min(k, M)) and (M, min(k, N)), with exact cosines. Ids are -1 if fewer rows
    share a cell of the part and reach the floor. Errors of ``check_search``, ``encode_both`` and
    ``miner.knn.core.products.product`` are raised.

    Args:
        sides: unit rows (N, D) and (M, D). Rows in the order of ``by_nearest_cell`` save a copy.
        cells: cells of both sides' rows, from ``nearest_cells``.
        part: the cells to join, at least one.
        k: neighbours per row.
        names: ids of both sides' rows, int64 (N,) and (M,), below 2**31 (default: positions).
        floors: least cosines, (N,) and (M,). With ``find_floors``, a join takes a third less time.
        precision: as in ``miner.knn.exact.search_both`` (default: the fastest).
        progress: called with computed similarities, scaled so that they sum to about N * M.
    """
    kept = min(k, len(sides[1])), min(k, len(sides[0]))
    return _join(sides, cells, part, k, kept, precision, progress, names, floors)


def find_floors(
    sides: Both,
    cells: tuple[Cells, Cells],
    *,
    part: range,
    k: int,
    precision: Precision | None = None,
    progress: Progress = lambda products: None,
) -> Both:
    """Find lower bounds of each row's k-th cosine, float32 (N,) and (M,).

    A bound is the min(k, max(N, M))-th cosine to rows of the other side with the same nearest cell.
    It is -inf if these rows are fewer, or the cell is not in ``part``. Arguments and errors are as
    in ``join_cells``, which skips products by these bounds.
    """
    k = min(k, max(*map(len, sides), 1))
    nearest = cells[0][:, :1], cells[1][:, :1]
    forward, backward = _join(sides, nearest, part, k, (k, k), precision, progress)
    return forward.cosines[:, -1], backward.cosines[:, -1]


def _join(
    sides: Both,
    cells: tuple[Cells, Cells],
    part: range,
    k: int,
    kept: tuple[int, int],
    precision: Precision | None,
    progress: Progress,
    names: tuple[IntArray, IntArray] | None = None,
    floors: Both | None = None,
) -> tuple[Neighbours, Neighbours]:
    """Join like ``join_cells``, with the numbers of neighbours in ``kept``."""
    check_search(*sides, k=k)
    orders = [_CellOrder.of(own, part) for own in cells]
    source, target = (rows[at] for rows, at in zip(sides, _in_some_cells(*orders), strict=True))
    chosen = choose(source, target, k=k, precision=precision, tried=PART_TRIAL_ROWS)
    left, right = map(_Side.of, sides, encode_both(*sides, chosen), orders, names or (None, None))
    forward, backward = map(_Side.nearest, (left, right), kept, floors or (None, None))
    cut = even_blocks if floors else growing_blocks
    compared = int(left.order.loads() @ right.order.loads())
    share = len(left.rows) * len(right.rows) / max(1, compared)
    passes.compare(
        *(left[:2], right[:2], _tiles(left.order, right.order, cut), (forward, backward)),
        repeated=True,
        progress=lambda products: progress(round(products * share)),
    )
    return left.in_order(forward), right.in_order(backward)


def _in_some_cells(*sides: _CellOrder) -> list[IntArray]:
    """Return each side's rows in some cells in the middle of the part."""
    products = np.cumsum(np.prod([side.loads() for side in sides], axis=0))
    middle = int(np.searchsorted(products, products[-1] / 2))
    cells = range(len(products))[max(0, middle - TUNING_CELLS // 2) : middle + TUNING_CELLS // 2]
    members = [np.concatenate([side.members(cell) for cell in cells]) for side in sides]
    return [side.rows[np.unique(places)] for side, places in zip(sides, members, strict=True)]
