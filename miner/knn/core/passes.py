"""The passes of a two-way search over tiles of products.

A tile is a set of rows of one side and a set of rows of the other (the tile's columns) whose
products are computed together. The tiles of an exact search cover all pairs, the tiles of a cell
join the pairs in shared cells. Products of codes bound cosines from above. Where a bound exceeds
the K-th best cosine so far of its row or column, the exact cosine is computed. Axes: ``N`` rows,
``K`` neighbours.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Matrix, Neighbours, Rows, evenly_spaced
from miner.knn.core.codes import Codes, product_rounding
from miner.knn.core.products import LARGE, compiled_int8, int8_kernels, loops, product
from miner.threads import blocks, run_in_threads, thread_count

# Positions and bounds, see ``miner.knn.core.compiled.hits``.
Hits: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
Side: TypeAlias = tuple[Matrix, Codes]  # unit rows (N, D) and their codes

TILE_ROWS, TILE_COLUMNS = 512, 2048  # 4 MiB of products, which stay in the cache
FUSED_ROWS = 2048  # of a tile whose products stay in registers: vectors are read less often
# Blocks grow, because without floors all products are hits.
FIRST_BLOCK_ROWS = 32
GROWTH = 3  # factor per block
SEEDS = 128  # columns that give a row its first floor
MIN_COLUMNS_TO_SEED = 64 * 128  # with fewer, seeds cost more than they save


class Tile(NamedTuple):
    """A tile's rows and columns, slices of two ints or ascending positions."""

    rows: Rows
    columns: Rows


class TopK(NamedTuple):
    """The K nearest neighbours so far of each of N rows.

    ``ids``, int64 (N, K), and ``cosines``, float32 (N, K), are best first, ties by id, and -1 and
    -inf if unused. Only cosines above ``floors``, float32 (N,), are inserted.
    """

    ids: NDArray[np.int64]
    cosines: NDArray[np.float32]
    floors: NDArray[np.float32]

    @classmethod
    def empty(cls, rows: int, k: int) -> Self:
        """Return unused neighbours, with floors of -inf, or of 2**99 if k is 0."""
        none = Neighbours.empty(rows, k)
        floors = np.full(rows, -np.inf if k else LARGE, dtype=np.float32)
        return cls(ids=none.ids, cosines=none.cosines, floors=floors)

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours without floors, which share their memory."""
        return Neighbours(ids=self.ids, cosines=self.cosines)


class RowLocks:
    """Locks of single rows of shared tables, for threads.

    Each of ``tables`` is a table's number of rows, and ``threads`` that of working threads. All
    requested rows are locked at once or none, so threads cannot deadlock. One thread locks nothing.
    """

    def __init__(self, *tables: int, threads: int) -> None:
        self.threads = threads
        self._claimed = [np.zeros(rows, dtype=np.bool_) for rows in tables]
        self._freed = threading.Condition()

    @contextmanager
    def acquire(self, *rows: Rows) -> Iterator[None]:
        """Lock a slice or positions per table in a ``with`` block, once free."""
        if self.threads == 1:
            yield
            return
        parts = list(zip(self._claimed, rows, strict=True))
        with self._freed:
            self._freed.wait_for(lambda: not any(table[part].any() for table, part in parts))
            for table, part in parts:
                table[part] = True
        try:
            yield
        finally:
            with self._freed:
                for table, part in parts:
                    table[part] = False
                self._freed.notify_all()


def compare(
    left: Side,
    right: Side,
    tiles: Iterable[Tile],
    both: tuple[TopK, TopK],
    *,
    repeated: bool = False,
    progress: Callable[[int], None] = lambda products: None,
) -> None:
    """Compare the pairs of all tiles, and update both sides' neighbours.

    Args:
        left: unit rows of one side, and their codes, whose ids the neighbours get.
        right: unit rows of the other side, and their codes.
        tiles: tiles of the pairs to compare. Rows are of ``left``, columns of ``right``.
        both: neighbours of ``left``, and of ``right``, updated in place. A side with a K of 0
            is not searched.
        repeated: whether pairs may be in several tiles, or in the neighbours already.
        progress: called with the number of products after each tile, by one thread at a time.
    """
    (x, left_codes), (y, right_codes) = left, right
    claims = RowLocks(len(x), len(y), threads=thread_count())
    counting = threading.Lock()
    rounding = np.float32(2 * product_rounding("float32", x.shape[1]))

    def take(tile: Tile) -> None:
        rows, columns = left_codes.take(tile.rows), right_codes.take(tile.columns)
        hits = find_hits(rows, columns, both[0].floors[tile.rows], both[1].floors[tile.columns])
        places = _places(tile.rows), _places(tile.columns)
        names = left_codes.ids, right_codes.ids
        with claims.acquire(tile.rows, tile.columns):
            loops().take(hits, places, (x, y), names, both, rounding, repeated)
        with counting:
            progress(len(rows) * len(columns))

    run_in_threads(take, tiles, count=claims.threads)


def _places(rows: Rows) -> NDArray[np.integer]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def initial_floors(rows: Matrix, columns: Matrix, *, k: int) -> NDArray[np.float32]:
    """Return a floor just below each row's k-th cosine among sampled columns.

    ``rows`` (N, D) and ``columns`` (M, D) are unit rows. The floors, float32 (N,), are -inf if
    there are fewer than 8,192 columns, or k is above 128.
    """
    floors = np.full(len(rows), -np.inf, dtype=np.float32)
    if len(columns) < MIN_COLUMNS_TO_SEED or k > SEEDS:
        return floors
    sample = columns[evenly_spaced(len(columns), SEEDS)].T
    rounding = np.float32(2 * product_rounding("float32", rows.shape[1]))

    def seed(block: slice) -> None:
        products = rows[block] @ sample
        floors[block] = np.partition(products, SEEDS - k, axis=1)[:, SEEDS - k] - rounding

    run_in_threads(seed, blocks(len(rows), TILE_ROWS))
    return floors


def best_columns(rows: Codes, columns: Codes, *, kept: int) -> tuple[Matrix, NDArray[np.int32]]:
    """Return the ``kept`` columns with the largest bounds for each row.

    Bounds are float32 (R, kept), largest first, and ids of ``columns`` int32 (R, kept). Of equal
    bounds, the first columns stay. If columns are fewer, the last are -inf and -1.
    """
    bounds = np.full((len(rows), kept), -np.inf, dtype=np.float32)
    ids = np.full((len(rows), kept), NO_NEIGHBOUR, dtype=np.int32)
    for block in growing_blocks(len(columns), TILE_COLUMNS):
        part = columns.take(block)
        hits = find_hits(rows, part, bounds[:, -1], np.full(len(part), LARGE, dtype=np.float32))
        loops().keep_largest(hits, part.ids, bounds, ids)
    return bounds, ids


def growing_blocks(rows: int, size: int) -> list[slice]:
    """Split ``rows`` rows into slices that grow threefold, 32 to ``size``."""
    slices, start, length = [], 0, min(FIRST_BLOCK_ROWS, size)
    while start < rows:
        slices.append(slice(start, min(start + length, rows)))
        start, length = start + length, min(GROWTH * length, size)
    return slices


def find_hits(rows: Codes, columns: Codes, row_floor: Matrix, column_floor: Matrix) -> Hits:
    """Return the pairs of rows and columns whose bounds exceed a floor.

    The bound must exceed the floor of the row or of the column, float32 (R,) and (C,). Neither side
    is empty. Hits are row times C plus column, int32 (H,), and bounds, float32 (H,). A row's
    columns ascend. Errors of ``product`` are raised.
    """
    codes = (*rows.terms, row_floor), (*columns.terms, column_floor)
    if kernels := _kernels_for(rows):
        hits: Hits = kernels.hits(rows.numbers, columns.numbers, *codes)
    else:
        hits = loops().hits(product(rows.numbers, columns.numbers), rows.slack, *codes)
    return hits


def rows_per_tile(codes: Codes) -> int:
    """Return the number of rows with which tiles of codes are fastest."""
    return FUSED_ROWS if _kernels_for(codes) else TILE_ROWS


def _kernels_for(codes: Codes) -> ModuleType | None:
    """Return the module that compares products of codes in registers, if any."""
    kind = codes.numbers.dtype
    return compiled_int8() if kind == np.int8 else int8_kernels() if kind == np.int16 else None
