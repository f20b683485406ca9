"""Products of int8 codes by the VNNI instructions of x86-64, and which of them are worth a look.

Python cannot name the instructions: they are in LLVM code, which Numba puts into its loops, and
compiles for the processor at hand. One multiplies 64 codes by 64 and sums them by fours. A block of
products, ROWS rows by COLUMNS columns, stays in the processor's registers while it goes through the
dimensions (Goto and van de Geijn 2008, Anatomy of High-Performance Matrix Multiplication) and is
compared with its rows' and columns' levels there: most products never reach memory. The instruction
takes one factor without sign: the codes of columns are raised by 128, and sums start at -128 times
the sum of the row's codes.

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
from numpy.typing import NDArray

from miner.compiling import compiled, compiled_part
from miner.knn.core.compiled import FASTMATH, longer
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

ERROR = np.float32(2.0**-20)  # relative, of some operations in float32

_compile = compiled(fastmath=FASTMATH)
_part = compiled_part(fastmath=FASTMATH)


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


def in_all_lanes(builder: Any, numbers: Any, place: Any) -> Any:
    """Return a vector of one of an array's numbers."""
    number = builder.load(builder.gep(numbers, [place]), align=4)
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
            for total in (in_all_lanes(builder, sums.data, row) for row in numbers)
        ]
        right = _vector(builder, panels.data, builder.mul(builder.mul(panel, depth), LONG(COLUMNS)))
        with cgutils.for_range(builder, depth) as loop:
            columns = loaded(builder, right, loop.index)
            for row, products in zip(left, found, strict=True):
                code = in_all_lanes(builder, row, loop.index)
                for product, column in zip(products, columns, strict=True):
                    total = builder.call(multiply, [builder.load(product), column, code])
                    builder.store(total, product)
        scales, levels = (loaded(builder, _vector(builder, at.data), panel) for at in of_columns)
        out, marks = _vector(builder, block.data), builder.bitcast(masks.data, LONG.as_pointer())
        multiply_add = declared(builder, f"llvm.fma.v{LANES}f32", *[FLOATS] * 3)
        some = LONG(0)
        for row, products in enumerate(found):
            scale, bias, level = (in_all_lanes(builder, at.data, numbers[row]) for at in of_rows)
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
