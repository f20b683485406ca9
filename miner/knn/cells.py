"""The cell join: the two-way search among rows that share a cell, for corpora past exact search.

Cells are Voronoi cells of k-means centroids, the same for both sides. Each row lies in its ``p``
nearest cells, and a pair is compared if it shares one: an inverted file written as a join, with one
product for each pair and cell. With C even cells it costs p * p / C of the exact search. What is
found is the k best of all that share a cell with a row, so parts of a side, searched with the same
centroids, merge to what the whole finds, and so do parts of the cells.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import (
    NO_NEIGHBOUR,
    FloatArray,
    IntArray,
    Matrix,
    Neighbours,
    evenly_spaced,
    take_rows,
)
from miner.knn.core import passes
from miner.knn.core.codes import Codes, Precision, codes_of, encode_both
from miner.knn.core.passes import Candidates
from miner.knn.core.products import DEPTH, LARGE, loops
from miner.knn.core.rescore import check_search, unit_rows
from miner.knn.core.tuning import PART_TRIAL_ROWS, choose, type_of_integers
from miner.knn.method import PROBES, ROUNDS
from miner.knn.tiled import Progress
from miner.threads import blocks, even_blocks, run_in_threads

Cells: TypeAlias = NDArray[np.integer]  # of each row, nearest first: (N, p)
Both: TypeAlias = tuple[Matrix, Matrix]

# A cell with this many times the mean load is split; even cells are the cheapest for their number.
MAX_LOAD_RATIO = 2.0
# Rows and columns of a tile: many cells are one, so that what they share is fetched once.
TILE = 2048
# Cells whose order is decided together, see ``_order_by_proximity``.
BRANCHES = 8
# How loads are made even: by rows of the sample for each cell, in so many rounds, by so much of the
# distance between a row's first and last cell, which some of the rows show.
BALANCE_ROWS_PER_CELL, BALANCE_ROUNDS, BALANCE_STEP, GAP_SAMPLE_ROWS = 10, 3, 0.04, 1000
# A row is in so many cells less or more than on average, by how near they are. How far one pair
# of nearest rows in so many meets bounds them all.
PROBE_SLACK, FARTHEST = 2, 1000
# Cells whose rows show how products are to be computed, and how many candidates to keep. They are
# as many as have most of what is near to a row.
TUNING_CELLS = 16


def train_cells(sample: Matrix, count: int) -> Matrix:
    """Return about ``count`` centroids of a sample of both sides (S, D), all unit rows.

    They are (C, D + 1), the last number for evenness, see ``_balance_loads``. Near centroids come close
    together. A ValueError says that there are fewer rows than cells.
    """
    if not 1 <= count <= len(sample):
        raise ValueError(
            f"{count} cells cannot be made of {len(sample)} sentences; choose fewer, or 'exact'"
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
    """Return the centroids with a penalty each, (C, D + 1), so that cells have more even loads.

    Some centroids are near to many rows (hubs: Radovanović et al. 2010), and a cell costs the
    square of its load. The penalty is taken off a row's cosine to the centroid, in proportion to
    the logarithm of the load and to how far a row's nearest cells are apart. A row's next cell is
    then nearly as good.
    """
    rows = sample[
        evenly_spaced(len(sample), min(len(sample), BALANCE_ROWS_PER_CELL * len(centroids)))
    ]
    cells = nearest_cells(rows, centroids, probes=PROBES)
    few = slice(None, None, max(1, len(rows) // GAP_SAMPLE_ROWS))
    some = rows[few].astype(np.float64)  # in which products of unit rows sum exactly
    near, far = (np.einsum("nd,nd->n", some, centroids[cells[few, at]]) for at in (0, -1))
    step = BALANCE_STEP * math.fsum(near - far) / len(some)

    def penalised(penalties: FloatArray) -> Matrix:
        numbers = (-penalties / _penalty_scale(rows)).astype(np.float32)
        return np.concatenate([centroids, numbers[:, None]], axis=1)

    def loads_of(cells: IntArray) -> FloatArray:
        return (np.bincount(cells.ravel(), minlength=len(centroids)) + 1).astype(np.float64)

    penalties, loads = np.zeros(len(centroids)), loads_of(cells)
    for _ in range(BALANCE_ROUNDS):
        # Processors differ in the last bits of logarithms.
        tried = penalties + step * np.round(np.log(loads / loads.mean()), 6)
        found = loads_of(nearest_cells(rows, penalised(tried), probes=PROBES))
        if found @ found < loads @ loads:
            penalties, loads = tried, found
        else:
            step /= 2
    return penalised(penalties)


def _penalty_scale(rows: Matrix) -> float:
    """Return what rows have for a centroid's last number: of the size of their others."""
    return 2 / math.sqrt(rows.shape[1])


def _order_by_proximity(centroids: Matrix) -> Matrix:
    """Return the centroids by their own cells, which are ordered in the same way: as in a tree."""
    if len(centroids) <= BRANCHES:
        return centroids
    parents = centroids[evenly_spaced(len(centroids), len(centroids) // BRANCHES)]
    nearest = nearest_cells(centroids, _order_by_proximity(_k_means(centroids, parents)), probes=1)
    return centroids[np.argsort(nearest[:, 0], kind="stable")]


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


class ProbeRadius(NamedTuple):
    """How far a row's cells may be from it: how much less their cosine may be than the nearest's.

    So a row is in ``probes`` cells on average: in up to ``PROBE_SLACK`` more if it lies between
    many, and in none that hardly any neighbours meet in.
    """

    usual: float  # of cells beyond the first ``probes - MORE_OR_LESS``
    farthest: float  # of all


def nearest_cells(
    rows: Matrix, centroids: Matrix, *, probes: int, reach: ProbeRadius | None = None
) -> IntArray:
    """Return the cells of each row (N, D), nearest first: by N * C products of int8 codes.

    They are (N, p), or (N, p + MORE_OR_LESS) of those within reach, then -1. Centroids are (C, D),
    or as ``train_cells`` returns them. A row's cells depend on the row, the centroids and the reach
    alone: sums of integers are exact, and what is rounded is the same everywhere.
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
    """Return the reach that suits some rows of both sides, (N, D), by the nearest row of each.

    The farthest cells are twice as far as those that all but one in ``FARTHEST`` of these pairs
    meet within, if so many meet at all.
    """
    if probes >= len(centroids):
        return ProbeRadius(usual=LARGE, farthest=LARGE)
    least = max(1, probes - PROBE_SLACK)
    (own, gaps), (theirs, their_gaps) = (
        _nearest(each, centroids, probes + PROBE_SLACK) for each in (rows, nearest)
    )
    apart = np.maximum(gaps[:, :, None], their_gaps[:, None, :])
    apart[own[:, :, None] != theirs[:, None, :]] = LARGE
    meeting = np.sort(apart.min(axis=(1, 2)))
    farther = np.sort(gaps[:, least:], axis=None)
    return ProbeRadius(
        usual=float(farther[: len(rows) * (probes - least) + 1][-1]),
        farthest=2 * float(meeting[-1 - len(meeting) // FARTHEST]),
    )


def _nearest(rows: Matrix, centroids: Matrix, count: int) -> tuple[IntArray, Matrix]:
    """Return the nearest cells of each row, (N, p), and by how much they are farther than one."""
    integers = type_of_integers(centroids.shape[1], 2 * len(rows) * centroids.size)
    columns = codes_of(np.pad(centroids, ((0, 0), (0, -centroids.shape[1] % DEPTH))), integers)
    dim, kept = rows.shape[1], min(count, len(centroids))
    cells = np.empty((len(rows), kept), dtype=np.int64)
    gaps = np.empty((len(rows), kept), dtype=np.float32)

    def assign(block: slice) -> None:
        some = np.zeros((len(rows[block]), columns.numbers.shape[1]), dtype=np.float32)
        some[:, :dim], some[:, dim : centroids.shape[1]] = rows[block], _penalty_scale(rows)
        own = codes_of(some, integers)
        # A row's own step changes nothing in the order of its products.
        unscaled = replace(own, scale=np.ones(len(some), np.float32))
        found = passes.best_columns(unscaled, columns, kept=kept)
        cells[block] = found.ids
        gaps[block] = (found.bounds[:, :1] - found.bounds) * own.scale[:, None]

    run_in_threads(assign, blocks(len(rows), TILE))
    return cells, gaps


def cut_cells(source_cells: Cells, target_cells: Cells, *, count: int, most: int) -> list[range]:
    """Cut all ``count`` cells into ranges of at most ``most`` rows of both sides, or one cell."""
    cells, before = [], []
    for side in (source_cells, target_cells):
        ascending = np.sort(side, axis=1)
        first = np.full((len(side), 1), -1, dtype=ascending.dtype)
        cells.append(ascending.ravel())
        before.append(np.concatenate([first, ascending[:, :-1]], axis=1).ravel())
    order = np.argsort(np.concatenate(cells), kind="stable")
    by_cell, row_before = (np.concatenate(parts)[order] for parts in (cells, before))
    ranges = []
    start = 0
    while start < count:
        place = np.searchsorted(by_cell, start)
        new = row_before[place:] < start  # the row's first cell of the range
        rows = np.bincount(by_cell[place:][new] - start, minlength=count - start).cumsum()
        stop = start + max(1, int(np.searchsorted(rows, most, side="right")))
        ranges.append(range(start, stop))
        start = stop
    return ranges


def rows_in_cells(cells: Cells, part: range) -> IntArray:
    """Return the rows, ascending, that lie in a cell of the part."""
    rows: IntArray = loops().rows_in(cells, part.start, part.stop)
    return rows


def by_nearest_cell(cells: Cells, part: range) -> IntArray:
    """Return the rows in the order in which a join goes through them."""
    return np.argsort(_cells_in_range(cells, part)[1], kind="stable")


def _cells_in_range(cells: Cells, part: range) -> tuple[Cells, Cells]:
    """Return the cells (N, p) by number in a part, those outside above all, and the first (N,)."""
    inside = (cells >= part.start) & (cells < part.stop)
    kind = np.min_scalar_type(len(part))
    own = np.where(inside, cells - part.start, len(part)).astype(kind)
    return own, own[np.arange(len(own)), inside.argmax(axis=1)]


class _CellOrder(NamedTuple):
    """One side by its rows' nearest cells: what is compared then lies close together.

    ``rows`` (N,) are the side's rows in that order; ``places[start[c]:start[c + 1]]`` are the
    places in it of those in cell c.
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
    """One side of a join: its rows and their ``codes`` are in its ``order``."""

    rows: Matrix
    codes: Codes
    order: _CellOrder

    @classmethod
    def of(cls, rows: Matrix, codes: Codes, order: _CellOrder, names: IntArray | None) -> Self:
        if names is not None:
            codes = replace(codes, ids=names.astype(np.int32))
        if np.array_equal(order.rows, np.arange(len(rows))):
            return cls(rows, codes, order)
        return cls(take_rows(rows, order.rows), codes.take(order.rows), order)

    def below(self, cosines: Matrix) -> Matrix:
        """Return what wanted neighbours of each row exceed, (N,)."""
        return np.nextafter(cosines[self.order.rows], np.float32(-np.inf))

    def floors(self, base: Self, candidates: Candidates, k: int) -> Matrix:
        """Return the k-th cosine of the candidates of each row, in the order that rows came in."""
        found, _ = passes.verify((self.rows, self.codes), (base.rows, base.codes), candidates, k=k)
        floors = np.empty(len(self.rows), dtype=np.float32)
        floors[self.order.rows] = found.cosines[:, -1]
        return floors

    def complete(
        self, base: Self, candidates: Candidates, k: int, floors: Matrix | None
    ) -> Neighbours:
        """Rescore the candidates; search again, in their cells, for rows that may miss some."""
        queries, others = (self.rows, self.codes), (base.rows, base.codes)
        below, k = None if floors is None else self.below(floors), min(k, len(base.rows))
        neighbours, incomplete = passes.verify(queries, others, candidates, k=k, floors=below)
        passes.fallback_search(
            queries, others, neighbours, _tiles(self.order, base.order, only=incomplete)
        )
        neighbours.cosines[neighbours.ids == NO_NEIGHBOUR] = -np.inf
        return neighbours.take(np.argsort(self.order.rows))


def _tiles(
    left: _CellOrder,
    right: _CellOrder,
    cut: Callable[[int, int], list[slice]] = even_blocks,
    only: IntArray | None = None,
) -> Iterator[passes.Tile]:
    """Yield the rows (``only`` some of them) and columns of each cell, both in blocks."""
    wanted = np.full(len(left.rows), only is None)
    if only is not None:
        wanted[only] = True
    for cell in range(len(left.start) - 1):
        rows, columns = left.members(cell), right.members(cell)
        rows = rows[wanted[rows]]
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
    """Find the k nearest of the rows of the other side that share a cell of ``part``, both ways.

    Sides are unit rows (N, D) and (M, D), with the cells of each from ``nearest_cells``. Neighbours
    are (N, min(k, M)) and (M, min(k, N)), their cosines exact. Their ids are the ``names`` of the
    rows, (N,) and (M,), or positions, and -1 where fewer rows share a cell or are as near as the
    ``floors``, float32 (N,) and (M,); with those of ``find_floors`` it takes two thirds of the
    time. ``precision`` is of the product: the fastest here unless given. ``progress`` is called
    with the similarities that a step stands for; they sum to about N * M. Rows that come in the
    order of ``by_nearest_cell`` are not copied.

    A ValueError names k below 1, rows of different dimensions, or an unknown precision.
    """
    k = min(k, max(*map(len, sides), 1))
    left, right, kept = _prepare(sides, cells, part, k, precision, names)
    forward, backward = _generate(left, right, kept, progress, floors)
    own, others = floors or (None, None)
    return left.complete(right, forward, k, own), right.complete(left, backward, k, others)


def find_floors(
    sides: Both,
    cells: tuple[Cells, Cells],
    *,
    part: range,
    k: int,
    precision: Precision | None = None,
    progress: Progress = lambda products: None,
) -> Both:
    """Return for each row of both sides a cosine that k others reach: float32 (N,) and (M,).

    They lie in its nearest cell, as most of the nearest rows do; where there are fewer, -inf. It is
    about the k-th cosine there: of the candidates by ``precision``. Arguments are as ``join_cells``
    takes them.
    """
    k = min(k, max(*map(len, sides), 1))
    left, right, _ = _prepare(sides, (cells[0][:, :1], cells[1][:, :1]), part, k, precision)
    forward, backward = _generate(left, right, k + 1, progress)
    return left.floors(right, forward, k), right.floors(left, backward, k)


def _prepare(
    sides: Both,
    cells: tuple[Cells, Cells],
    part: range,
    k: int,
    precision: Precision | None,
    names: tuple[IntArray, IntArray] | None = None,
) -> tuple[_Side, _Side, int]:
    """Return both sides, and how many candidates a row is to keep."""
    check_search(*sides, k=k)
    orders = [_CellOrder.of(own, part) for own in cells]
    source, target = (rows[at] for rows, at in zip(sides, _in_some_cells(*orders), strict=True))
    tuned = choose(source, target, k=k, precision=precision, tried=PART_TRIAL_ROWS)
    codes = encode_both(*sides, tuned.precision)
    left, right = map(_Side.of, sides, codes, orders, names or (None, None))
    return left, right, tuned.kept


def _generate(
    left: _Side, right: _Side, kept: int, progress: Progress, floors: Both | None = None
) -> tuple[Candidates, Candidates]:
    """Return up to ``kept`` candidates of all rows; the progress of all cells is N times M."""
    forward = Candidates.empty(len(left.rows), min(kept, len(right.rows)))
    backward = Candidates.empty(len(right.rows), min(kept, len(left.rows)))
    if floors is not None:
        forward.floor[:], backward.floor[:] = left.below(floors[0]), right.below(floors[1])
    cut = passes.growing_blocks if floors is None else even_blocks
    tiles = _tiles(left.order, right.order, cut)
    compared = int(left.order.loads() @ right.order.loads())
    share = len(left.rows) * len(right.rows) / max(1, compared)
    passes.generate_candidates(
        *(left.codes, right.codes, tiles, (forward, backward)),
        repeated=True,
        progress=lambda products: progress(round(products * share)),
    )
    return forward, backward


def _in_some_cells(*sides: _CellOrder) -> list[IntArray]:
    """Return the rows of each side that lie in a few near cells: in the midst of all products."""
    products = np.cumsum(np.prod([side.loads() for side in sides], axis=0))
    middle = int(np.searchsorted(products, products[-1] / 2))
    few = range(max(0, middle - TUNING_CELLS // 2), min(len(products), middle + TUNING_CELLS // 2))
    members = [np.concatenate([side.members(cell) for cell in few]) for side in sides]
    return [side.rows[np.unique(places)] for side, places in zip(sides, members, strict=True)]
