"""Products of int8 codes by compiled code, and which of them are worth a look.

Most products never reach memory: a block of them is tested in the processor's registers
(``miner.knn.core.vnni_blocks``, which says what the axes are).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from miner.compiling import compiled, compiled_part
from miner.knn.core.compiled import FASTMATH, longer
from miner.knn.core.products import DEPTH
from miner.knn.core.vnni_blocks import (
    COLUMNS,
    LANES,
    RAISED,
    ROWS,
    lowest_bit,
    multiply_block,
    raise_and_turn,
)

ERROR = np.float32(2.0**-20)  # relative, of some operations in float32

_compile = compiled(fastmath=FASTMATH)
_part = compiled_part(fastmath=FASTMATH)


@_part
def _sums_of(rows: Any) -> Any:
    """Return what the products of each row (R, D) begin at."""
    sums = np.empty(len(rows), dtype=np.int32)
    for row in range(len(rows)):
        total = np.int32(0)
        for code in rows[row]:
            total += np.int32(code)
        sums[row] = np.int32(-128) * total
    return sums


@_part
def _panels_of(codes: Any) -> Any:
    """Return the codes of columns (C, D / 4), by fours, raised, as panels (P, D / 4, COLUMNS)."""
    columns, depth = codes.shape
    panels = np.empty(((columns + COLUMNS - 1) // COLUMNS, depth, COLUMNS), dtype=np.int32)
    turned = depth - depth % LANES
    for panel in range(len(panels)):
        first = panel * COLUMNS
        for step in range(0, turned, LANES):
            for place in range(0, COLUMNS, LANES):
                to = (panel * depth + step) * COLUMNS + place
                raise_and_turn(codes, first + place, step, panels, to)
        for step in range(turned, depth):
            for place in range(COLUMNS):
                panels[panel, step, place] = codes[min(first + place, columns - 1), step] ^ RAISED
    return panels


@_compile
def _fill(rows: Any, panels: Any, products: Any) -> None:
    sums, size = _sums_of(rows), max(len(rows), len(panels) * COLUMNS)
    zeros = np.zeros(size, dtype=np.float32)
    left, right = (rows, sums, zeros, zeros, zeros), (panels, zeros, zeros)
    block, masks = np.empty((ROWS, COLUMNS), np.int32), np.empty(ROWS, np.uint64)
    for panel in range(len(panels)):
        start = panel * COLUMNS
        stop = min(start + COLUMNS, products.shape[1])
        for first in range(0, len(rows), ROWS):
            multiply_block(first, panel, left, right, (block, masks))
            for row in range(first, min(first + ROWS, len(rows))):
                for column in range(start, stop):
                    products[row, column] = block[row - first, column - start]


@_part
def _levels(floor: Any, bias: Any, other: Any) -> Any:
    """Return floors (N,) less the bias of one side, lowered by more than rounding errs.

    ``other`` is the other side's bias, as large as any that is added; biases are (N,) or numbers.
    """
    return floor - bias - ERROR * (np.abs(floor) + np.abs(bias) + np.abs(other))


@_compile
def _hits(rows: Any, columns: Any, width: Any, row_codes: Any, column_codes: Any) -> Any:
    (scale, bias, floor), (column_scale, column_bias, column_floor) = row_codes, column_codes
    sums, panels = _sums_of(rows), _panels_of(columns)
    scales = np.zeros(len(panels) * COLUMNS, dtype=np.float32)
    levels = np.zeros_like(scales)
    scales[:width] = column_scale
    levels[:width] = _levels(column_floor, column_bias, np.abs(bias).max())
    block, masks = np.empty((ROWS, COLUMNS), np.int32), np.empty(ROWS, np.uint64)
    places, bounds = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    found = 0
    for panel in range(len(panels)):
        start = panel * COLUMNS
        highest = column_bias[start : start + COLUMNS].max()
        left = rows, sums, scale, bias, _levels(floor, highest, bias)
        for first in range(0, len(rows), ROWS):
            if not multiply_block(first, panel, left, (panels, scales, levels), (block, masks)):
                continue
            if found + block.size > len(places):
                places, bounds = longer(places), longer(bounds)
            for row in range(first, min(first + ROWS, len(rows))):
                row_scale, row_bias, row_floor = scale[row], bias[row], floor[row]
                bits = masks[row - first]
                while bits:
                    lane = np.int64(lowest_bit(bits))
                    bits &= bits - np.uint64(1)
                    column = start + lane
                    if column >= width:
                        break
                    value = np.float32(block[row - first, lane])
                    bound = value * (row_scale * column_scale[column])
                    bound += row_bias + column_bias[column]
                    if bound > min(row_floor, column_floor[column]):
                        places[found], bounds[found] = row * width + column, bound
                        found += 1
    return places[:found], bounds[:found]


class Columns:
    """Codes int8 (C, D), laid out to be multiplied again and again."""

    def __init__(self, codes: NDArray[np.int8]) -> None:
        self._count = len(codes)
        self._panels = _panels_of(_by_fours(codes).view(np.int32))

    def multiplied(self, rows: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return the products of codes (R, D) and these: (R, C)."""
        products = np.empty((len(rows), self._count), dtype=np.int32)
        if products.size:
            _fill(_by_fours(rows), self._panels, products)
        return products


def hits(rows: Any, columns: Any, row_codes: Any, column_codes: Any) -> Any:
    """Return what ``miner.knn.core.compiled.hits`` does, of int8 codes at the cost of a product."""
    panels = _by_fours(columns).view(np.int32)
    return _hits(_by_fours(rows), panels, len(columns), row_codes, column_codes)


def _by_fours(codes: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return codes (N, D) with zeros added to a multiple of DEPTH dimensions."""
    spare = -codes.shape[1] % DEPTH
    return np.ascontiguousarray(np.pad(codes, ((0, 0), (0, spare))) if spare else codes)
