"""Sums and lengths of rows by Numba, as ``encoder.rows`` has in NumPy."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from miner.compiling import compiled, compiled_part

F = np.float32
ZERO = F(8)  # the code of 0
CODE_BITS = np.uint8(4)
CODE_MASK = np.uint8(15)
PREFETCH_TOKENS = 16  # from the fetching of a row to its use, which halves the time of a sum
LANES = np.uint64(8)  # partial sums of a norm
LINE_BYTES = 64  # a CPU's cache line

_compile = compiled()
_part = compiled_part()


@intrinsic
def _fetch(context: Any, array: Any, row: Any, column: Any) -> Any:

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        matrix = context.make_array(kind)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, kind, matrix, arguments[1:])
        address, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [address, int32, int32, int32]),
            "llvm.prefetch.p0i8",
        )
        # Arguments: for reading, into all caches but the first, which long rows would fill, data.
        builder.call(prefetch, [builder.bitcast(pointer, address), int32(0), int32(2), int32(1)])
        return context.get_dummy_value()

    return types.void(array, types.uintp, types.uintp), build


@_part
def fetch_row(table: Any, row: Any) -> None:
    """Fetch a row of a table (V, D) into the caches, without waiting for it."""
    step = LINE_BYTES // table.itemsize
    for column in range(0, table.shape[1] + step, step):  # one more, as rows begin inside lines
        _fetch(table, row, column)  # type: ignore[call-arg]


@_part
def _add(total: Any, row: Any) -> None:
    for column in range(len(total)):
        total[column] += row[column]


@_compile
def sum_floats(table: Any, ids: Any, offsets: Any, sums: Any) -> None:
    """Fill ``sums``, float32 (S, D), with sums of rows of a table (V, D).

    ``table`` is float32, ``ids`` int32, and ``offsets`` int64 (S + 1,). Sum i is of the rows
    ``ids[offsets[i] : offsets[i + 1]]``, or 0 without rows.
    """
    for owner in range(len(sums)):
        total = sums[owner]
        total[:] = 0
        for position in range(offsets[owner], offsets[owner + 1]):
            fetch_row(table, np.uint32(ids[min(position + PREFETCH_TOKENS, len(ids) - 1)]))
            _add(total, table[np.uint32(ids[position])])


@_compile
def sum_packed(codes: Any, scales: Any, ids: Any, offsets: Any, sums: Any) -> None:
    """Fill ``sums``, float32 (S, D), with sums of rows of a packed table.

    ``codes`` and ``scales`` are of ``encoder.rows.PackedTable``, the rest as in ``sum_floats``.
    """
    half, last = codes.shape[1], len(ids) - 1
    upper, lower = np.empty(half, F), np.empty(half, F)
    column = scales.reshape(-1, 1)
    for owner in range(len(sums)):
        upper[:] = 0
        lower[:] = 0
        for position in range(offsets[owner], offsets[owner + 1]):
            next_row = np.uint32(ids[min(position + PREFETCH_TOKENS, last)])
            fetch_row(codes, next_row)
            _fetch(column, next_row, 0)  # type: ignore[call-arg]
            row = np.uint32(ids[position])
            scale = scales[row]
            for byte in range(half):
                code = codes[row, byte]  # 32 bits, not 64, for vector instructions
                upper[byte] += (F(np.int32(code >> CODE_BITS)) - ZERO) * scale
                lower[byte] += (F(np.int32(code & CODE_MASK)) - ZERO) * scale
        sums[owner, ::2] = upper
        sums[owner, 1::2] = lower[: sums.shape[1] // 2]


@_compile
def normalize(rows: Any, lengths: Any, least: Any) -> None:
    """Divide rows, float32 (S, D), by their lengths in place.

    ``lengths``, float32 (S,), receives the lengths. A divisor is ``least`` or more.
    """
    dim = np.uint64(rows.shape[1])
    whole = dim - dim % LANES
    sums = np.empty(LANES, F)
    for number in range(len(rows)):
        row = rows[number]
        sums[:] = 0
        for start in range(np.uint64(0), whole, LANES):
            for lane in range(LANES):
                sums[lane] += row[start + lane] * row[start + lane]
        total = sums[0]
        for lane in range(1, LANES):
            total += sums[lane]
        for column in range(whole, dim):
            total += row[column] * row[column]
        lengths[number] = np.sqrt(total)
        row /= max(lengths[number], least)
