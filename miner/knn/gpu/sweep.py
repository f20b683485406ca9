"""Search a share of the sources on one device, cell by cell.

Spans of rows and of columns begin with ``SEED`` lines or more, and then double. A cell is a span of
rows by a span of columns; a line is a row or a column. Cells in the first span have no floors yet:
their products are written and sorted. In any other cell a line has already met at least as many
products as it has there. It then expects at most as many hits as it keeps candidates, and the fused
kernel (``miner.knn.gpu.fused``) finds only these.
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

SEED = 2048  # first lines: 0.2% of a million, at about five times the cost of others
LARGEST = 1 << 20  # most lines per cell: seconds of work between reports of progress
SMALLEST = 256  # least lines per cell; a search that fits fewer fails
USABLE = 0.8  # of the free memory, without cuBLAS and gaps between allocations
WORKSPACE = 16 * DENSE  # bytes of products, their transpose, and sorting
ALIGNED = 8  # numbers; the kernel's bulk copies need rows of 16 bytes or multiples


class Plan(NamedTuple):
    """The plan of a search on a device.

    ``resident`` says if all vectors stay on it. Cells have at most ``lines`` rows per side.
    """

    resident: bool
    lines: int


def plan(lines: int, *, line_bytes: int, kept: int, free: int) -> Plan:
    """Plan a search of ``lines``, rows plus columns, in ``free`` bytes.

    A vector takes ``line_bytes``, and a line has ``kept`` candidates. Vectors of more than half the
    memory for vectors and cells are copied for every cell. If no line fits, the plan's ``lines`` is
    0 or less.
    """
    budget = int(USABLE * free) - WORKSPACE - 8 * kept * lines
    all_lines = line_bytes * lines
    resident = all_lines <= budget // 2
    # In a cell, each line has hits, a copy with its candidates, and a workspace to sort them.
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
    """Search a ``share`` of the source rows among all target rows.

    ``source`` (N, D) and ``target`` (M, D) are of one floating dtype, in host memory. ``progress``
    is called with numbers of products. Once ``stop`` is set, it ends early, with partial results.
    Returns the keys of the ``kept`` largest products, on the device, best first, EMPTY if unused:
    of each source of the share among the targets, int64 (len(share), min(kept, M)), and of each
    target among these sources, (M, min(kept, N)), with positions in ``source``.

    Raises:
        RuntimeError: The device lacks the memory for a small search, or failed.
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
    """Yield ranges that cover ``count`` lines, each as long as all before it.

    The first has ``first`` lines, and none has more than ``most``. The last may be shorter.
    """
    start = 0
    while start < count:
        stop = min(start + min(max(start, first), most), count)
        yield range(start, stop)
        start = stop


class _Sweep:
    """The vectors and best keys of both sides, with rows from the share."""

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
        if self._covered(rows, columns):
            return
        middle = max(len(rows), len(columns)) // 2
        for half in (slice(middle), slice(middle, None)):
            if len(rows) < len(columns):
                self.cover(rows, columns[half])
            else:
                self.cover(rows[half], columns)

    def _covered(self, rows: range, columns: range) -> bool:
        # Searches a cell, unless it is too large.
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
            text = "the GPU ran out of memory; reduced steps to at most %d rows and columns: %s"
            logger.info(text, self._lines, error)
        self._source.release()
        self._target.release()
        torch.cuda.empty_cache()
        return False

    def _take(self, rows: range, columns: range, tiling: Tiling | None) -> None:
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
        # Nothing is allocated from here: a cell counts in both directions or in none.
        cell.forward.copy_(forward)
        cell.backward.copy_(backward)


class _Vectors:
    """Rows in host memory, and a block of them on the device."""

    def __init__(self, rows: Tensor, device: torch.device, resident: bool) -> None:
        self._rows, self._device = rows, device
        self._span, self._block = range(0), rows[:0]
        if resident:
            self.hold(range(len(rows)))

    def hold(self, lines: range) -> None:
        if lines.start < self._span.start or lines.stop > self._span.stop:
            self.release()
            block = self._rows[lines.start : lines.stop].to(self._device)
            self._block = functional.pad(block, (0, -block.shape[1] % ALIGNED)).contiguous()
            self._span = lines

    def held(self, lines: range) -> Tensor:
        return self._block[lines.start - self._span.start : lines.stop - self._span.start]

    def release(self) -> None:
        self._span, self._block = range(0), self._rows[:0]


def _free_bytes(device: torch.device) -> int:
    """Return a device's free memory, or 8 GiB of the host for tests."""
    if device.type != "cuda":
        return 8 << 30
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]
