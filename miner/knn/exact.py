"""Exact k nearest neighbours in both directions from one product.

Forward and backward search need the same matrix of similarities; each tile of it is computed once
and its best columns and best rows are both taken. Axes: ``N`` source rows, ``M`` target rows,
``D`` dimensions, ``C`` candidates kept for rescoring.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.knn import plain
from miner.knn.calibration import choose
from miner.knn.candidates import Candidates
from miner.knn.codes import Codes, Precision, encode_both, product
from miner.knn.duplicates import Distinct, expand, find_distinct
from miner.knn.rescore import check_search
from miner.knn.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

logger = logging.getLogger(__name__)

# The products of a tile, 4 MiB of them, are still in the cache when they are looked at.
TILE_ROWS, TILE_COLUMNS = 512, 2048
# From this share of repeated rows on, distinct rows are searched; fewer cost less than their copy.
REPEATED = 1 / 20
# Similarities from which on loading the compiled loops (half a second) pays.
COMPILE_FROM = 1 << 25


def search_both(
    source: Matrix,
    target: Matrix,
    *,
    k: int,
    precision: Precision | None = None,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """The k nearest targets of each source and the k nearest sources of each target.

    Exact: a product in low precision bounds every cosine from above, the candidates with the
    largest bounds are rescored in float64, and a row for which something left out may be better
    (many equal or nearly equal neighbours) is searched again by its bounds. So the result is that
    of a full sort by (cosine descending, position ascending), whatever the tiles, threads and
    precision. Costs 2 * N * M * D operations in the product; working memory is the codes of both
    sides, O((N + M) * C), and a tile for each thread.

    Args:
        source: rows as ``miner.knn.rescore.unit_rows`` makes them, float32 (N, D).
        target: rows as ``unit_rows`` makes them, float32 (M, D).
        k: neighbours of each row; clipped to the size of the other side.
        precision: of the product; what is soonest done here unless given.
        progress: called with the number of similarities computed after each tile.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions.

    Raises:
        ValueError: k below 1, rows of different dimensions, or an unknown precision.
    """
    check_search(source, target, k=k)
    rows, columns = find_distinct(source), find_distinct(target)
    if not (_repetitive(rows) or _repetitive(columns)):
        return _search_distinct(source, target, k, precision, progress)
    repeats = len(source) * len(target) / max(1, len(rows.first) * len(columns.first))
    forward, backward = _search_distinct(
        source[rows.first],
        target[columns.first],
        k,
        precision,
        lambda products: progress(round(products * repeats)),
    )
    return (
        expand(forward, rows, columns, k=min(k, len(target))),
        expand(backward, columns, rows, k=min(k, len(source))),
    )


def _repetitive(rows: Distinct) -> bool:
    return len(rows.first) < (1 - REPEATED) * len(rows.group)


def _search_distinct(
    source: Matrix,
    target: Matrix,
    k: int,
    precision: Precision | None,
    progress: Callable[[int], None],
) -> tuple[Neighbours, Neighbours]:
    proposing = choose(source, target, k=k, precision=precision)
    left, right = encode_both(source, target, proposing.precision)
    loops = _loops(len(left) * len(right))
    forward, backward = _propose(loops, left, right, proposing.kept, progress)
    return (
        _certified(loops, left, right, forward, k=min(k, len(right))),
        _certified(loops, right, left, backward, k=min(k, len(left))),
    )


def inner_loops() -> ModuleType:
    """The inner loops that large searches use."""
    return _loops(COMPILE_FROM)


def _loops(similarities: int) -> ModuleType:
    """The inner loops to use: ``compiled``, or ``plain`` for small matrices and without Numba."""
    return (similarities >= COMPILE_FROM and _compiled()) or plain


@cache
def _compiled() -> ModuleType | None:
    try:
        from miner.knn import compiled
    except ImportError as error:
        logger.warning("Numba cannot be used (%s); searches take several times as long", error)
        return None
    return compiled


def _blocks(rows: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def _propose(
    loops: ModuleType,
    left: Codes,
    right: Codes,
    kept: int,
    progress: Callable[[int], None],
) -> tuple[Candidates, Candidates]:
    """The candidates of both sides, each product computed once."""
    forward = Candidates.none(len(left), min(kept, len(right)))
    backward = Candidates.none(len(right), min(kept, len(left)))
    tops, lefts = _blocks(len(left), TILE_ROWS), _blocks(len(right), TILE_COLUMNS)
    row_locks, column_locks = [threading.Lock() for _ in tops], [threading.Lock() for _ in lefts]
    counting = threading.Lock()

    def tiles() -> Iterator[tuple[int, int]]:
        # Diagonally, so that threads at work on neighbouring tiles share neither rows nor columns.
        for step in range(len(lefts)):
            for top in range(len(tops)):
                yield top, (top + step) % len(lefts)

    def take(tile: tuple[int, int]) -> None:
        rows, columns = tops[tile[0]], lefts[tile[1]]
        x, y = left.part(rows), right.part(columns)
        products = product(x.numbers, y.numbers)
        with row_locks[tile[0]], column_locks[tile[1]]:
            above, beside = forward.part(rows), backward.part(columns)
            loops.take(products, x, y, above, beside, top=rows.start, left=columns.start)
        with counting:
            progress(products.numel())

    in_threads(take, tiles())
    return forward, backward


def _certified(
    loops: ModuleType, queries: Codes, base: Codes, candidates: Candidates, *, k: int
) -> Neighbours:
    """Rescore the candidates; search on for those rows whose candidates may be incomplete."""
    shape = len(queries), k
    neighbours = Neighbours(
        ids=np.full(shape, NO_NEIGHBOUR, dtype=np.int64),
        cosines=np.full(shape, -np.inf, dtype=np.float32),
    )
    if k == 0:
        return neighbours
    unsettled = np.zeros(len(queries), dtype=np.bool_)

    def settle(rows: slice) -> None:
        found = neighbours.part(rows)
        unsettled[rows] = loops.settle(queries.rows[rows], base.rows, candidates.part(rows), found)

    in_threads(settle, _blocks(len(queries), TILE_ROWS))
    if candidates.ids.shape[1] < len(base):
        _search_on(loops, queries, base, neighbours, np.flatnonzero(unsettled))
    return neighbours


def _search_on(
    loops: ModuleType,
    queries: Codes,
    base: Codes,
    neighbours: Neighbours,
    rows: NDArray[np.int64],
) -> None:
    """Complete the neighbours of some rows, from those that they have."""
    logger.debug("%d of %d rows are searched a second time", len(rows), len(queries))

    def search(block: slice) -> None:
        some = rows[block]
        x, found = queries.part(some), neighbours.part(some)
        for columns in _blocks(len(base), TILE_COLUMNS):
            y = base.part(columns)
            loops.search_on(product(x.numbers, y.numbers), x, y, found, left=columns.start)
        neighbours.ids[some], neighbours.cosines[some] = found.ids, found.cosines

    in_threads(search, _blocks(len(rows), TILE_ROWS))
