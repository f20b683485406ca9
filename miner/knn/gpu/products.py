"""Candidates in a cell of the matrix of products, on any device.

A cell has some rows and some columns of the matrix. Either all its products are written and sorted,
or the fused kernel finds the products above the floors.
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
# Buffered hits per kept candidate. A line in random order that keeps 12 meets 12 more in the next
# span, with a standard deviation of 5; one in a million meets over 48.
HITS = 4

_compiling = threading.Lock()  # Triton may not compile for several devices at once


class Cell(NamedTuple):
    """The vectors of a cell, and the best keys of its rows and columns so far.

    ``x`` (N, D) and ``y`` (M, D) are vectors of consecutive rows, from positions ``first_row`` and
    ``first_column`` of the sides. ``forward`` (N, C) and ``backward`` (M, C') are best-first keys.
    """

    x: torch.Tensor
    y: torch.Tensor
    first_row: int
    first_column: int
    forward: torch.Tensor
    backward: torch.Tensor


def by_sorting(cell: Cell) -> Found:
    """Find the best keys of each row and of each column of a cell by sorting.

    They are int64 (N, min(C, M)) and (M, min(C', N)), best first, of this cell's products only.
    """
    tile = product(cell.x, cell.y)
    return (
        _largest(tile, cell.forward.shape[1], cell.first_column),
        _largest(tile.T, cell.backward.shape[1], cell.first_row),
    )


def by_hits(cell: Cell, tiling: Tiling) -> Found:
    """Find the keys above the floor of each row and of each column of a cell.

    Vectors and ``tiling`` are as in ``miner.knn.gpu.fused.find_hits``. Floors are the last keys in
    ``cell.forward`` (N, C) and ``cell.backward`` (M, C'). The result is int64 (N, B) and (M, B), in
    any order, EMPTY if unused. B is ``HITS`` times max(C, C'). If the kernel finds more hits than
    fit, a row has its C largest keys instead, a column its C' largest.
    """
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
    """Return the float32 products (N, M) of rows of one floating dtype."""
    if x.is_cuda and x.dtype != torch.float32 and torch.__version__ >= "2.8":  # compares versions
        return torch.mm(x, y.T, out_dtype=torch.float32)
    return x.float() @ y.float().T  # as exact, but slower


def _largest(tile: torch.Tensor, kept: int, first: int) -> torch.Tensor:
    """Return keys of each row's largest products, columns from ``first``."""
    values, places = tile.contiguous().topk(min(kept, tile.shape[1]), dim=1)
    return keys.pack(values, first + places)


def _completed(hits: Hits, x: torch.Tensor, y: torch.Tensor, kept: int, first: int) -> torch.Tensor:
    """Return keys of hits, or the ``kept`` largest of rows with too many."""
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
    """Return the best tiling of the fused kernel that works on a device.

    It is None if none works, which is logged, or the dtype does not have 16 bits.
    """
    if dtype.itemsize != 2:
        return None  # no tensor cores keep float32's precision
    with _compiling:
        try:
            from miner.knn.gpu import fused
        except ImportError as error:
            fault = str(error)
        else:
            for tiling in fused.TILINGS:
                if not (fault := fused.fault(tiling, device, dtype)):
                    return tiling
    text = "%s: the fused kernel does not work (%s); the search takes up to five times as long"
    logger.warning(text, device, fault)
    return None
