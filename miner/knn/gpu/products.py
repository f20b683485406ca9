"""The candidates in one cell of a matrix of products, found on whatever device holds its vectors.

Two ways: write all products to memory and sort them, or let the fused kernel find those that exceed
what is known already.
"""

from __future__ import annotations

import functools
import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

import torch

from miner.knn.gpu import keys

if TYPE_CHECKING:
    from miner.knn.gpu.fused import Hits, Tiling

    Found = tuple[torch.Tensor, torch.Tensor]  # keys of each row, (N, any), and column, (M, any)

logger = logging.getLogger(__name__)

DENSE = 1 << 26  # products in memory at a time: 256 MiB
# Room for hits, in candidates kept. A line in random order that keeps 12 meets 12 more while it
# doubles what it has seen, with a standard deviation of 5; one in a million meets over 48.
HITS = 4

_compiling = threading.Lock()  # Triton is not known to compile for several devices at once


class Cell(NamedTuple):
    """Rows x (N, D) and y (M, D) of the two sides, and the positions of their first ones.

    ``forward`` and ``backward`` are the best keys so far, (N, C) and (M, C), of all of them.
    """

    x: torch.Tensor
    y: torch.Tensor
    first_row: int
    first_column: int
    forward: torch.Tensor
    backward: torch.Tensor


def by_sorting(cell: Cell) -> Found:
    """Return the best keys of each row and of each column.

    Writes the products, reads them to turn them round, and sorts them both ways: about five times
    the price of the product alone.
    """
    tile = product(cell.x, cell.y)
    return (
        _largest(tile, cell.forward.shape[1], cell.first_column),
        _largest(tile.T, cell.backward.shape[1], cell.first_row),
    )


def by_hits(cell: Cell, tiling: Tiling) -> Found:
    """Return all keys of each row and column that exceed the least it has, by the fused kernel."""
    from miner.knn.gpu.fused import find_hits

    of_rows, of_columns = find_hits(
        *(cell.x, cell.y, keys.floors(cell.forward), keys.floors(cell.backward)),
        first_row=cell.first_row,
        first_column=cell.first_column,
        capacity=HITS * max(cell.forward.shape[1], cell.backward.shape[1]),
        tiling=tiling,
    )
    return (
        _completed(of_rows, cell.x, cell.y, cell.forward.shape[1], cell.first_column),
        _completed(of_columns, cell.y, cell.x, cell.backward.shape[1], cell.first_row),
    )


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return X·Yᵀ of rows in any floating dtype, summed in float32 and left so: (N, M)."""
    if x.is_cuda and x.dtype != torch.float32 and torch.__version__ >= "2.8":  # compares versions
        return torch.mm(x, y.T, out_dtype=torch.float32)
    return x.float() @ y.float().T  # as exact, but by float32's slower units


def _largest(tile: torch.Tensor, kept: int, first: int) -> torch.Tensor:
    """Return the keys of each row's largest products; the first column is at ``first``."""
    values, places = tile.contiguous().topk(min(kept, tile.shape[1]), dim=1)
    return keys.pack(values, first + places)


def _completed(hits: Hits, x: torch.Tensor, y: torch.Tensor, kept: int, first: int) -> torch.Tensor:
    """Return the keys of hits; rows that had no room for all of theirs are sorted in full."""
    full = (hits.counts > hits.keys.shape[1]).nonzero().flatten()
    for rows in torch.split(full, max(1, DENSE // len(y))):
        largest = _largest(product(x[rows], y), kept, first)
        hits.keys[rows] = keys.EMPTY
        hits.keys[rows, : largest.shape[1]] = largest
    if len(full):
        logger.debug("%d of %d rows had more than %d hits", len(full), len(x), hits.keys.shape[1])
    return hits.keys


@functools.cache
def working_tiling(device: torch.device, dtype: torch.dtype) -> Tiling | None:
    """Return the best tiling with which the fused kernel works on a device; None if none does.

    Compiles for some seconds, once: Triton keeps what it compiled on disk.
    """
    if dtype.itemsize != 2:
        return None  # float32 has no tensor cores that keep its precision: products take longest
    faults = []
    with _compiling:
        try:
            from miner.knn.gpu import fused
        except ImportError as error:
            faults = [str(error)]
        else:
            for tiling in fused.TILINGS:
                faults.append(fused.fault(tiling, device, dtype))
                if not faults[-1]:
                    return tiling
    logger.warning(
        "%s: the fused kernel does not work (%s); products go through memory", device, faults[-1]
    )
    return None
