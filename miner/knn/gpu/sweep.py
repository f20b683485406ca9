"""One device's share of a two-way search: cells of the matrix of products, one after the other.

Rows and columns are taken in spans that begin with ``SEED`` lines and then double what was taken
before; a cell is a span of rows by a span of columns. In the first span of rows or of columns there
are no floors yet: those cells are multiplied into memory and sorted. In every other cell a line has
already met as many products as are to come, or more, so it expects at most as many hits above its
floor as it keeps candidates, and the fused kernel (``miner.knn.gpu.fused``) finds only those. A
line is a row or a column.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from miner.knn.gpu import keys
from miner.knn.gpu.products import DENSE, HITS, Cell, by_hits, by_sorting, working_tiling

if TYPE_CHECKING:
    import threading

    from miner.knn.gpu.fused import Tiling

logger = logging.getLogger(__name__)

SEED = 2048  # first lines: 0.2 per cent of a million, at about five times the price of the others
LARGEST = 1 << 20  # lines of a cell at most: seconds of work, after which progress is reported
SMALLEST = 256  # lines of a cell at least: if these do not fit, halving is no remedy
USABLE = 0.8  # of the free memory; the rest is for cuBLAS and for gaps between allocations
WORKSPACE = 16 * DENSE  # bytes: the products, their transpose, and room to sort
ALIGNED = 8  # numbers; the kernel's bulk copies want rows of whole 16 bytes


class Plan(NamedTuple):
    """How a search fits a device: whether all vectors stay on it, and the most lines of a cell."""

    resident: bool
    lines: int


def plan(lines: int, *, line_bytes: int, kept: int, free: int) -> Plan:
    """Plan for so many lines on both sides together, and so many bytes of free memory.

    Vectors that do not fit are copied for every cell. Over PCIe that takes about 2 * D bytes a
    column, against 2 * D operations for each row of the cell: at 10 GB/s and 600 TFLOP/s a tenth of
    the time where cells have 600,000 rows, so neither pinning all rows nor a second block to fill
    meanwhile would pay for the memory that they take.
    """
    budget = int(USABLE * free) - WORKSPACE - 8 * kept * lines
    all_lines = line_bytes * lines
    resident = all_lines <= budget // 2
    # In a cell, each line has its hits, the same beside its candidates, and room to sort them.
    cell_bytes = 8 * kept * (2 * HITS + 4)
    if resident:
        budget -= all_lines
    else:
        cell_bytes += line_bytes
    return Plan(resident=resident, lines=min(LARGEST, budget // (2 * cell_bytes)))


def search(
    source: Tensor,
    target: Tensor,
    *,
    share: range,
    kept: int,
    device: torch.device,
    progress: Callable[[int], None],
    stop: threading.Event,
) -> tuple[Tensor, Tensor]:
    """Return keys of the ``kept`` largest products, of the sources in ``share`` and all targets.

    Both lie on the device, best first. Ends early, with what there is, once ``stop`` is set.
    """
    sides = _Sweep(source, target, share, kept, device)
    for rows in spans(len(share), sides.plan.lines, first=max(SEED, kept)):
        for columns in spans(len(target), sides.plan.lines, first=max(SEED, kept)):
            if stop.is_set():
                break
            sides.cover(rows, columns)
            progress(len(rows) * len(columns))
    return sides.forward, sides.backward


def spans(count: int, most: int, *, first: int) -> Iterator[range]:
    """Yield ranges of all ``count`` lines: ``first``, then as many as so far, up to ``most``."""
    start = 0
    while start < count:
        stop = min(start + min(max(start, first), most), count)
        yield range(start, stop)
        start = stop


class _Sweep:
    """The vectors of both sides and the best keys of each line so far.

    Rows and columns are counted from the first of the share and from the first target.
    """

    def __init__(
        self, source: Tensor, target: Tensor, share: range, kept: int, device: torch.device
    ) -> None:
        self._tiling = working_tiling(device, source.dtype)
        self.plan = plan(
            len(share) + len(target),
            line_bytes=source.element_size() * (source.shape[1] + ALIGNED),
            kept=kept,
            free=_free_bytes(device),
        )
        if self.plan.lines < SMALLEST:
            raise RuntimeError(
                f"{len(source):,} by {len(target):,} sentences do not fit the memory that is free"
            )
        self._lines, self._first_row, self._kept = self.plan.lines, share.start, kept
        self._source = _Vectors(source[share.start : share.stop], device, self.plan.resident)
        self._target = _Vectors(target, device, self.plan.resident)
        self.forward = keys.no_candidates(len(share), min(kept, len(target)), device)
        self.backward = keys.no_candidates(len(target), min(kept, len(source)), device)

    def cover(self, rows: range, columns: range) -> None:
        """Take in the products of a cell, in halves if it is too large."""
        if self._covered(rows, columns):
            return
        middle = max(len(rows), len(columns)) // 2
        for half in (slice(middle), slice(middle, None)):
            if len(rows) < len(columns):
                self.cover(rows, columns[half])
            else:
                self.cover(rows[half], columns)

    def _covered(self, rows: range, columns: range) -> bool:
        """Take in a cell unless it is too large, as is one that runs out of memory."""
        if max(len(rows), len(columns)) > self._lines:
            return False
        tiling = self._tiling if min(rows.start, columns.start) >= self._kept else None
        fits = tiling is not None or len(rows) * len(columns) <= DENSE
        try:
            self._source.hold(rows)
            self._target.hold(columns)
            if fits:
                self._take(rows, columns, tiling)
            return fits
        except torch.OutOfMemoryError as error:
            self._lines = max(len(rows), len(columns)) // 2
            if self._lines < SMALLEST:
                raise
            logger.info("cells of at most %d lines from here: %s", self._lines, error)
        self._source.release()
        self._target.release()
        torch.cuda.empty_cache()
        return False

    def _take(self, rows: range, columns: range, tiling: Tiling | None) -> None:
        """Keep the best of what is kept and of what a cell holds."""
        cell = Cell(
            *(self._source.held(rows), self._target.held(columns)),
            first_row=self._first_row + rows.start,
            first_column=columns.start,
            forward=self.forward[rows.start : rows.stop],
            backward=self.backward[columns.start : columns.stop],
        )
        of_rows, of_columns = by_hits(cell, tiling) if tiling else by_sorting(cell)
        forward = keys.best([cell.forward, of_rows], cell.forward.shape[1])
        backward = keys.best([cell.backward, of_columns], cell.backward.shape[1])
        # No memory is taken from here on: a cell counts in both directions or in none.
        cell.forward.copy_(forward)
        cell.backward.copy_(backward)


class _Vectors:
    """Rows in host memory, some or all of which are on the device."""

    def __init__(self, rows: Tensor, device: torch.device, resident: bool) -> None:
        self._rows, self._device = rows, device
        self._span, self._block = range(0), rows[:0]
        if resident:
            self.hold(range(len(rows)))

    def hold(self, lines: range) -> None:
        """Have these lines on the device, and if they were not, no others."""
        if lines.start < self._span.start or lines.stop > self._span.stop:
            self.release()
            block = self._rows[lines.start : lines.stop].to(self._device)
            self._block = functional.pad(block, (0, -block.shape[1] % ALIGNED)).contiguous()
            self._span = lines

    def held(self, lines: range) -> Tensor:
        """Return these lines, of those on the device: a view."""
        return self._block[lines.start - self._span.start : lines.stop - self._span.start]

    def release(self) -> None:
        """Have none on the device."""
        self._span, self._block = range(0), self._rows[:0]


def _free_bytes(device: torch.device) -> int:
    """Return the free memory of a device; 8 GiB for the host, which only tests search on."""
    if device.type != "cuda":
        return 8 << 30
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]
