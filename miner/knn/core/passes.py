"""The passes of a two-way search over tiles of products.

A tile is a set of rows of one side and a set of rows of the other (the tile's columns) whose
products are computed together. The tiles of an exact search cover all pairs, the tiles of a cell
join the pairs in shared cells. Axes: ``N`` rows, ``C`` candidates per row, ``K`` neighbours.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Matrix, Neighbours, Rows, evenly_spaced, take_rows
from miner.knn.core.codes import Codes
from miner.knn.core.products import LARGE, compiled_int8, int8_kernels, loops, product
from miner.threads import blocks, run_in_threads, thread_count

# Positions and bounds, see ``miner.knn.core.compiled.hits``.
Hits: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
Side: TypeAlias = tuple[Matrix, Codes]  # unit rows (N, D) and their codes

logger = logging.getLogger(__name__)

TILE_ROWS, TILE_COLUMNS = 512, 2048  # 4 MiB of products, which stay in the cache
# Blocks grow, because without candidates all products are hits.
FIRST_BLOCK_ROWS = 32
GROWTH = 3  # factor per block
SEEDS = 512  # columns that give a row its first floor
MIN_COLUMNS_TO_SEED = 16 * 512  # with fewer, seeds cost more than they save


class Tile(NamedTuple):
    """The rows and the columns of a tile, each a slice or ascending positions."""

    rows: Rows
    columns: Rows


class Candidates(NamedTuple):
    """The C candidates of each of N rows, largest bounds first.

    ``bounds``, float32 (N, C), is -inf and ``ids``, int32 (N, C), is -1 for unused candidates.
    ``floor``, float32 (N,), is at least each row's last bound. All compared rows that are not
    candidates have bounds up to the floor.
    """

    bounds: NDArray[np.float32]
    ids: NDArray[np.int32]
    floor: NDArray[np.float32]

    @classmethod
    def empty(cls, rows: int, kept: int) -> Self:
        """Return ``kept`` unused candidates per row, with floors of -inf."""
        return cls(
            bounds=np.full((rows, kept), -np.inf, dtype=np.float32),
            ids=np.full((rows, kept), NO_NEIGHBOUR, dtype=np.int32),
            floor=np.full(rows, -np.inf, dtype=np.float32),
        )

    def take(self, rows: Rows) -> Self:
        """Return the candidates of the rows in a slice or at positions, in order."""
        return type(self)(*(take_rows(field, rows) for field in self))


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
        """Lock rows of each table in a ``with`` block, once all are free.

        Pass one slice or array of ascending positions per table.
        """
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


def generate_candidates(
    left: Codes,
    right: Codes,
    tiles: Iterable[Tile],
    candidates: tuple[Candidates, Candidates],
    *,
    repeated: bool,
    progress: Callable[[int], None],
) -> None:
    """Compare the pairs of all tiles, and update both sides' candidates.

    Args:
        left: codes of one side.
        right: codes of the other side.
        tiles: tiles of the pairs to compare. Rows are of ``left``, columns of ``right``.
        candidates: candidates of ``left``, and of ``right``, updated in place.
        repeated: whether several tiles may contain the same pair.
        progress: called with the number of products after each tile, by one thread at a time.
    """
    forward, backward = candidates
    claims = RowLocks(len(left), len(right), threads=thread_count())
    counting = threading.Lock()

    def take(tile: Tile) -> None:
        x, y = left.take(tile.rows), right.take(tile.columns)
        hits = find_hits(x, y, forward.floor[tile.rows], backward.floor[tile.columns])
        rows, columns = _places(tile.rows), _places(tile.columns)
        with claims.acquire(tile.rows, tile.columns):
            loops().take(hits, (rows, rows), (columns, columns), forward, backward, repeated)
        with counting:
            progress(len(x) * len(y))

    run_in_threads(take, tiles, count=claims.threads)


def _places(rows: Rows) -> NDArray[np.integer]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def initial_candidates(rows: Codes, columns: Codes, *, kept: int) -> Candidates:
    """Return ``kept`` unused candidates per row, with floors.

    A row's floor is just below its ``kept`` largest bounds among sampled columns, or -inf with
    fewer than ``MIN_COLUMNS_TO_SEED`` columns, or ``kept`` above ``SEEDS``. ``kept`` is limited to
    the number of columns.
    """
    kept = min(kept, len(columns))
    candidates = Candidates.empty(len(rows), kept)
    if len(columns) < MIN_COLUMNS_TO_SEED or kept > SEEDS:
        return candidates
    sample = columns.take(evenly_spaced(len(columns), SEEDS))

    def seed(block: slice) -> None:
        floor = best_columns(rows.take(block), sample, kept=kept).floor
        candidates.floor[block] = np.nextafter(floor, np.float32(-np.inf))

    run_in_threads(seed, blocks(len(rows), TILE_ROWS))
    return candidates


def best_columns(rows: Codes, columns: Codes, *, kept: int) -> Candidates:
    """Return the ``kept`` columns with the largest bounds for each row.

    Of equal bounds, the first columns stay. Ids are from ``columns``, -1 if there are fewer.
    """
    candidates, own = Candidates.empty(len(rows), kept), (np.arange(len(rows)), rows.ids)
    for block in growing_blocks(len(columns), TILE_COLUMNS):
        part = columns.take(block)
        unwanted = Candidates.empty(len(part), 1)
        unwanted.floor[:] = LARGE
        hits, beside = find_hits(rows, part, candidates.floor, unwanted.floor), np.arange(len(part))
        loops().take(hits, own, (beside, part.ids), candidates, unwanted, False)
    return candidates


def growing_blocks(rows: int, size: int) -> list[slice]:
    """Split rows into slices of 32 rows, then of three times as many each.

    Slices grow up to ``size`` rows. Floors are low at first, so most products exceed them.
    """
    slices, start, length = [], 0, min(FIRST_BLOCK_ROWS, size)
    while start < rows:
        slices.append(slice(start, min(start + length, rows)))
        start, length = start + length, min(GROWTH * length, size)
    return slices


def find_hits(rows: Codes, columns: Codes, row_floor: Matrix, column_floor: Matrix) -> Hits:
    """Return the pairs of rows and columns whose bounds exceed a floor.

    The bound must exceed the floor of the row or of the column, float32 (R,) and (C,). Because
    floors may rise later, users of the hits must compare the bounds again.

    Returns:
        Row times C plus column, int32 (H,), and bounds, float32 (H,).
    """
    codes = (*rows.terms, row_floor), (*columns.terms, column_floor)
    kind = rows.numbers.dtype
    kernels = compiled_int8() if kind == np.int8 else int8_kernels() if kind == np.int16 else None
    if kernels:
        hits: Hits = kernels.hits(rows.numbers, columns.numbers, *codes)
    else:
        hits = loops().hits(product(rows.numbers, columns.numbers), rows.slack, *codes)
    return hits


def verify(
    queries: Side, base: Side, candidates: Candidates, *, k: int, floors: Matrix | None = None
) -> tuple[Neighbours, NDArray[np.int64]]:
    """Return the best k candidates by exact cosines, and incomplete rows.

    Args:
        queries: unit rows (N, D) and their codes.
        base: unit rows (M, D) and their codes. Ids of neighbours are from these codes.
        candidates: candidates of the queries. Ids are positions in ``base``.
        k: neighbours per row.
        floors: cosines that neighbours must exceed, float32 (N,), or None. They fill unused
            columns.

    Returns:
        Neighbours (N, k), best first, and the rows that may have better ones, int64, ascending.
    """
    (rows, _), (others, other_codes) = queries, base
    neighbours = Neighbours.empty(len(rows), k)
    if floors is not None:
        neighbours.cosines[:] = floors[:, None]
    incomplete = np.zeros(len(rows), dtype=np.bool_)

    def verify_block(block: slice) -> None:
        lists = neighbours.ids[block], neighbours.cosines[block], incomplete[block]
        loops().verify(rows[block], others, other_codes.ids, candidates.take(block), *lists)

    if k:
        run_in_threads(verify_block, blocks(len(rows), TILE_ROWS))
    open_rows = np.flatnonzero(incomplete)
    logger.debug("%d of %d rows are searched a second time", len(open_rows), len(rows))
    return neighbours, open_rows


def fallback_search(
    queries: Side, base: Side, neighbours: Neighbours, tiles: Iterable[Tile]
) -> None:
    """Insert the best columns of tiles into the neighbours of their rows.

    ``neighbours`` (N, k) are updated in place. ``queries`` and ``base`` are unit rows and their
    codes. A row's are complete if its tiles have all columns that it is compared with.
    """
    (left, left_codes), (right, right_codes) = queries, base
    claims = RowLocks(len(left), threads=thread_count())

    def search(tile: Tile) -> None:
        x, y = left_codes.take(tile.rows), right_codes.take(tile.columns)
        below = np.nextafter(neighbours.cosines[tile.rows, -1], np.float32(-np.inf))
        hits = find_hits(x, y, below, np.full(len(y), LARGE, dtype=np.float32))
        rows, columns = _places(tile.rows), _places(tile.columns)
        with claims.acquire(tile.rows):
            lists = take_rows(neighbours.ids, rows), take_rows(neighbours.cosines, rows)
            loops().fallback_search(hits, left, rows, right, columns, right_codes.ids, lists)
            neighbours.ids[rows], neighbours.cosines[rows] = lists

    run_in_threads(search, tiles, count=claims.threads)
