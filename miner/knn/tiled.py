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
from miner.knn.core.passes import Candidates, Side
from miner.knn.core.products import bfloat16_rows, torch_pays
from miner.knn.core.tuning import Tuning, choose
from miner.threads import blocks, run_in_threads, thread_count

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

    Arguments, results and errors are as in ``miner.knn.exact.search_unit_rows``, but ``k`` and
    dimensions are not checked. A product in low precision bounds every cosine from above. The
    candidates with the largest bounds are rescored in float64. A row that may have a better
    neighbour is searched again. Memory contains codes, candidates, and a tile per thread.
    """
    pays = torch_pays(2 * len(source) * len(target) * source.shape[1])
    if pays and precision in (None, "bfloat16") and (devices := _usable_devices()):
        from miner.knn.gpu.cuda import DeviceError

        try:
            return _search_on_devices(source, target, k, devices, progress)
        except DeviceError as error:
            logger.warning("%s; searching on the CPU instead", error)
    tuned = choose(source, target, k=k, precision=precision)
    left, right = encode_both(source, target, tuned.precision)
    forward = passes.initial_candidates(left, right, kept=tuned.kept)
    both = forward, passes.initial_candidates(right, left, kept=tuned.kept)
    tiles = _tiles(len(left), len(right))
    passes.generate_candidates(left, right, tiles, both, repeated=False, progress=progress)
    return _complete_both((source, left), (target, right), both, k)


def search_one_way(
    queries: Matrix, base: Matrix, *, k: int, tuned: Tuning, progress: Progress = lambda done: None
) -> Neighbours:
    """Find the k nearest rows of ``base`` for each query, exactly.

    Queries (Q, D) and base (M, D) are unit rows, and ``tuned`` is from
    ``miner.knn.core.tuning.choose``. Neighbours are (Q, min(k, M)), best first. Ids are positions
    in ``base``. ``progress`` is called with numbers of similarities, which sum to Q * M.
    """
    left, right = encode_both(queries, base, tuned.precision)
    candidates = Candidates.empty(len(left), min(tuned.kept, len(right)))

    def search(block: slice) -> None:
        best = passes.best_columns(left.take(block), right, kept=candidates.ids.shape[1])
        for whole, part in zip(candidates, best, strict=True):
            whole[block] = part
        progress(len(best.ids) * len(base))

    rows = max(FEWEST_ROWS, -(-len(left) // thread_count()))  # shares few rows among all threads
    run_in_threads(search, blocks(len(left), min(rows, passes.TILE_ROWS)))
    return _complete((queries, left), (base, right), candidates, k)


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

    kept = choose(source, target, k=k, precision="bfloat16").kept
    left, right = encode_both(source, target, "bfloat16", centred=False)
    rows = [bfloat16_rows(codes.numbers) for codes in (left, right)]
    on_devices = generate_on_devices(*rows, kept=kept, devices=devices, progress=progress)
    both = _with_bounds(on_devices[0], left, right), _with_bounds(on_devices[1], right, left)
    return _complete_both((source, left), (target, right), both, k)


def _with_bounds(candidates: DeviceCandidates, queries: Codes, base: Codes) -> Candidates:
    """Return candidates with a floor, the least product plus rounding errors."""
    from miner.knn.gpu.cuda import ROUNDING

    rounding = ROUNDING * base.numbers.shape[1] + base.bias.max(initial=-np.inf)
    floor = candidates.floor.astype(np.float64) + queries.bias + rounding
    return Candidates(
        bounds=np.full(candidates.ids.shape, np.inf, dtype=np.float32),
        ids=candidates.ids.astype(np.int32),
        floor=np.nextafter(floor.astype(np.float32), np.float32(np.inf)),
    )


def _complete_both(
    source: Side, target: Side, both: tuple[Candidates, Candidates], k: int
) -> tuple[Neighbours, Neighbours]:
    return _complete(source, target, both[0], k), _complete(target, source, both[1], k)


def _complete(queries: Side, base: Side, candidates: Candidates, k: int) -> Neighbours:
    neighbours, incomplete = passes.verify(queries, base, candidates, k=min(k, len(base[0])))
    if candidates.ids.shape[1] < len(base[0]):
        tiles = (
            passes.Tile(incomplete[top], left)
            for left in blocks(len(base[0]), passes.TILE_COLUMNS)
            for top in blocks(len(incomplete), passes.TILE_ROWS)
        )
        passes.fallback_search(queries, base, neighbours, tiles)
    return neighbours


def _tiles(rows: int, columns: int) -> Iterator[passes.Tile]:
    """Yield tiles diagonally, so that consecutive ones are disjoint."""
    tops, lefts = blocks(rows, passes.TILE_ROWS), blocks(columns, passes.TILE_COLUMNS)
    for step in range(len(lefts)):
        for number, top in enumerate(tops):
            yield passes.Tile(top, lefts[(number + step) % len(lefts)])
