"""The passes of a two-way search over its tiles: generate candidates, verify, fallback search.

A tile is a set of rows and a set of columns whose products are computed together: all of them in
turn for an exact search, those that share a cell for a cell join.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Matrix, Neighbours, Rows
from miner.knn.core.candidates import Candidates
from miner.knn.core.codes import Codes
from miner.knn.core.products import compiled_int8, product
from miner.threads import blocks, in_threads

# Places and bounds, see ``miner.knn.core.compiled.hits``.
Hits: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]

logger = logging.getLogger(__name__)

# The products of a tile, 4 MiB of them, are still in the cache when they are looked at.
TILE_ROWS, TILE_COLUMNS = 512, 2048
# How many columns give a row its first floor, step by step: few of a later step exceed the floor of
# those before. With fewer than SEEDED_FROM columns it would cost more than it saves.
SEED_STEPS = 64, 128, 256, 512
LARGE = 2.0**99  # than any bound
SEEDS, SEEDED_FROM = SEED_STEPS[-1], 16 * SEED_STEPS[-1]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Rows and columns by slice or by ascending position; tiles may share some."""

    rows: Rows
    columns: Rows


class Claims:
    """Lets one thread at a time change a row of tables that threads share.

    All rows are claimed at once or none, so threads cannot wait for each other in a circle.
    """

    def __init__(self, *tables: int) -> None:
        """Of tables with so many rows."""
        self._claimed = [np.zeros(rows, dtype=np.bool_) for rows in tables]
        self._freed = threading.Condition()

    @contextmanager
    def on(self, *rows: Rows) -> Iterator[None]:
        """Hold some rows of each table, by slice or by position; waits until none is held."""
        parts = list(zip(self._claimed, rows, strict=True))
        with self._freed:
            self._freed.wait_for(lambda: not any(table[part].any() for table, part in parts))
            self._mark(parts, claimed=True)
        try:
            yield
        finally:
            with self._freed:
                self._mark(parts, claimed=False)
                self._freed.notify_all()

    def _mark(self, parts: list[tuple[NDArray[np.bool_], Rows]], *, claimed: bool) -> None:
        for table, part in parts:
            table[part] = claimed


@cache
def loops() -> ModuleType:
    """Return the compiled loops, which are loaded when first used: Numba takes half a second."""
    from miner.knn.core import compiled

    return compiled


def generate_candidates(
    left: Codes,
    right: Codes,
    tiles: Iterable[Tile],
    *,
    kept: int,
    repeated: bool,
    progress: Callable[[int], None],
) -> tuple[Candidates, Candidates]:
    """Return the ``kept`` candidates of each row of both codes, each tile's products computed once.

    Tiles hold all pairs once or, ``repeated``, some pairs and those perhaps several times.
    """
    forward = Candidates.none(len(left), min(kept, len(right)))
    backward = Candidates.none(len(right), min(kept, len(left)))
    if not repeated:
        forward.floor[:] = first_floors(left, right, kept=forward.bounds.shape[1])
        backward.floor[:] = first_floors(right, left, kept=backward.bounds.shape[1])
    claims = Claims(len(left), len(right))
    counting = threading.Lock()

    def take(tile: Tile) -> None:
        x, y = left.part(tile.rows), right.part(tile.columns)
        found = find_hits(x, y, forward.floor[tile.rows], backward.floor[tile.columns])
        with claims.on(tile.rows, tile.columns):
            above, beside = forward.part(tile.rows), backward.part(tile.columns)
            loops().take(found, x.ids, y.ids, above, beside, repeated)
            forward.put(tile.rows, above)
            backward.put(tile.columns, beside)
        with counting:
            progress(len(x) * len(y))

    in_threads(take, tiles)
    return forward, backward


def first_floors(rows: Codes, columns: Codes, *, kept: int) -> NDArray[np.float32]:
    """Return for each row what all of its ``kept`` best bounds exceed: float32 (N,).

    Computed from a sample of the columns; -inf where there are few. It keeps most columns of the
    first tiles from becoming candidates.
    """
    floors = np.full(len(rows), -np.inf, dtype=np.float32)
    if len(columns) < SEEDED_FROM or kept > SEEDS:
        return floors
    sample = columns.part(np.arange(SEEDS) * len(columns) // SEEDS)
    parts = [sample.part(slice(start, stop)) for start, stop in pairwise((0, *SEED_STEPS))]

    def seed(block: slice) -> None:
        some = rows.part(block)
        found = Candidates.none(len(some), kept)
        for part in parts:
            unwanted = Candidates.none(len(part), 1)
            unwanted.floor[:] = LARGE
            hits = find_hits(some, part, found.floor, unwanted.floor)
            loops().take(hits, some.ids, part.ids, found, unwanted, False)
        floors[block] = np.nextafter(found.floor, np.float32(-np.inf))

    in_threads(seed, blocks(len(rows), TILE_ROWS))
    return floors


def find_hits(
    rows: Codes,
    columns: Codes,
    row_floor: NDArray[np.float32],
    column_floor: NDArray[np.float32],
) -> Hits:
    """Return the products that exceed a floor, which may have risen by the time they are taken."""
    codes = (*rows.terms, row_floor), (*columns.terms, column_floor)
    if rows.numbers.dtype == np.int8 and (vnni := compiled_int8()):
        found: Hits = vnni.hits(rows.numbers, columns.numbers, *codes)
    else:
        found = loops().hits(product(rows.numbers, columns.numbers), rows.slack, *codes)
    return found


def verify(
    queries: tuple[Matrix, Codes], base: Matrix, candidates: Candidates, *, k: int
) -> tuple[Neighbours, NDArray[np.int64]]:
    """Return the best k of the candidates, and the rows that may have better ones left out.

    Candidates are of the codes, as those come: where near rows come one after the other, what they
    have in common stays in the cache.
    """
    rows, codes = queries
    neighbours = Neighbours.none(len(rows), k)
    incomplete = np.zeros(len(rows), dtype=np.bool_)

    def verify_block(block: slice) -> None:
        own = codes.ids[block]
        found = Neighbours.none(len(own), k)
        lists = candidates.part(block), found.ids, found.cosines
        incomplete[own] = loops().verify(rows[own], base, *lists)
        neighbours.ids[own], neighbours.cosines[own] = found.ids, found.cosines

    if k:
        in_threads(verify_block, blocks(len(rows), TILE_ROWS))
    open_rows = np.flatnonzero(incomplete)
    logger.debug("%d of %d rows are searched a second time", len(open_rows), len(rows))
    return neighbours, open_rows


def fallback_search(
    queries: tuple[Matrix, Codes],
    base: tuple[Matrix, Codes],
    neighbours: Neighbours,
    tiles: Iterable[Tile],
) -> None:
    """Complete the neighbours of the tiles' rows among the tiles' columns.

    Tiles are of the codes, which may come in another order than the sides and the neighbours.
    """
    (left, left_codes), (right, right_codes) = queries, base
    claims = Claims(len(left))

    def search(tile: Tile) -> None:
        x, y = left_codes.part(tile.rows), right_codes.part(tile.columns)
        products = product(x.numbers, y.numbers)
        with claims.on(tile.rows):
            found = neighbours.part(x.ids)
            loops().fallback_search(
                *(products, x.slack, left, x.terms, x.ids, right, y.terms, y.ids),
                *(found.ids, found.cosines),
            )
            neighbours.ids[x.ids], neighbours.cosines[x.ids] = found.ids, found.cosines

    in_threads(search, tiles)
