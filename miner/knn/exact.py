"""Exact k nearest neighbours in both directions from one product.

Forward and backward search need the same matrix of similarities; each tile of it is computed once
and its best columns and best rows are both taken. Axes: ``N`` source rows, ``M`` target rows,
``D`` dimensions, ``C`` candidates kept for rescoring.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.core import passes
from miner.knn.core.candidates import Candidates
from miner.knn.core.codes import Codes, Precision, encode_both
from miner.knn.core.passes import Tile, fallback_search, generate_candidates, loops_for, verify
from miner.knn.core.rescore import check_search
from miner.knn.core.tuning import choose
from miner.knn.duplicates import Distinct, expand, find_distinct
from miner.knn.gpu.cuda import ROUNDING, DeviceError, generate_on_devices, usable_devices
from miner.threads import blocks

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from miner.knn.core.device_candidates import DeviceCandidates

    Matrix = NDArray[np.float32]

logger = logging.getLogger(__name__)

# From this share of repeated rows on, distinct rows are searched; fewer cost less than their copy.
REPEATED = 1 / 20


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
        source: rows as ``miner.knn.core.rescore.unit_rows`` makes them, float32 (N, D).
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
    loops = loops_for(len(source) * len(target))
    devices = _devices(len(source) * len(target)) if precision in (None, "bfloat16") else []
    if devices:
        try:
            return _search_on_devices(loops, source, target, k, devices, progress)
        except DeviceError as error:
            logger.warning("%s; searching on the processor instead", error)
    tuned = choose(source, target, k=k, precision=precision)
    left, right = encode_both(source, target, tuned.precision)
    forward, backward = generate_candidates(
        *(loops, left, right, _tiles(len(left), len(right))),
        kept=tuned.kept,
        repeated=False,
        progress=progress,
    )
    return _complete_both(loops, (source, left), (target, right), forward, backward, k)


def _devices(similarities: int) -> list[torch.device]:
    """The devices that are worth their trouble for so many similarities."""
    return _devices_of_process() if similarities >= passes.COMPILE_FROM else []


@cache
def _devices_of_process() -> list[torch.device]:
    return usable_devices()


def _search_on_devices(
    loops: ModuleType,
    source: Matrix,
    target: Matrix,
    k: int,
    devices: Sequence[torch.device],
    progress: Callable[[int], None],
) -> tuple[Neighbours, Neighbours]:
    """Candidates from the devices; the rest as ever.

    Devices rank by products, so vectors are not centred; what was left out is bounded by the least
    product that was kept and the largest errors of rounding.
    """
    kept = choose(source, target, k=k, precision="bfloat16").kept
    left, right = encode_both(source, target, "bfloat16", centred=False)
    found = generate_on_devices(
        left.numbers, right.numbers, kept=kept, devices=devices, progress=progress
    )
    forward = _with_bounds(found[0], left, right, source.shape[1])
    backward = _with_bounds(found[1], right, left, source.shape[1])
    return _complete_both(loops, (source, left), (target, right), forward, backward, k)


def _with_bounds(found: DeviceCandidates, queries: Codes, base: Codes, dim: int) -> Candidates:
    """Candidates of which nothing is known but the product that bounds all others."""
    rounding = ROUNDING * dim + base.bias.max(initial=-np.inf)
    floor = found.floor.astype(np.float64) + queries.bias + rounding
    return Candidates(
        bounds=np.full(found.ids.shape, np.inf, dtype=np.float32),
        ids=found.ids.astype(np.int32),
        floor=np.nextafter(floor.astype(np.float32), np.float32(np.inf)),
    )


def _complete_both(
    loops: ModuleType,
    sources: tuple[Matrix, Codes],
    targets: tuple[Matrix, Codes],
    forward: Candidates,
    backward: Candidates,
    k: int,
) -> tuple[Neighbours, Neighbours]:
    source, target = sources[0], targets[0]
    return (
        _complete(loops, sources, targets, forward, k=min(k, len(target))),
        _complete(loops, targets, sources, backward, k=min(k, len(source))),
    )


def _complete(
    loops: ModuleType,
    queries: tuple[Matrix, Codes],
    base: tuple[Matrix, Codes],
    candidates: Candidates,
    *,
    k: int,
) -> Neighbours:
    """Rescore the candidates; search again for those rows whose candidates may be incomplete."""
    neighbours, incomplete = verify(loops, queries[0], base[0], candidates, k=k)
    if candidates.ids.shape[1] < len(base[0]):
        fallback_search(loops, queries, base, neighbours, _tiles_of(incomplete, len(base[0])))
    return neighbours


def _tiles(rows: int, columns: int) -> Iterator[Tile]:
    """All products, diagonally: neighbouring tiles share neither rows nor columns."""
    tops, lefts = blocks(rows, passes.TILE_ROWS), blocks(columns, passes.TILE_COLUMNS)
    for step in range(len(lefts)):
        for number, top in enumerate(tops):
            yield Tile(rows=top, columns=lefts[(number + step) % len(lefts)])


def _tiles_of(rows: NDArray[np.int64], columns: int) -> Iterator[Tile]:
    """The products of some rows."""
    for left in blocks(columns, passes.TILE_COLUMNS):
        for top in blocks(len(rows), passes.TILE_ROWS):
            yield Tile(rows=rows[top], columns=left)
