"""The passes of a two-way search over its tiles: propose, settle, search on.

A tile is a set of rows and a set of columns whose products are computed together: all of them in
turn for an exact search, those that share a cell for a cell join.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn import plain
from miner.knn.candidates import Candidates
from miner.knn.codes import Codes, product
from miner.knn.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Rows = slice | NDArray[np.int64]

logger = logging.getLogger(__name__)

# The products of a tile, 4 MiB of them, are still in the cache when they are looked at.
TILE_ROWS, TILE_COLUMNS = 512, 2048
# Similarities from which on loading the compiled loops (half a second) pays.
COMPILE_FROM = 1 << 25


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Rows and columns by slice or by ascending position.

    ``locks`` are held while their candidates change: tiles that share a row or a column share one.
    """

    rows: Rows
    columns: Rows
    locks: Sequence[threading.Lock]


def blocks(rows: int, size: int) -> list[slice]:
    """Slices of at most ``size`` rows that make up all."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def loops_for(similarities: int) -> ModuleType:
    """The inner loops to use: ``compiled``, or ``plain`` for small searches and without Numba."""
    return (similarities >= COMPILE_FROM and _compiled()) or plain


@cache
def _compiled() -> ModuleType | None:
    try:
        from miner.knn import compiled
    except ImportError as error:
        logger.warning("Numba cannot be used (%s); searches take several times as long", error)
        return None
    return compiled


def propose(
    loops: ModuleType,
    left: Codes,
    right: Codes,
    tiles: Iterable[Tile],
    *,
    kept: int,
    repeated: bool,
    progress: Callable[[int], None],
) -> tuple[Candidates, Candidates]:
    """The ``kept`` candidates of each row of both sides, each product computed once.

    ``repeated`` says that a pair may be in several tiles.
    """
    forward = Candidates.none(len(left), min(kept, len(right)))
    backward = Candidates.none(len(right), min(kept, len(left)))
    row_ids, column_ids = (np.arange(len(side), dtype=np.int32) for side in (left, right))
    counting = threading.Lock()

    def take(tile: Tile) -> None:
        x, y = left.part(tile.rows), right.part(tile.columns)
        products = product(x.numbers, y.numbers)
        with ExitStack() as held:
            for lock in tile.locks:
                held.enter_context(lock)
            above, beside = forward.part(tile.rows), backward.part(tile.columns)
            loops.take(
                *(products, x, y, above, beside),
                row_ids=row_ids[tile.rows],
                column_ids=column_ids[tile.columns],
                repeated=repeated,
            )
            forward.put(tile.rows, above)
            backward.put(tile.columns, beside)
        with counting:
            progress(products.numel())

    in_threads(take, tiles)
    return forward, backward


def settle(
    loops: ModuleType, queries: Matrix, base: Matrix, candidates: Candidates, *, k: int
) -> tuple[Neighbours, NDArray[np.int64]]:
    """The best k of the candidates, and the rows for which something left out may be better."""
    neighbours = Neighbours.none(len(queries), k)
    unsettled = np.zeros(len(queries), dtype=np.bool_)

    def settle_block(rows: slice) -> None:
        unsettled[rows] = loops.settle(
            queries[rows], base, candidates.part(rows), neighbours.part(rows)
        )

    if k:
        in_threads(settle_block, blocks(len(queries), TILE_ROWS))
    open_rows = np.flatnonzero(unsettled)
    logger.debug("%d of %d rows are searched a second time", len(open_rows), len(queries))
    return neighbours, open_rows


def search_on(
    loops: ModuleType,
    queries: tuple[Matrix, Codes],
    base: tuple[Matrix, Codes],
    neighbours: Neighbours,
    tiles: Iterable[Tile],
) -> None:
    """Complete the neighbours of the tiles' rows among the tiles' columns."""
    (left, left_codes), (right, right_codes) = queries, base
    row_ids, column_ids = np.arange(len(left)), np.arange(len(right))

    def search(tile: Tile) -> None:
        x, y = left_codes.part(tile.rows), right_codes.part(tile.columns)
        products = product(x.numbers, y.numbers)
        with ExitStack() as held:
            for lock in tile.locks:
                held.enter_context(lock)
            found = neighbours.part(tile.rows)
            loops.search_on(
                *(products, x, y, left, right, found),
                row_ids=row_ids[tile.rows],
                column_ids=column_ids[tile.columns],
            )
            neighbours.ids[tile.rows], neighbours.cosines[tile.rows] = found.ids, found.cosines

    in_threads(search, tiles)
