"""Products of float32 matrices that do not depend on other rows.

Libraries order sums by the place of a row and a column in the matrix, so the last bits of a row's
products depend on the rows around it. Here each product is a chain of fused multiply-adds from the
first dimension to the last, on every CPU. Axes: ``R`` rows, ``D`` dimensions, ``N`` columns.
"""

import itertools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

import miner.knn.core.int8 as int8
from encoder.rows import Matrix
from miner.compiling import compiled
from miner.instructions import declared

# Rows of a block of products, and registers of its columns. AVX2 has 16 registers for all.
ROWS, VECTORS = 6, 2 if int8.LANES == 8 else int8.VECTORS
COLUMNS = int8.LANES * VECTORS


@intrinsic
def _multiply_block(typing: Any, first: Any, panel: Any, rows: Any, panels: Any, out: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        left, right, products = (
            context.make_array(signature.args[i])(context, builder, values[i]) for i in (2, 3, 4)
        )
        first, panel = values[:2]
        count, depth = cgutils.unpack_tuple(builder, left.shape, 2)
        numbers = int8.rows_from(builder, first, count, ROWS)

        def row_of(array: Any, row: Any) -> Any:
            step = cgutils.unpack_tuple(builder, array.strides, 2)[0]
            pointer = cgutils.pointer_add(builder, array.data, builder.mul(row, step))
            return builder.bitcast(pointer, ir.FloatType().as_pointer())

        lefts = [row_of(left, row) for row in numbers]
        columns_before = builder.mul(panel, int8.LONG(COLUMNS))  # columns
        start = builder.gep(right.data, [builder.mul(columns_before, depth)])
        weights = builder.bitcast(start, int8.FLOATS.as_pointer())
        multiply_add = declared(builder, f"llvm.fma.v{int8.LANES}f32", *[int8.FLOATS] * 4)
        zero = ir.Constant(int8.FLOATS, None)
        totals = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(VECTORS)] for _ in range(ROWS)
        ]
        for total in itertools.chain(*totals):
            builder.store(zero, total)
        with cgutils.for_range(builder, depth) as loop:
            columns = int8.loaded(builder, weights, loop.index, VECTORS)
            for row, sums in zip(lefts, totals, strict=True):
                number = int8.in_all_lanes(builder, row, loop.index)
                for total, column in zip(sums, columns, strict=True):
                    value = builder.call(multiply_add, [number, column, builder.load(total)])
                    builder.store(value, total)
        for row, sums in zip(numbers, totals, strict=True):
            pointer = builder.gep(row_of(products, row), [columns_before])
            vectors = builder.bitcast(pointer, int8.FLOATS.as_pointer())
            for part, total in enumerate(sums):
                builder.store(builder.load(total), builder.gep(vectors, [int8.LONG(part)]), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, rows, panels, out), generate


@compiled()
def _multiply(rows: Any, panels: Any, out: Any) -> None:
    for panel in range(len(panels)):
        for first in range(0, len(rows), ROWS):
            _multiply_block(first, panel, rows, panels, out)


class Weights:
    """Weights, float32 (D, N), laid out to multiply rows fast."""

    def __init__(self, weights: Matrix) -> None:
        depth, self._width = weights.shape
        padded = np.pad(weights, ((0, 0), (0, -self._width % COLUMNS)))
        panels = padded.reshape(depth, -1, COLUMNS).transpose(1, 0, 2)
        self._panels = np.ascontiguousarray(panels, dtype=np.float32)

    def multiplied(self, rows: Matrix) -> Matrix:
        """Multiply rows (R, D), each contiguous, by weights, to float32 (R, N)."""
        panels, _, columns = self._panels.shape
        out = np.empty((len(rows), panels * columns), dtype=np.float32)
        _multiply(rows, self._panels, out)
        return out[:, : self._width]
