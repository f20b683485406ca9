"""Exact k nearest neighbours in both directions from one product.

Forward and backward search need the same matrix of similarities; each tile of it is computed once
and its best columns and best rows are both taken. Axes: ``N`` source rows, ``M`` target rows,
``D`` dimensions, ``C`` candidates kept for rescoring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.rescore import check_search, rescore

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

TILE_ROWS, TILE_COLUMNS = 1024, 4096  # a 16 MiB tile: its selection still finds it in the cache
SELECTION_BLOCK = 64  # block maxima are one vectorised pass; only the best blocks are looked into
SPARE_CANDIDATES = 4  # beyond k; they absorb what float32 rounding and ties may reorder


def search_both(
    source: Matrix,
    target: Matrix,
    *,
    k: int,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """The k nearest targets of each source and the k nearest sources of each target.

    Exact: the float32 product proposes candidates, their cosines are recomputed in float64, and a
    row whose candidates cannot be proven complete (many equal or nearly equal neighbours) is
    searched again in float64. So the result is that of a full sort by (cosine descending, position
    ascending), whatever the tiles. Costs 2 * N * M * D operations in the product; working memory is
    a few tiles plus O((N + M) * C).

    Args:
        source: rows as ``miner.knn.rescore.unit_rows`` makes them, float32 (N, D).
        target: rows as ``unit_rows`` makes them, float32 (M, D).
        k: neighbours of each row; clipped to the size of the other side.
        progress: called with the number of similarities computed after each tile.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions.

    Raises:
        ValueError: k below 1, or rows of different dimensions.
    """
    check_search(source, target, k=k)
    forward = _Running(len(source), min(k + SPARE_CANDIDATES, len(target)))
    backward = _Running(len(target), min(k + SPARE_CANDIDATES, len(source)))
    for top, left, tile in _tiles(source, target):
        forward.add(top, left, tile)
        backward.add(left, top, tile.T.contiguous())
        progress(tile.numel())
    return (
        _certified(source, target, forward, k=min(k, len(target))),
        _certified(target, source, backward, k=min(k, len(source))),
    )


def _tiles(source: Matrix, target: Matrix) -> Iterator[tuple[int, int, torch.Tensor]]:
    """The product of all rows in tiles: first row, first column, similarities."""
    import torch

    x, y = torch.from_numpy(source), torch.from_numpy(target)
    for top in range(0, len(x), TILE_ROWS):
        for left in range(0, len(y), TILE_COLUMNS):
            yield top, left, x[top : top + TILE_ROWS] @ y[left : left + TILE_COLUMNS].T


class _Running:
    """The best ``count`` similarities of each row seen so far, in no order."""

    def __init__(self, rows: int, count: int) -> None:
        import torch

        self.values = torch.full((rows, count), -torch.inf)
        self.ids = torch.full((rows, count), -1, dtype=torch.int64)

    def add(self, row: int, column: int, tile: torch.Tensor) -> None:
        """Merge the tile whose first element is (row, column) of the whole matrix."""
        import torch

        rows = slice(row, row + len(tile))
        values, ids = _block_top(tile, self.values.shape[1])
        values = torch.cat([self.values[rows], values], dim=1)
        ids = torch.cat([self.ids[rows], ids + column], dim=1)
        self.values[rows], places = values.topk(self.values.shape[1], dim=1, sorted=False)
        self.ids[rows] = ids.gather(1, places)


def _block_top(tile: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest ``count`` of each row, or the whole row if it has fewer, with their columns.

    The ``count`` largest of a row lie in the ``count`` blocks with the largest maxima.
    """
    import torch

    rows, columns = tile.shape
    blocks = columns // SELECTION_BLOCK
    if columns % SELECTION_BLOCK or blocks <= count:
        values, ids = tile.topk(min(count, columns), dim=1, sorted=False)
        return values, ids
    blocked = tile.view(rows, blocks, SELECTION_BLOCK)
    chosen = blocked.amax(dim=2).topk(count, dim=1, sorted=False).indices
    inside = blocked.gather(1, chosen[:, :, None].expand(-1, -1, SELECTION_BLOCK))
    values, places = inside.flatten(1).topk(count, dim=1, sorted=False)
    block = chosen.gather(1, torch.div(places, SELECTION_BLOCK, rounding_mode="floor"))
    return values, block * SELECTION_BLOCK + places % SELECTION_BLOCK


def _certified(queries: Matrix, base: Matrix, found: _Running, *, k: int) -> Neighbours:
    """Rescore the candidates; search in full for those rows whose candidates may be incomplete.

    Whatever was left out has a product of at most the least kept one, so a cosine of at most that
    plus the rounding of a float32 dot product. A row is complete if its k-th neighbour is above.
    """
    neighbours = rescore(queries, base, found.ids.numpy(), k=k)
    if found.values.shape[1] == len(base) or len(queries) == 0:
        return neighbours
    least_kept = found.values.amin(dim=1).numpy().astype(np.float64)
    left_out = least_kept + _product_rounding(queries.shape[1])
    open_rows = np.flatnonzero(neighbours.cosines[:, k - 1] <= left_out)
    for start in range(0, len(open_rows), TILE_ROWS):
        rows = open_rows[start : start + TILE_ROWS]
        neighbours.ids[rows], neighbours.cosines[rows] = _search_in_full(queries[rows], base, k=k)
    return neighbours


def _product_rounding(dim: int) -> float:
    """How far a float32 product may lie below the cosine that ``rescore`` gives, at most.

    A dot product of unit vectors errs by at most D * u / (1 - D * u) with u = 2**-24 (Higham 2002,
    section 3.1), rounding the cosine to float32 by u more. One per cent covers the denominator for
    D up to 160,000, one more u that unit rows are not quite unit.
    """
    return 1.01 * (dim + 2) * 2.0**-24


def _search_in_full(
    queries: Matrix, base: Matrix, *, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids and cosines of the k nearest rows of ``base``, by all cosines in float64.

    They are exact for unit rows, so equal to those of ``rescore``. Four or more times the price
    of the float32 search, but no ties or duplicates make it any higher.
    """
    import torch

    x, y = torch.from_numpy(queries).double(), torch.from_numpy(base)
    cosines = torch.empty((len(x), 0))
    ids = torch.empty((len(x), 0), dtype=torch.int64)
    for left in range(0, len(y), TILE_COLUMNS):
        tile = (x @ y[left : left + TILE_COLUMNS].double().T).float()
        columns = torch.arange(left, left + tile.shape[1]).expand(tile.shape)
        # Ids ascend from left to right, so a stable sort leaves ties in their order.
        cosines, order = torch.cat([cosines, tile], dim=1).sort(dim=1, descending=True, stable=True)
        cosines = cosines[:, :k]
        ids = torch.cat([ids, columns], dim=1).gather(1, order[:, :k])
    return ids.numpy(), cosines.numpy()
