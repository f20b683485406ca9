"""Products of int8 codes by the instructions of ``miner.instructions``.

A block of products, ROWS rows by COLUMNS columns, stays in the CPU's registers over all dimensions
(Goto and van de Geijn 2008, Anatomy of High-Performance Matrix Multiplication). There, it is
compared with levels (floors minus biases), so most products never reach memory. If a number is
added to the codes of columns (``raised``), sums start at minus that number times the sum of the
row's codes. Functions with a ``builder`` generate LLVM code. Compiled callers omit ``typing``, and
if TILES, call ``use_tiles`` and ``_whole_blocks`` before blocks. If CHOSEN is None, call nothing.

Axes: ``R`` rows and ``C`` columns of a tile, ``D`` dimensions, ``P`` panels of COLUMNS columns. A
lane has 32 bits, which are four codes of int8 or two of int16. ``depth`` is the number of lanes.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from miner.compiling import compiled, compiled_part
from miner.instructions import ASKED, CHOSEN, SETS, USABLE, Way, declared, in_lanes
from miner.knn.core.compiled import FASTMATH, longer

__all__ = ["ASKED", "CHOSEN", "LARGEST", "LARGEST_SUM", "Columns", "hits"]

# Without a usable set, nothing is multiplied. Products of floats use the same registers.
_SET = CHOSEN or SETS[USABLE[0] if USABLE else "avx2"]
LANES, VECTORS, ROWS = _SET.lanes, _SET.vectors, _SET.rows
COLUMNS = LANES * VECTORS
LARGEST, LARGEST_SUM, TILES = _SET.largest, _SET.largest_sum, _SET.tiles

BIT, NUMBER, LONG = ir.IntType(1), ir.IntType(32), ir.IntType(64)
VECTOR, FLOATS = (ir.VectorType(kind, LANES) for kind in (NUMBER, ir.FloatType()))
OCTETS = ir.VectorType(ir.IntType(8), 4 * LANES)
OCTET = 0x01010101  # repeats a number in four bytes
TILE, TILE_BYTES, LANE_BYTES = 16, 64, 4  # rows of an AMX tile, and bytes of a row and of a lane

ERROR = np.float32(2.0**-20)  # relative error of some float32 operations

_compile = compiled(fastmath=FASTMATH)
_part = compiled_part(fastmath=FASTMATH)


def way_of(kind: Any, *, limited: bool = False) -> Way:
    """Return this CPU's way to multiply codes of a dtype, int8 or int16.

    ``InstructionSet`` says when int8 codes are ``limited``, and which sets multiply int16 codes.
    """
    if str(kind) == "int8":
        return (limited and _SET.limited) or _SET.int8
    assert _SET.int16 is not None, kind
    return _SET.int16


def _vector(builder: Any, start: Any, *steps: Any) -> Any:
    """Return the address of a vector at ``steps`` from the start of an array."""
    for step in steps:
        start = builder.gep(start, [step])
    kind = FLOATS if start.type.pointee == ir.FloatType() else VECTOR
    return builder.bitcast(start, kind.as_pointer())


def loaded(builder: Any, vectors: Any, row: Any, count: int = VECTORS) -> list[Any]:
    """Emit LLVM code that loads a row of numbers as ``count`` vectors.

    ``vectors`` is a pointer to vectors of LANES numbers, and ``row`` an LLVM integer of 64 bits.
    """
    start = builder.mul(row, LONG(count))
    places = [builder.add(start, LONG(part)) for part in range(count)]
    return [builder.load(builder.gep(vectors, [place]), align=4) for place in places]


def rows_from(builder: Any, first: Any, count: Any, rows: int) -> list[Any]:
    """Emit ``rows`` row numbers from ``first``, limited to ``count`` - 1.

    ``first``, ``count`` and the result are LLVM integers of 64 bits.
    """
    last = builder.sub(count, LONG(1))
    numbers = [builder.add(first, LONG(row)) for row in range(rows)]
    return [builder.select(builder.icmp_signed("<", row, last), row, last) for row in numbers]


def in_all_lanes(builder: Any, numbers: Any, place: Any) -> Any:
    """Emit an LLVM vector with the number at a place in all LANES lanes.

    ``numbers`` is a pointer to numbers of 32 bits, and ``place`` an LLVM integer of 64 bits.
    """
    number = builder.load(builder.gep(numbers, [place]), align=4)
    return in_lanes(builder, number, LANES)


def _arrays(context: Any, builder: Any, signature: Any, values: Any, place: int) -> list[Any]:
    """Return the arrays of the tuple that is the argument at ``place``."""
    kinds = signature.args[place]
    parts = cgutils.unpack_tuple(builder, values[place], len(kinds))
    return [
        context.make_array(kind)(context, builder, part)
        for kind, part in zip(kinds, parts, strict=True)
    ]


def _block(
    builder: Any, way: Way, rows: list[Any], panel: Any, arrays: tuple[Any, Any, Any]
) -> list[list[Any]]:
    """Multiply a block, and return ROWS lists of pointers to vectors."""
    codes, sums, panels = arrays
    if TILES:
        return _block_of_tiles(builder, rows[0], panel, codes, panels)
    assert way.multiply
    _, depth, _ = cgutils.unpack_tuple(builder, panels.shape, 3)
    start = builder.bitcast(codes.data, NUMBER.as_pointer())
    left = [builder.gep(start, [builder.mul(row, depth)]) for row in rows]
    products = [
        [cgutils.alloca_once_value(builder, total) for _ in range(VECTORS)]
        for total in (in_all_lanes(builder, sums.data, row) for row in rows)
    ]
    right = _vector(builder, panels.data, builder.mul(builder.mul(panel, depth), LONG(COLUMNS)))
    places = [
        (row, part, place)
        for row, of_row in zip(left, products, strict=True)
        for part, place in enumerate(of_row)
    ]
    with cgutils.for_range(builder, builder.udiv(depth, LONG(way.steps))) as loop:
        first_step = builder.mul(loop.index, LONG(way.steps))
        for group in [places] if way.by_step else [[place] for place in places]:
            sums = [None if way.widen else builder.load(place) for _, _, place in group]
            for number in range(way.steps):
                step = builder.add(first_step, LONG(number))
                for at, (row, part, _) in enumerate(group):  # LLVM loads the same codes once
                    column = loaded(builder, right, step)[part]
                    code = in_all_lanes(builder, row, step)
                    sums[at] = way.multiply(builder, sums[at], column, code)
            for total, (_, _, place) in zip(sums, group, strict=True):
                if way.widen:
                    total = way.widen(builder, builder.load(place), total)
                builder.store(total, place)
    return products


def _block_of_tiles(
    builder: Any, first: Any, panel: Any, codes: Any, panels: Any
) -> list[list[Any]]:
    """Multiply a block by AMX, without initial sums."""
    _, depth, _ = cgutils.unpack_tuple(builder, panels.shape, 3)
    width = builder.mul(depth, LONG(LANE_BYTES))
    byte = ir.IntType(8).as_pointer()
    left = builder.gep(builder.bitcast(codes.data, byte), [builder.mul(first, width)])
    right = builder.bitcast(panels.data, byte)
    right = builder.gep(right, [builder.mul(panel, builder.mul(width, LONG(COLUMNS)))])
    halves = range(ROWS // TILE)
    sums = {(row, column): 2 * row + column for row in halves for column in halves}
    row_tiles, column_tiles = 4, 6  # the first of two each
    of_columns = COLUMNS * LANE_BYTES
    for tile in sums.values():
        call_on_tiles(builder, "tilezero", tile)
    with cgutils.for_range(builder, builder.udiv(depth, LONG(TILE))) as loop:
        own = builder.gep(left, [builder.mul(loop.index, LONG(TILE_BYTES))])
        beside = builder.gep(right, [builder.mul(loop.index, LONG(TILE * of_columns))])
        for half in halves:
            rows = builder.gep(own, [builder.mul(width, LONG(half * TILE))])
            call_on_tiles(builder, "tileloadd64", row_tiles + half, rows, width)
            columns = builder.gep(beside, [LONG(half * TILE_BYTES)])
            call_on_tiles(builder, "tileloadd64", column_tiles + half, columns, LONG(of_columns))
        for (row, column), tile in sums.items():
            call_on_tiles(builder, "tdpbssd", tile, row_tiles + row, column_tiles + column)
    out = cgutils.alloca_once(builder, VECTOR, size=ROWS * VECTORS)
    for (row, column), tile in sums.items():
        place = builder.gep(out, [LONG(row * TILE * VECTORS + column)])
        call_on_tiles(builder, "tilestored64", tile, builder.bitcast(place, byte), LONG(of_columns))
    return [
        [builder.gep(out, [LONG(row * VECTORS + part)]) for part in range(VECTORS)]
        for row in range(ROWS)
    ]


def call_on_tiles(builder: Any, name: str, *values: Any) -> None:
    """Emit a call of AMX's instruction ``name`` on tiles (ints) and values."""
    given = [ir.IntType(8)(value) if isinstance(value, int) else value for value in values]
    function = declared(builder, f"llvm.x86.{name}", ir.VoidType(), *(each.type for each in given))
    builder.call(function, given)


@intrinsic
def use_tiles(typing: Any, begin: Any) -> Any:
    """Configure (literal True) or release (False) this thread's tiles, if any."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if TILES and begin.literal_value:
            # Palette 1, then, from byte 16, the bytes of each of 8 tiles' rows, and their rows.
            numbers = bytes([1] + 15 * [0] + 8 * [TILE_BYTES, 0] + 16 * [0] + 8 * [TILE] + 8 * [0])
            kind = ir.ArrayType(ir.IntType(8), len(numbers))
            place = cgutils.alloca_once_value(builder, ir.Constant(kind, bytearray(numbers)))
            call_on_tiles(builder, "ldtilecfg", builder.bitcast(place, ir.IntType(8).as_pointer()))
        elif TILES:
            call_on_tiles(builder, "tilerelease")
        return context.get_dummy_value()

    if not isinstance(begin, types.BooleanLiteral):
        return None
    return types.void(begin), generate


@intrinsic
def multiply_block(typing: Any, first: Any, panel: Any, left: Any, right: Any, out: Any) -> Any:
    """Multiply ROWS rows by a panel, and return whether there are hits.

    A product p is a hit if ``p column_scale row_scale + row_bias`` exceeds the lower level of its
    row and column. ``first`` is the first row, ``panel`` the panel's number. ``left`` are arrays of
    R rows: codes (R, D) as in ``hits``, int32 sums to begin with, and float32 scales, biases and
    levels, (R,) each. ``right`` are int32 panels (P, depth, COLUMNS), and float32 scales and
    levels, P * COLUMNS each. If there are hits, it fills ``out``: int32 products (ROWS, COLUMNS),
    and uint64 masks (ROWS,), a bit per column, 1 for a hit. Rows past the last are copies of it.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (codes, sums, *of_rows), (panels, *of_columns), (block, masks) = (
            _arrays(context, builder, signature, values, place) for place in (2, 3, 4)
        )
        panel, (count,) = values[1], cgutils.unpack_tuple(builder, of_rows[0].shape, 1)
        numbers = rows_from(builder, values[0], count, ROWS)
        way = way_of(signature.args[2][0].dtype, limited=True)
        products_of_rows = _block(builder, way, numbers, panel, (codes, sums, panels))
        scales, levels = (loaded(builder, _vector(builder, at.data), panel) for at in of_columns)
        out, marks = _vector(builder, block.data), builder.bitcast(masks.data, LONG.as_pointer())
        multiply_add = declared(builder, f"llvm.fma.v{LANES}f32", *[FLOATS] * 4)
        products, found, any_hits = [], [], ir.Constant(ir.VectorType(BIT, LANES), None)
        for number, totals in zip(numbers, products_of_rows, strict=True):
            scale, bias, level = (in_all_lanes(builder, at.data, number) for at in of_rows)
            for part, product in enumerate(totals):
                value = builder.load(product)
                scaled = builder.fmul(builder.sitofp(value, FLOATS), scales[part])
                bound = builder.call(multiply_add, [scaled, scale, bias])
                lower = builder.fcmp_ordered("<", levels[part], level)
                hits = builder.fcmp_ordered(">", bound, builder.select(lower, levels[part], level))
                any_hits = builder.or_(any_hits, hits)
                products.append(value)
                found.append(hits)
        all_bits = builder.bitcast(any_hits, ir.IntType(LANES))
        is_hit = builder.icmp_unsigned("!=", all_bits, all_bits.type(0))
        with builder.if_then(is_hit, likely=False):
            for place, value in enumerate(products):
                builder.store(value, builder.gep(out, [LONG(place)]), align=4)
            for row in range(ROWS):
                bits = LONG(0)
                for part, hits in enumerate(found[row * VECTORS : (row + 1) * VECTORS]):
                    mask = builder.zext(builder.bitcast(hits, ir.IntType(LANES)), LONG)
                    bits = builder.or_(bits, builder.shl(mask, LONG(part * LANES)))
                builder.store(bits, builder.gep(marks, [LONG(row)]))
        return is_hit

    return types.boolean(types.int64, types.int64, left, right, out), generate


@intrinsic
def write_block(typing: Any, first: Any, panel: Any, left: Any, panels: Any, out: Any) -> Any:
    """Write the products of ROWS rows and one panel to their place in ``out``.

    ``out`` is int32 (R, P * COLUMNS). ``left`` are codes (R, D) and int32 sums (R,) to begin with.
    ``first`` is the first row, and ``panel`` a number in ``panels``, int32 (P, depth, COLUMNS).
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        codes, sums = _arrays(context, builder, signature, values, 2)
        panels, out = (
            context.make_array(signature.args[at])(context, builder, values[at]) for at in (3, 4)
        )
        panel = values[1]
        count, width = cgutils.unpack_tuple(builder, out.shape, 2)
        numbers = rows_from(builder, values[0], count, ROWS)
        way = way_of(signature.args[2][0].dtype)
        products_of_rows = _block(builder, way, numbers, panel, (codes, sums, panels))
        for number, totals in zip(numbers, products_of_rows, strict=True):
            row = builder.mul(number, width)
            place = _vector(builder, out.data, row, builder.mul(panel, LONG(COLUMNS)))
            for part, product in enumerate(totals):
                to = builder.gep(place, [LONG(part)])
                builder.store(builder.load(product), to, align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, left, panels, out), generate


@intrinsic
def raise_and_turn(typing: Any, codes: Any, raised: Any, at: Any, panels: Any, to: Any) -> Any:
    """Transpose LANES lanes of LANES columns of codes into ``panels``.

    ``at`` are the first column and the first lane in ``codes``, int32 (C, depth). Lane i goes to
    the positions from ``to + i COLUMNS`` in the flattened panels. Columns past the last column of
    ``codes`` are copies of it. ``raised``, one number in all four bytes of an int32, is added to
    the codes.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source, out = (
            context.make_array(signature.args[at])(context, builder, values[at]) for at in (0, 3)
        )
        _, number, place, _, to = values
        column, step = cgutils.unpack_tuple(builder, place, 2)
        added = builder.bitcast(in_lanes(builder, number, LANES), OCTETS)
        count, steps = cgutils.unpack_tuple(builder, source.shape, 2)
        vectors = [
            builder.load(_vector(builder, source.data, builder.mul(row, steps), step), align=4)
            for row in rows_from(builder, column, count, LANES)
        ]
        size = LANES // 2
        while size:  # swap off-diagonal blocks of this size
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
            raised = builder.bitcast(builder.add(builder.bitcast(vector, OCTETS), added), VECTOR)
            builder.store(raised, _vector(builder, out.data, to, LONG(place * COLUMNS)), align=4)
        return context.get_dummy_value()

    long = types.int64
    place = types.UniTuple(long, 2)
    return types.void(codes, types.int32, place, panels, long), generate


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """Return the position of the lowest set bit of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], BIT(1))

    return types.uint64(types.uint64), generate


@_part
def _whole_blocks(rows: Any) -> Any:
    """Return rows, with copies of the last one if tiles would read beyond it."""
    if not TILES or len(rows) % ROWS == 0:
        return rows
    padded = np.empty((-(-len(rows) // ROWS) * ROWS, rows.shape[1]), rows.dtype)
    padded[: len(rows)], padded[len(rows) :] = rows, rows[-1]
    return padded


@_part
def _sums_of(rows: Any, raised: Any) -> Any:
    sums = np.zeros(len(rows), dtype=np.int32)
    if raised == 0:
        return sums
    for row in range(len(rows)):
        total = np.int32(0)
        for code in rows[row]:
            total += np.int32(code)
        sums[row] = np.int32(-raised) * total
    return sums


@_part
def _panels_of(columns: Any, raised: Any) -> Any:
    """Return columns (C, depth) plus ``raised`` as panels (P, depth, COLUMNS)."""
    count, depth = columns.shape
    panels = np.empty(((count + COLUMNS - 1) // COLUMNS, depth, COLUMNS), dtype=np.int32)
    turned, four = depth - depth % LANES, np.int32(raised * OCTET)
    low, high = np.int32(0x7F * OCTET), np.int32(~(0x7F * OCTET))
    for panel in range(len(panels)):
        first = panel * COLUMNS
        for step in range(0, turned, LANES):
            for place in range(0, COLUMNS, LANES):
                to = (panel * depth + step) * COLUMNS + place
                raise_and_turn(columns, four, (first + place, step), panels, to)
        for step in range(turned, depth):  # without carries from one byte to the next
            for place in range(COLUMNS):
                lane = columns[min(first + place, count - 1), step]
                panels[panel, step, place] = ((lane & low) + (four & low)) ^ ((lane ^ four) & high)
    return panels


_laid_out = _compile(_panels_of.py_func)


@_part
def products_of(rows: Any, panels: Any, raised: Any) -> Any:
    """Multiply codes (R, D) by panels, to int32 (R, P * COLUMNS).

    ``panels`` and ``raised`` are from ``panels_of``, for columns of the same D and dtype.
    """
    left = _whole_blocks(rows), _sums_of(rows, raised)
    out = np.empty((len(rows), len(panels) * COLUMNS), np.int32)
    use_tiles(True)
    for panel in range(len(panels)):
        for first in range(0, len(rows), ROWS):
            write_block(first, panel, left, panels, out)
    use_tiles(False)
    return out


_multiplied = _compile(products_of.py_func)


@_part
def _levels(floor: Any, bias: Any, other: Any) -> Any:
    """Return floors (N,) minus biases, lowered by errors, also of ``other``."""
    return floor - bias - ERROR * (np.abs(floor) + np.abs(bias) + np.abs(other))


@_compile
def _hits(
    rows: Any, columns: Any, raised: Any, width: Any, row_codes: Any, column_codes: Any
) -> Any:
    (scale, bias, floor), (column_scale, column_bias, column_floor) = row_codes, column_codes
    sums, panels, codes = _sums_of(rows, raised), _panels_of(columns, raised), _whole_blocks(rows)
    scales = np.zeros(len(panels) * COLUMNS, dtype=np.float32)
    levels = np.zeros_like(scales)
    scales[:width] = column_scale
    levels[:width] = _levels(column_floor, column_bias, np.abs(bias).max())
    block, masks = np.empty((ROWS, COLUMNS), np.int32), np.empty(ROWS, np.uint64)
    places, bounds = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    count = 0
    use_tiles(True)
    for panel in range(len(panels)):
        start = panel * COLUMNS
        highest = column_bias[start : start + COLUMNS].max()
        left = codes, sums, scale, bias, _levels(floor, highest, bias)
        for first in range(0, len(rows), ROWS):
            if not multiply_block(first, panel, left, (panels, scales, levels), (block, masks)):
                continue
            if count + block.size > len(places):
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
                        places[count], bounds[count] = row * width + column, bound
                        count += 1
    use_tiles(False)
    return places[:count], bounds[:count]


def panels_of(columns: NDArray[Any], largest: int) -> tuple[NDArray[np.int32], int]:
    """Lay out int8 or int16 codes (C, D) as panels, int32 (P, depth, COLUMNS).

    Codes are -``largest`` to ``largest``. D fills whole steps of ``way_of``. If LARGEST is below
    127, ``largest`` is at most 79 for int8, and products are exact with four row codes of int8
    whose absolute values sum to less than 2**14 / ``largest`` (``InstructionSet``).

    Returns:
        The panels, whose columns past C repeat the last, and the number added to all codes.
    """
    way = way_of(columns.dtype)
    raised = min(way.raised, largest)
    return _laid_out(columns.view(np.int32), raised), raised


class Columns:
    """Columns of int8 ``codes`` (C, D), for repeated products.

    Codes of columns and rows are -``largest`` to ``largest``. If LARGEST is below 127 and
    ``largest`` exceeds 63, they become int16, so that four products fit (``panels_of``).
    """

    def __init__(self, codes: NDArray[np.int8], largest: int = 127) -> None:
        self._count = len(codes)
        is_exact = LARGEST == 127 or 4 * largest**2 < 2**14
        self._kind = np.int8 if is_exact else np.int16
        self._way = way_of(np.dtype(self._kind))
        columns = _in_whole_lanes(codes.astype(self._kind, copy=False), self._way)
        self._panels = panels_of(columns, largest)

    def multiplied(self, rows: NDArray[np.int8]) -> NDArray[np.int32]:
        """Multiply int8 codes (R, D) by all columns exactly, to int32 (R, C)."""
        if not (len(rows) and self._count):
            return np.empty((len(rows), self._count), dtype=np.int32)
        codes = _in_whole_lanes(rows.astype(self._kind, copy=False), self._way)
        return np.asarray(_multiplied(codes, *self._panels)[:, : self._count])


def hits(rows: Any, columns: Any, row_codes: Any, column_codes: Any) -> Any:
    """Multiply rows (R, D) by columns (C, D), and return the hits.

    ``row_codes``, ``column_codes`` and the result, except for its order, are as in
    ``miner.knn.core.compiled.hits``. A row's columns ascend. R and C are at least 1. Codes are int8
    within the limits of ``InstructionSet``, or int16 up to 127 if the set multiplies these.
    """
    way = way_of(rows.dtype, limited=True)
    lanes = _in_whole_lanes(columns, way).view(np.int32)
    rows = _in_whole_lanes(rows, way)
    return _hits(rows, lanes, way.raised, len(columns), row_codes, column_codes)


def _in_whole_lanes(codes: NDArray[Any], way: Way) -> NDArray[Any]:
    """Pad codes (N, D) with zeros to whole steps of ``way``."""
    spare = -codes.shape[1] % (way.codes * way.steps)
    return np.ascontiguousarray(np.pad(codes, ((0, 0), (0, spare))) if spare else codes)
