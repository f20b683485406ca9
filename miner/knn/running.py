"""The best similarities of each row, kept while the tiles of a matrix go by.

Axes: ``R`` rows and ``C`` columns of a tile, ``B`` blocks of columns, ``K`` similarities kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BLOCK = 64  # columns whose maximum is looked at first; most blocks are not looked into
# Share of blocks that hold something better than what is kept, from which on it costs less to sort
# the whole tile: the first tiles of a row.
DENSE = 1 / 4


class RunningBest:
    """The ``kept`` largest similarities of each row seen so far and their columns.

    ``values`` is (N, K) in the tiles' dtype, best first, -inf where fewer were seen; ``ids`` is
    int64 (N, K). Whatever is not kept is at most a row's last value.
    """

    def __init__(self, rows: int, kept: int, dtype: torch.dtype) -> None:
        import torch

        self._kept = kept
        self.values = torch.full((rows, kept), -torch.inf, dtype=dtype)
        self.ids = torch.full((rows, kept), -1, dtype=torch.int64)

    def add(self, row: int, column: int, tile: torch.Tensor) -> None:
        """Take in the tile (R, C) whose first element is (row, column) of the whole matrix.

        Reads the tile once, and again only the blocks of columns in which something exceeds its
        row's last kept value. Over M columns in random order that happens about K * ln(M / K) times
        in a row.
        """
        import torch

        rows = torch.arange(row, row + len(tile))
        whole = tile.shape[1] // BLOCK * BLOCK
        if whole < tile.shape[1]:
            self._merge(rows, *_best_of_all(tile[:, whole:], self._kept, column + whole))
        if whole == 0:
            return
        blocks = _blocks(tile[:, :whole])
        maxima = _maxima(blocks)
        floor = self.values[row : row + len(tile), -1]
        hit_row, hit_block = (maxima > floor[:, None]).nonzero(as_tuple=True)
        if len(hit_row) > DENSE * maxima.numel():
            blocks = _blocks(tile[:, :whole].contiguous())
            self._merge(rows, *_best_of_blocks(blocks, maxima, self._kept, column))
            return
        inside = blocks[hit_row, hit_block]
        hit, place = (inside > floor[hit_row, None]).nonzero(as_tuple=True)
        ids = column + hit_block[hit] * BLOCK + place
        self._insert(rows[hit_row[hit]], ids, inside[hit, place])

    def _insert(self, rows: torch.Tensor, ids: torch.Tensor, values: torch.Tensor) -> None:
        """Take in similarities given by row; ``rows`` ascend."""
        import torch

        changed, counts = torch.unique_consecutive(rows, return_counts=True)
        if len(changed) == 0:
            return
        shape = (len(changed), int(counts.max()))
        line = torch.arange(len(changed)).repeat_interleave(counts)
        place = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[line]
        new_values = torch.full(shape, -torch.inf, dtype=values.dtype)
        new_ids = torch.full(shape, -1, dtype=torch.int64)
        new_values[line, place], new_ids[line, place] = values, ids
        self._merge(changed, new_values, new_ids)

    def _merge(self, rows: torch.Tensor, values: torch.Tensor, ids: torch.Tensor) -> None:
        """Keep the best of what is kept of ``rows`` (R,) and of ``values``, ``ids`` (R, any)."""
        import torch

        values = torch.cat([self.values[rows], values], dim=1)
        ids = torch.cat([self.ids[rows], ids], dim=1)
        self.values[rows], places = values.topk(self._kept, dim=1)
        self.ids[rows] = ids.gather(1, places)


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


def _best_of_all(tile: torch.Tensor, kept: int, column: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest ``kept`` of each row (or all), best first, and their columns."""
    values, places = tile.contiguous().topk(min(kept, tile.shape[1]), dim=1)
    return values, places + column


def _best_of_blocks(
    blocks: torch.Tensor, maxima: torch.Tensor, kept: int, column: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of blocks (R, B, BLOCK): they lie in the blocks with the largest maxima."""
    import torch

    chosen = maxima.topk(min(kept, maxima.shape[1]), dim=1).indices
    rows = torch.arange(len(blocks))[:, None]
    inside = blocks[rows, chosen].flatten(1)  # whole blocks; gather would fetch number by number
    values, places = inside.topk(min(kept, inside.shape[1]), dim=1)
    return values, column + chosen.gather(1, places // BLOCK) * BLOCK + places % BLOCK
