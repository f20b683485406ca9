"""The passes of a two-way search over its tiles: generate candidates, verify, fallback search.

A tile is a set of rows and a set of columns whose products are computed together: all of them in
turn for an exact search, those that share a cell for a cell join.
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

# Places and bounds, see ``miner.knn.core.compiled.hits``.
Hits: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
Side: TypeAlias = tuple[Matrix, Codes]  # unit rows (N, D) and what they are coded as

logger = logging.getLogger(__name__)

# The products of a tile, 4 MiB of them, are still in the cache when they are looked at.
TILE_ROWS, TILE_COLUMNS = 512, 2048
# Columns that are looked at first, and how fast further ones grow in number: while there are no
# candidates yet, all products are hits.
FIRST_BLOCK_ROWS, GROWTH = 32, 3
# How many columns give a row its first floor. With fewer than SEEDED_FROM columns it would cost
# more than it saves.
SEEDS, MIN_COLUMNS_TO_SEED = 512, 16 * 512


class Tile(NamedTuple):
    """Rows and columns by slice or by ascending position; tiles may share some."""

    rows: Rows
    columns: Rows


class Candidates(NamedTuple):
    """Of N rows the C columns with the largest bounds so far, best first, while tiles go by.

    ``bounds`` is float32 (N, C), -inf where fewer were seen; ``ids`` int32 (N, C), -1 there.
    ``floor``, float32 (N,), is the last bound of each row, or higher: no column left out has a
    larger one.
    """

    bounds: NDArray[np.float32]
    ids: NDArray[np.int32]
    floor: NDArray[np.float32]

    @classmethod
    def empty(cls, rows: int, kept: int) -> Self:
        """Room for ``kept`` candidates of each row."""
        return cls(
            bounds=np.full((rows, kept), -np.inf, dtype=np.float32),
            ids=np.full((rows, kept), NO_NEIGHBOUR, dtype=np.int32),
            floor=np.full(rows, -np.inf, dtype=np.float32),
        )

    def take(self, rows: Rows) -> Self:
        """Return those of some rows: a view of a slice, a copy of what positions name."""
        return type(self)(*(take_rows(field, rows) for field in self))


class RowLocks:
    """Lets one of some threads at a time change a row of tables (of so many rows) that they share.

    All rows are claimed at once or none, so threads cannot wait for each other in a circle. One
    thread alone claims nothing.
    """

    def __init__(self, *tables: int, threads: int) -> None:
        self.threads = threads
        self._claimed = [np.zeros(rows, dtype=np.bool_) for rows in tables]
        self._freed = threading.Condition()

    @contextmanager
    def acquire(self, *rows: Rows) -> Iterator[None]:
        """Hold some rows of each table, by slice or by position; waits until none is held."""
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
    """Take the candidates of each row of both codes, each tile's products computed once.

    Tiles hold all pairs once or, ``repeated``, some pairs and those perhaps several times.
    """
    forward, backward = candidates
    claims = RowLocks(len(left), len(right), threads=thread_count())
    counting = threading.Lock()

    def take(tile: Tile) -> None:
        x, y = left.take(tile.rows), right.take(tile.columns)
        found = find_hits(x, y, forward.floor[tile.rows], backward.floor[tile.columns])
        rows, columns = _places(tile.rows), _places(tile.columns)
        with claims.acquire(tile.rows, tile.columns):
            loops().take(found, (rows, rows), (columns, columns), forward, backward, repeated)
        with counting:
            progress(len(x) * len(y))

    run_in_threads(take, tiles, count=claims.threads)


def _places(rows: Rows) -> NDArray[np.int64]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def initial_candidates(left: Codes, right: Codes, *, kept: int) -> tuple[Candidates, Candidates]:
    """Return room for ``kept`` candidates of each row of both codes, above their first floors.

    These are below the ``kept`` best bounds of a sample of the columns, or -inf where there are
    few: they keep most columns of the first tiles from becoming candidates.
    """
    return _seeded(left, right, kept), _seeded(right, left, kept)


def _seeded(rows: Codes, columns: Codes, kept: int) -> Candidates:
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
    """Return the ``kept`` columns of each row with the largest bounds, of equals the first."""
    found, own = Candidates.empty(len(rows), kept), (np.arange(len(rows)), rows.ids)
    for block in growing_blocks(len(columns), TILE_COLUMNS):
        part = columns.take(block)
        unwanted = Candidates.empty(len(part), 1)
        unwanted.floor[:] = LARGE
        hits, beside = find_hits(rows, part, found.floor, unwanted.floor), np.arange(len(part))
        loops().take(hits, own, (beside, part.ids), found, unwanted, False)
    return found


def growing_blocks(rows: int, size: int) -> list[slice]:
    """Return slices that make up all rows, small ones first: those that come after meet floors."""
    found, start, length = [], 0, min(FIRST_BLOCK_ROWS, size)
    while start < rows:
        found.append(slice(start, min(start + length, rows)))
        start, length = start + length, min(GROWTH * length, size)
    return found


def find_hits(rows: Codes, columns: Codes, row_floor: Matrix, column_floor: Matrix) -> Hits:
    """Return the products that exceed a floor, which may have risen by the time they are taken."""
    codes = (*rows.terms, row_floor), (*columns.terms, column_floor)
    kind = rows.numbers.dtype
    kernels = compiled_int8() if kind == np.int8 else int8_kernels() if kind == np.int16 else None
    if kernels:
        found: Hits = kernels.hits(rows.numbers, columns.numbers, *codes)
    else:
        found = loops().hits(product(rows.numbers, columns.numbers), rows.slack, *codes)
    return found


def verify(
    queries: Side, base: Side, candidates: Candidates, *, k: int, floors: Matrix | None = None
) -> tuple[Neighbours, NDArray[np.int64]]:
    """Return the best k of the candidates, and the rows that may have better ones left out.

    Rows come as their codes do, and candidates are places in the base. Where near rows come one
    after the other, what they have in common stays in the cache. Neighbours exceed their row's
    floor, float32 (N,), if there are floors; where there is no neighbour, that is the cosine.
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
    """Complete the neighbours, in the order of codes, of tiles' rows among the tiles' columns."""
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
