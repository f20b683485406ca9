"""The inner loops of the exact search in torch and NumPy: what ``compiled`` does, without Numba.

Axes: ``R`` rows and ``C`` columns of a tile, ``B`` blocks of columns, ``K`` candidates kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.knn.core.rescore import best, cosines_of, rescore

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from miner.knn.core.candidates import Candidates
    from miner.knn.core.codes import Codes

    Matrix = NDArray[np.float32]

BLOCK = 64  # columns whose maximum is looked at first; most blocks are not looked into
# Share of blocks that hold something better than what is kept, from which on it costs less to sort
# the whole tile: the first tiles of a row.
DENSE = 1 / 4


def take(
    tile: torch.Tensor,
    rows: Codes,
    columns: Codes,
    forward: Candidates,
    backward: Candidates,
    *,
    repeated: bool,
) -> None:
    """Take a tile (R, C) of products into the candidates of its R rows and of its C columns.

    All is given for the tile's own rows and columns. ``repeated`` says that other tiles may hold
    the same pairs. Some ten passes over the tile.
    """
    bounds = _bounds(tile, rows, columns)
    for side, kept, ids in ((bounds, forward, columns.ids), (bounds.T, backward, rows.ids)):
        _keep(_without(side, kept, ids) if repeated else side, kept, ids)


def largest(tile: torch.Tensor, scale: NDArray[np.float32], places: NDArray[np.int64]) -> None:
    """Fill ``places`` (R, P) with the columns of the largest ``tile * scale`` of each row.

    The tile (R, C) holds integers, ``scale`` is (C,); products are rounded to float32 once. Largest
    first, of equals the lowest column first. Sorts the tile.
    """
    import torch

    values = tile.float() * torch.from_numpy(scale)
    order = values.sort(dim=1, descending=True, stable=True).indices
    places[:] = order[:, : places.shape[1]].numpy()


def verify(
    queries: Matrix, base: Matrix, candidates: Candidates, neighbours: Neighbours
) -> NDArray[np.bool_]:
    """Fill ``neighbours`` (N, K) from candidates: by exact cosines, ties by id.

    Returns which rows (N,) may have better neighbours than their candidates.
    """
    k = neighbours.ids.shape[1]
    found = rescore(queries, base, candidates.ids.astype(np.int64), k=k)
    neighbours.ids[:], neighbours.cosines[:] = found.ids, found.cosines
    incomplete: NDArray[np.bool_] = candidates.floor >= found.cosines[:, -1]
    return incomplete


def fallback_search(
    tile: torch.Tensor,
    rows: Codes,
    columns: Codes,
    queries: Matrix,
    base: Matrix,
    neighbours: Neighbours,
) -> None:
    """Take a tile (R, C) of products into lists of neighbours (R, K).

    ``queries`` and ``base`` are whole sides. The exact cosine of a pair is computed wherever its
    bound reaches the row's K-th one.
    """
    import torch

    floor = torch.from_numpy(neighbours.cosines[:, -1])
    hits = _bounds(tile, rows, columns) >= floor[:, None]
    line, place = (found.numpy() for found in hits.nonzero(as_tuple=True))
    new = ~(neighbours.ids[line] == columns.ids[place][:, None]).any(axis=1)
    line, place = line[new], place[new]
    if len(line) == 0:
        return
    found_cosines = cosines_of(queries, base, rows.ids[line], columns.ids[place])
    changed, first, counts = np.unique(line, return_index=True, return_counts=True)
    shape = (len(changed), int(counts.max()))
    within = np.arange(len(line)) - np.repeat(first, counts)
    cosines = np.full(shape, -np.inf, dtype=np.float32)
    ids = np.full(shape, -1, dtype=np.int64)
    slot = (np.repeat(np.arange(len(changed)), counts), within)
    ids[slot], cosines[slot] = columns.ids[place], found_cosines
    merged = best(
        Neighbours(
            ids=np.concatenate([neighbours.ids[changed], ids], axis=1),
            cosines=np.concatenate([neighbours.cosines[changed], cosines], axis=1),
        ),
        k=neighbours.ids.shape[1],
    )
    neighbours.ids[changed], neighbours.cosines[changed] = merged.ids, merged.cosines


def _bounds(tile: torch.Tensor, rows: Codes, columns: Codes) -> torch.Tensor:
    """What the cosines of a tile are at most: float32 (R, C)."""
    import torch

    scale, bias = (torch.from_numpy(numbers)[:, None] for numbers in (rows.scale, rows.bias))
    bounds = tile.float() * (scale * torch.from_numpy(columns.scale))
    if rows.slack:
        bounds += bounds.abs() * float(rows.slack)
    return bounds.add_(bias).add_(torch.from_numpy(columns.bias))


def _without(bounds: torch.Tensor, kept: Candidates, ids: NDArray[np.int32]) -> torch.Tensor:
    """The same bounds, -inf for what is kept already."""
    order = np.argsort(ids)
    place = order[np.minimum(np.searchsorted(ids, kept.ids, sorter=order), len(ids) - 1)]
    row, slot = np.nonzero(ids[place] == kept.ids)
    bounds = bounds.clone()
    bounds.numpy()[row, place[row, slot]] = -np.inf
    return bounds


def _keep(bounds: torch.Tensor, kept: Candidates, ids: NDArray[np.int32]) -> None:
    """Keep the best of the candidates of R rows and of R rows of ``bounds``.

    Reads the bounds once, and again only the blocks of columns in which something exceeds its row's
    floor.
    """
    import torch

    rows, numbers = torch.arange(len(bounds)), torch.from_numpy(ids)
    whole = bounds.shape[1] // BLOCK * BLOCK
    if whole < bounds.shape[1]:
        values, places = _best_of_all(bounds[:, whole:], kept.ids.shape[1])
        _merge(kept, rows, values, numbers[whole + places])
    if whole == 0:
        return
    blocks = _blocks(bounds[:, :whole])
    maxima = _maxima(blocks)
    floor = torch.from_numpy(kept.floor)
    hit_row, hit_block = (maxima > floor[:, None]).nonzero(as_tuple=True)
    if len(hit_row) > DENSE * maxima.numel():
        blocks = _blocks(bounds[:, :whole].contiguous())
        values, places = _best_of_blocks(blocks, maxima, kept.ids.shape[1])
        _merge(kept, rows, values, numbers[places])
        return
    inside = blocks[hit_row, hit_block]
    hit, place = (inside > floor[hit_row, None]).nonzero(as_tuple=True)
    columns = hit_block[hit] * BLOCK + place
    _insert(kept, rows[hit_row[hit]], numbers[columns], inside[hit, place])


def _insert(kept: Candidates, rows: torch.Tensor, ids: torch.Tensor, bounds: torch.Tensor) -> None:
    """Take in candidates given by row; ``rows`` ascend."""
    import torch

    changed, counts = torch.unique_consecutive(rows, return_counts=True)
    if len(changed) == 0:
        return
    shape = (len(changed), int(counts.max()))
    line = torch.arange(len(changed)).repeat_interleave(counts)
    place = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[line]
    new_bounds = torch.full(shape, -torch.inf)
    new_ids = torch.full(shape, -1, dtype=torch.int32)
    new_bounds[line, place], new_ids[line, place] = bounds, ids
    _merge(kept, changed, new_bounds, new_ids)


def _merge(
    kept: Candidates, rows: torch.Tensor, new_bounds: torch.Tensor, new_ids: torch.Tensor
) -> None:
    """Keep the best of the candidates of ``rows`` (R,) and of new ones (R, any)."""
    import torch

    bounds, ids = torch.from_numpy(kept.bounds), torch.from_numpy(kept.ids)
    new_ids = torch.where(new_bounds == -torch.inf, NO_NEIGHBOUR, new_ids)
    new_bounds = torch.cat([bounds[rows], new_bounds], dim=1)
    new_ids = torch.cat([ids[rows], new_ids], dim=1)
    bounds[rows], places = new_bounds.topk(bounds.shape[1], dim=1)
    ids[rows] = new_ids.gather(1, places)
    torch.from_numpy(kept.floor)[rows] = bounds[rows, -1]


def _blocks(tile: torch.Tensor) -> torch.Tensor:
    """A view of the tile (R, C) as (R, B, BLOCK)."""
    rows, columns = tile.shape
    row_stride, stride = tile.stride()
    shape = (rows, columns // BLOCK, BLOCK)
    return tile.as_strided(shape, (row_stride, BLOCK * stride, stride), tile.storage_offset())


def _maxima(blocks: torch.Tensor) -> torch.Tensor:
    """The largest of each block: (R, B) of (R, B, BLOCK), the fast way round for a transpose."""
    if blocks.stride(2) == 1:
        return blocks.amax(dim=2)
    return blocks.permute(1, 2, 0).amax(dim=1).T.contiguous()


def _best_of_all(tile: torch.Tensor, kept: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest ``kept`` of each row (or all), best first, and their columns."""
    values, places = tile.contiguous().topk(min(kept, tile.shape[1]), dim=1)
    return values, places


def _best_of_blocks(
    blocks: torch.Tensor, maxima: torch.Tensor, kept: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of blocks (R, B, BLOCK): they lie in the blocks with the largest maxima."""
    import torch

    chosen = maxima.topk(min(kept, maxima.shape[1]), dim=1).indices
    rows = torch.arange(len(blocks))[:, None]
    inside = blocks[rows, chosen].flatten(1)  # whole blocks; gather would fetch number by number
    values, places = inside.topk(min(kept, inside.shape[1]), dim=1)
    return values, chosen.gather(1, places // BLOCK) * BLOCK + places % BLOCK
