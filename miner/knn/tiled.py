"""Search exactly, by tiles of products for both directions."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from miner.arrays import Matrix, Neighbours
from miner.knn.core import passes
from miner.knn.core.codes import Codes, Precision, encode_both
from miner.knn.core.passes import Side, TopK
from miner.knn.core.products import bfloat16_rows, torch_pays
from miner.knn.core.rescore import rescore
from miner.knn.core.tuning import candidates_per_row, choose_codes
from miner.threads import blocks, thread_count

if TYPE_CHECKING:
    import torch

    from miner.knn.gpu.keys import DeviceCandidates

logger = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int], None]  # is called with numbers of computed similarities

# Linux's names of devices that torch may use: NVIDIA's, AMD's and WSL's.
DEV, DEVICES = Path("/dev"), ("nvidia[0-9]*", "kfd", "dxg")

FEWEST_ROWS = 64  # for which the layout of all columns pays


def search_tiles(
    source: Matrix, target: Matrix, *, k: int, precision: Precision | None, progress: Progress
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest rows in both directions, tile by tile.

    Arguments, results and errors are as in ``miner.knn.exact.search_unit_rows``, but neither side
    is empty, and ``k`` and dimensions are not checked. Usable CUDA devices search if ``precision``
    is None or bfloat16, and ``torch_pays``. If they fail, the CPU searches, and ``progress`` counts
    all similarities again.
    """
    pays = torch_pays(2 * len(source) * len(target) * source.shape[1])
    if pays and precision in (None, "bfloat16") and (devices := _usable_devices()):
        from miner.knn.gpu.cuda import DeviceError

        try:
            return _search_on_devices(source, target, k, devices, progress)
        except DeviceError as error:
            logger.warning("%s; searching on the CPU instead, which takes longer", error)
    chosen, axes = choose_codes(source, target, k=k, precision=precision)
    forward = TopK.empty(len(source), min(k, len(target)))
    forward.floors[:] = passes.initial_floors(source, target, k=k)
    backward = TopK.empty(len(target), min(k, len(source)))
    backward.floors[:] = passes.initial_floors(target, source, k=k)
    codes = encode_both(source, target, chosen, axes=axes)
    left, right = zip((source, target), codes, strict=True)
    passes.compare(left, right, _tiles(*codes), (forward, backward), progress=progress)
    return forward.neighbours, backward.neighbours


def search_one_way(
    queries: Matrix,
    base: Matrix,
    *,
    k: int,
    precision: Precision,
    progress: Progress = lambda done: None,
) -> Neighbours:
    """Find the k nearest rows of ``base`` for each query, exactly.

    Queries (Q, D) and base (M, D) are unit rows. ``miner.knn.core.tuning.choose`` returns the
    fastest ``precision``. Neighbours are (Q, min(k, M)), best first. Ids are positions in ``base``.
    ``progress`` is called with numbers of similarities, which sum to Q * M. Errors of
    ``encode_both`` and ``miner.knn.core.products.product`` are raised.
    """
    left, right = zip((queries, base), encode_both(queries, base, precision), strict=True)
    nearest = TopK.empty(len(queries), min(k, len(base)))
    rows = max(FEWEST_ROWS, -(-len(queries) // thread_count()))  # all threads have some
    tiles = (
        passes.Tile(top, side)
        for side in passes.growing_blocks(len(base), passes.TILE_COLUMNS)
        for top in blocks(len(queries), min(rows, passes.TILE_ROWS))
    )
    passes.compare(left, right, tiles, (nearest, TopK.empty(len(base), 0)), progress=progress)
    return nearest.neighbours


@cache
def _usable_devices() -> list[torch.device]:
    if sys.platform == "linux" and not any(any(DEV.glob(name)) for name in DEVICES):
        return []
    from miner.knn.gpu.cuda import usable_devices  # loads torch

    return usable_devices()


def _search_on_devices(
    source: Matrix, target: Matrix, k: int, devices: Sequence[torch.device], progress: Progress
) -> tuple[Neighbours, Neighbours]:
    # Devices generate candidates, and rank by products, so vectors are not centred.
    from miner.knn.gpu.cuda import generate_on_devices

    kept = candidates_per_row(source, target, k=k, precision="bfloat16")
    codes = encode_both(source, target, "bfloat16", centred=False)
    rows = [bfloat16_rows(side.numbers) for side in codes]
    candidates = generate_on_devices(*rows, kept=kept, devices=devices, progress=progress)
    left, right = zip((source, target), codes, strict=True)
    return _complete(left, right, candidates[0], k), _complete(right, left, candidates[1], k)


def _complete(queries: Side, base: Side, candidates: DeviceCandidates, k: int) -> Neighbours:
    """Rescore candidates, and search again for rows that may have better ones.

    All other cosines of a row are at most its least product plus the largest rounding error.
    """
    from miner.knn.gpu.cuda import ROUNDING

    (rows, codes), (others, other_codes) = queries, base
    neighbours = rescore(rows, others, candidates.ids, k=min(k, len(others)))
    rounding = ROUNDING * others.shape[1] + other_codes.bias.max(initial=-np.inf)
    highest = candidates.floor.astype(np.float64) + codes.bias + rounding
    floors = np.nextafter(neighbours.cosines[:, -1], np.float32(-np.inf))
    incomplete = np.flatnonzero(highest >= floors)
    logger.debug("%d of %d rows are searched again", len(incomplete), len(rows))
    nearest = TopK(neighbours.ids, neighbours.cosines, floors)
    tiles = (
        passes.Tile(incomplete[top], side)
        for side in blocks(len(others), passes.TILE_COLUMNS)
        for top in blocks(len(incomplete), passes.TILE_ROWS)
    )
    if candidates.ids.shape[1] < len(others):
        passes.compare(queries, base, tiles, (nearest, TopK.empty(len(others), 0)), repeated=True)
    return neighbours


def _tiles(rows: Codes, columns: Codes) -> Iterator[passes.Tile]:
    """Yield tiles diagonally, so that consecutive ones are disjoint."""
    tops = blocks(len(rows), passes.rows_per_tile(rows))
    lefts = blocks(len(columns), passes.TILE_COLUMNS)
    for step in range(len(lefts)):
        for number, top in enumerate(tops):
            yield passes.Tile(top, lefts[(number + step) % len(lefts)])
