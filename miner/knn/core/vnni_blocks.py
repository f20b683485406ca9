"""Blocks of int8 products by the VNNI instructions of x86-64, which Python cannot name.

Written as LLVM code, which Numba puts into the loops of ``miner.knn.core.vnni``. One instruction
multiplies 64 codes by 64 and sums them by fours. A block of products, ROWS rows by COLUMNS columns,
stays in the processor's registers while it goes through the dimensions (Goto and van de Geijn 2008,
Anatomy of High-Performance Matrix Multiplication) and is compared with its rows' and columns'
levels there. The instruction takes one factor without sign: the codes of columns are raised by 128,
and sums start at -128 times the sum of the row's codes.

Axes: ``R`` rows and ``C`` columns of a tile, ``D`` dimensions, ``P`` panels of COLUMNS columns.
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from miner.knn.core.products import DEPTH


def _features() -> Mapping[str, bool]:
    """Return what the processor has that code compiled here may use."""
    if any(os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")):
        return {}  # Numba is to compile for another
    try:
        return binding.get_host_cpu_features()  # type: ignore[no-any-return]
    except RuntimeError:  # LLVM does not know this processor
        return {}


_FEATURES = _features()
_WIDE = bool(_FEATURES.get("avx512vnni"))  # registers of 64 bytes, 32 of them, else 16 of 32
AVAILABLE = _WIDE or bool(_FEATURES.get("avxvnni"))
# A unit of its own for products of int8 matrices, several times as fast, which torch uses.
HAS_AMX = bool(_FEATURES.get("amx-int8"))
LANES, VECTORS, ROWS = (16, 4, 6) if _WIDE else (8, 2, 6)
COLUMNS = LANES * VECTORS
RAISED = int(np.array([128] * DEPTH, dtype=np.uint8).view(np.int32)[0])

BIT, NUMBER, LONG = ir.IntType(1), ir.IntType(32), ir.IntType(64)
VECTOR, FLOATS = (ir.VectorType(kind, LANES) for kind in (NUMBER, ir.FloatType()))


def declared(builder: Any, name: str, *given: Any) -> Any:
    """Return a function of LLVM that returns what it is given first."""
    kind = ir.FunctionType(given[0], given)
    return cgutils.get_or_insert_function(builder.module, kind, name)


def _vector(builder: Any, start: Any, *steps: Any) -> Any:
    """Return the address of a vector, so many numbers after the start of its array."""
    for step in steps:
        start = builder.gep(start, [step])
    kind = FLOATS if start.type.pointee == ir.FloatType() else VECTOR
    return builder.bitcast(start, kind.as_pointer())


def loaded(builder: Any, vectors: Any, row: Any) -> list[Any]:
    """Return the vectors of a row of COLUMNS numbers, from the address of the first row's first."""
    start = builder.mul(row, LONG(VECTORS))
    places = [builder.add(start, LONG(part)) for part in range(VECTORS)]
    return [builder.load(builder.gep(vectors, [place]), align=4) for place in places]


def rows_from(builder: Any, first: Any, count: Any, rows: int) -> list[Any]:
    """Return the numbers of so many rows of ``count``: the last again where there are too few."""
    last = builder.sub(count, LONG(1))
    numbers = [builder.add(first, LONG(row)) for row in range(rows)]
    return [builder.select(builder.icmp_signed("<", row, last), row, last) for row in numbers]


def in_all_lanes(builder: Any, pointer: Any) -> Any:
    """Return a vector of the number at a pointer."""
    number = builder.load(pointer, align=4)
    undefined = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    one = builder.insert_element(undefined, number, NUMBER(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(VECTOR, None))


@intrinsic
def multiply_block(typing: Any, first: Any, panel: Any, left: Any, right: Any, out: Any) -> Any:
    """Fill a block (ROWS, COLUMNS) with products of rows from ``first`` on and a panel.

    ``left`` are codes (R, D), and, (R,), what sums start at, scales, biases, and levels for this
    panel; ``right`` are panels (P, D / 4, COLUMNS), and scales and levels (P, COLUMNS). ``out`` are
    the block and masks (ROWS,), which get a bit for each product p with ``p column_scale row_scale
    + row_bias`` above the lower of both levels. Returns whether one has.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def arrays(place: int) -> list[Any]:
            kinds = signature.args[place]
            parts = cgutils.unpack_tuple(builder, values[place], len(kinds))
            return [
                context.make_array(kind)(context, builder, part)
                for kind, part in zip(kinds, parts, strict=True)
            ]

        first, panel = values[:2]
        (codes, sums, *of_rows), (panels, *of_columns), (block, masks) = map(arrays, (2, 3, 4))
        count, _ = cgutils.unpack_tuple(builder, codes.shape, 2)
        _, depth, _ = cgutils.unpack_tuple(builder, panels.shape, 3)
        numbers = rows_from(builder, first, count, ROWS)
        start = builder.bitcast(codes.data, NUMBER.as_pointer())
        left = [builder.gep(start, [builder.mul(row, depth)]) for row in numbers]
        multiply = declared(builder, f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", *[VECTOR] * 3)
        found = [
            [cgutils.alloca_once_value(builder, total) for _ in range(VECTORS)]
            for total in (in_all_lanes(builder, builder.gep(sums.data, [row])) for row in numbers)
        ]
        right = _vector(builder, panels.data, builder.mul(builder.mul(panel, depth), LONG(COLUMNS)))
        with cgutils.for_range(builder, depth) as loop:
            columns = loaded(builder, right, loop.index)
            for row, products in zip(left, found, strict=True):
                code = in_all_lanes(builder, builder.gep(row, [loop.index]))
                for product, column in zip(products, columns, strict=True):
                    total = builder.call(multiply, [builder.load(product), column, code])
                    builder.store(total, product)
        scales, levels = (loaded(builder, _vector(builder, at.data), panel) for at in of_columns)
        out, marks = _vector(builder, block.data), builder.bitcast(masks.data, LONG.as_pointer())
        multiply_add = declared(builder, f"llvm.fma.v{LANES}f32", *[FLOATS] * 3)
        some = LONG(0)
        for row, products in enumerate(found):
            scale, bias, level = (
                in_all_lanes(builder, builder.gep(at.data, [numbers[row]])) for at in of_rows
            )
            bits = LONG(0)
            for part, product in enumerate(products):
                value = builder.load(product)
                builder.store(value, builder.gep(out, [LONG(row * VECTORS + part)]), align=4)
                scaled = builder.fmul(builder.sitofp(value, FLOATS), scales[part])
                bound = builder.call(multiply_add, [scaled, scale, bias])
                lower = builder.fcmp_ordered("<", levels[part], level)
                hits = builder.fcmp_ordered(">", bound, builder.select(lower, levels[part], level))
                hits = builder.zext(builder.bitcast(hits, ir.IntType(LANES)), LONG)
                bits = builder.or_(bits, builder.shl(hits, LONG(part * LANES)))
            builder.store(bits, builder.gep(marks, [LONG(row)]))
            some = builder.or_(some, bits)
        return builder.icmp_unsigned("!=", some, LONG(0))

    return types.boolean(types.int64, types.int64, left, right, out), generate


@intrinsic
def raise_and_turn(typing: Any, codes: Any, column: Any, step: Any, panels: Any, to: Any) -> Any:
    """Raise the codes (C, S) of LANES columns in LANES steps of four, and put steps below others.

    They go to ``to`` in ``panels``, seen as one row of numbers, and on by COLUMNS.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source, out = (
            context.make_array(signature.args[at])(context, builder, values[at]) for at in (0, 3)
        )
        _, column, step, _, to = values
        count, steps = cgutils.unpack_tuple(builder, source.shape, 2)
        vectors = [
            builder.load(_vector(builder, source.data, builder.mul(row, steps), step), align=4)
            for row in rows_from(builder, column, count, LANES)
        ]
        size = LANES // 2
        while size:  # swap the off-diagonal blocks of so many rows and lanes
            upper = [lane if not lane & size else LANES + lane - size for lane in range(LANES)]
            lower = [lane + size if not lane & size else LANES + lane for lane in range(LANES)]
            for row in range(LANES):
                if not row & size:
                    pair = vectors[row], vectors[row + size]
                    vectors[row], vectors[row + size] = (
                        builder.shuffle_vector(*pair, ir.Constant(VECTOR, lanes))
                        for lanes in (upper, lower)
                    )
            size //= 2
        for place, vector in enumerate(vectors):
            raised = builder.xor(vector, ir.Constant(VECTOR, [RAISED] * LANES))
            builder.store(raised, _vector(builder, out.data, to, LONG(place * COLUMNS)), align=4)
        return context.get_dummy_value()

    long = types.int64
    return types.void(codes, long, long, panels, long), generate


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """Return the number of zeros below the lowest one of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], BIT(1))

    return types.uint64(types.uint64), generate
