"""The network's sums over neighbouring tokens, compiled by Numba.

Each sentence is computed by itself, in a fixed order, so numbers do not depend on its batch. Sums
go through ``LANES`` lanes on every CPU. Axes: ``T`` tokens of S sentences, ``C`` channels of a
branch. Token ``t`` is piece ``ids[t]``. Sentence ``s`` has tokens ``offsets[s] : offsets[s + 1]``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from encoder.compiled import fetch_row
from miner.compiling import compiled, compiled_part
from miner.instructions import in_lanes
from miner.knn.core.int8 import products_of

WIDTHS = (2, 3, 5)  # tokens that a branch looks at
BEFORE = (0, 1, 2)  # of them, those before the one it looks from
EMBEDDING, CHANNELS = 512, 256
HIDDEN = len(WIDTHS) * CHANNELS
FEATURES = EMBEDDING + HIDDEN
F, FLOAT, INDEX = np.float32, ir.FloatType(), ir.IntType(32)
ONE_HALF = F(0.5)

# Nothing is reordered or fused but the sums of one function: vectors are the same on every CPU.
LANES = 16
VECTOR = ir.VectorType(FLOAT, LANES)
WIDE = 64  # channels whose sums over a window stay in registers
TOGETHER = 4  # tokens whose features are added to a sum at once
AHEAD = 3  # tokens whose pieces are fetched early
AT_ONCE = 64  # tokens whose products stay in the cache
_compile = compiled(fastmath={"nnan", "nsz"})
_part = compiled_part(fastmath={"nnan", "nsz"})


def _loaded(builder: Any, array: Any, start: Any, lanes: int) -> Any:
    """Load a vector of an array's numbers from position ``start``, as float32."""
    pointer = builder.gep(array.data, [start])
    kind = pointer.type.pointee
    vector = builder.bitcast(pointer, ir.VectorType(kind, lanes).as_pointer())
    loaded = builder.load(vector, align=2)  # at least, as numbers may have 16 bits
    return loaded if kind == FLOAT else builder.sitofp(loaded, ir.VectorType(FLOAT, lanes))


@intrinsic
def _add_window(
    typing: Any, row: Any, bias: Any, numbers: Any, starts: Any, factors: Any, scales: Any
) -> Any:
    """Add the positive part of a window's sum to a row (C,).

    The sum is ``bias`` (C,) plus, for each of N places in the window, C ``numbers`` times its
    factor. The numbers are flattened, and a place's begin at its number in ``starts`` (N,).
    ``factors`` (N,) are multiplied by ``scales`` (N C,) first, unless these are None.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, values, strict=True)
            if kind != types.none
        ]
        row, bias, numbers, starts, factors, *scales = arrays
        (count,) = cgutils.unpack_tuple(builder, starts.shape, 1)
        zero, channels, wide = count.type(0), count.type(CHANNELS), count.type(WIDE)
        with cgutils.for_range_slice(builder, zero, channels, wide) as (channel, _):
            total = cgutils.alloca_once_value(builder, _loaded(builder, bias, channel, WIDE))
            with cgutils.for_range(builder, count) as place:
                start, number = (
                    builder.load(builder.gep(each.data, [place.index]))
                    for each in (starts, factors)
                )
                factor = in_lanes(builder, number, WIDE)
                for scale in scales:
                    column = builder.add(builder.mul(place.index, channels), channel)
                    factor = builder.fmul(factor, _loaded(builder, scale, column, WIDE))
                number = _loaded(builder, numbers, builder.add(start, channel), WIDE)
                sums = builder.fadd(builder.load(total), builder.fmul(number, factor))
                builder.store(sums, total)
            sums, none = builder.load(total), ir.Constant(ir.VectorType(FLOAT, WIDE), None)
            sums = builder.select(builder.fcmp_ordered(">", sums, none), sums, none)
            sums = builder.fadd(_loaded(builder, row, channel, WIDE), sums)
            pointer = builder.gep(row.data, [channel])
            builder.store(sums, builder.bitcast(pointer, sums.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(row, bias, numbers, starts, factors, scales), generate


@_compile
def first_layer(pieces: Any, scales: Any, ids: Any, offsets: Any, bias: Any, hidden: Any) -> None:
    """Compute the first convolution of all branches.

    ``hidden``, float32 (T, 3 C), gets the input plus the convolution's positive part, for 3
    branches of C = 256 channels. ``pieces``, float32 or int16 (P, 15 C), has a row per piece: its
    vector (2 C), the input (3 C), and products of the input with the weights of each place in each
    window. ``scales``, float32 (P, 15), multiply each C numbers of a row. ``ids``, int32 (T,), are
    rows of tokens' pieces, and ``offsets`` int64 (S + 1,). ``bias`` is (3 C,).
    """
    starts, factors = np.empty(max(WIDTHS), np.int64), np.empty(max(WIDTHS), F)
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        for token in range(first, stop):
            row, row_scales, column = pieces[ids[token]], scales[ids[token]], FEATURES
            fetch_row(pieces, np.uint32(ids[min(token + AHEAD, len(ids) - 1)]))
            for branch in range(len(WIDTHS)):
                begin, count = branch * CHANNELS, 0
                channels = hidden[token, begin : begin + CHANNELS]
                scale = row_scales[(EMBEDDING + begin) // CHANNELS]
                for channel in range(CHANNELS):
                    channels[channel] = F(row[EMBEDDING + begin + channel]) * scale
                for step in range(WIDTHS[branch]):
                    position = token - BEFORE[branch] + step
                    if first <= position < stop:
                        starts[count] = np.int64(ids[position]) * pieces.shape[1] + column
                        factors[count] = scales[ids[position], column // CHANNELS]
                        count += 1
                    column += CHANNELS
                _add_window(channels, bias[begin:], pieces, starts[:count], factors, None)


def _fold(term: Callable[..., Any], join: Callable[..., Any]) -> Any:
    """Return a function that folds a row in lanes, then the lanes in order.

    Rows (N,) are contiguous, and N is a multiple of LANES. ``term`` maps a builder, the lanes so
    far, numbers of the row, and numbers of a second row or a constant. Both folds begin at 0.
    """

    @intrinsic
    def fold(typing: Any, row: Any, other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array = context.make_array(row)(context, builder, values[0])
            (size,) = cgutils.unpack_tuple(builder, array.shape, 1)

            def second(start: Any) -> Any:
                if not isinstance(other, types.Array):
                    return in_lanes(builder, values[1], LANES)
                others = context.make_array(other)(context, builder, values[1])
                return _loaded(builder, others, start, LANES)

            lanes = cgutils.alloca_once_value(builder, VECTOR(None))
            with cgutils.for_range_slice(builder, size.type(0), size, size.type(LANES)) as (i, _):
                numbers = _loaded(builder, array, i, LANES), second(i)
                builder.store(term(builder, builder.load(lanes), *numbers), lanes)
            total, folded = FLOAT(0.0), builder.load(lanes)
            for lane in range(LANES):
                number = builder.extract_element(folded, INDEX(lane))
                total = join(builder, total, number)
            return total

        return types.float32(row, other), generate

    return fold


def _add(builder: Any, total: Any, number: Any, *_: Any) -> Any:
    return builder.fadd(total, number)


def _add_square(builder: Any, total: Any, number: Any, mean: Any) -> Any:
    distance = builder.fsub(number, mean)
    return builder.fadd(total, builder.fmul(distance, distance))


def _larger(builder: Any, largest: Any, number: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", number, largest), number, largest)


def _larger_product(builder: Any, largest: Any, number: Any, factor: Any) -> Any:
    product = builder.fmul(number, factor)
    return _larger(builder, largest, _larger(builder, product, builder.fneg(product)))


_sum = _fold(_add, _add)
_sum_of_squares = _fold(_add_square, _add)
_largest_product = _fold(_larger_product, _larger)


@_part
def _add_windows(
    products: Any, scales: Any, column_scales: Any, offsets: Any, branch_bias: Any, hidden: Any
) -> None:
    branch, bias = branch_bias
    begin, before, row = branch * CHANNELS, BEFORE[branch], np.int64(products.shape[1])
    starts = np.empty(WIDTHS[branch], np.int64)
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        for token in range(first, stop):
            start = token - before
            low, high = max(first - start, 0), min(stop - start, WIDTHS[branch])
            for step in range(low, high):
                starts[step] = (start + step) * row + step * CHANNELS
            channels = hidden[token, begin : begin + CHANNELS]
            places = starts[low:high], scales[start + low :]
            _add_window(channels, bias, products, *places, column_scales[low * CHANNELS :])


@_compile
def float_layer(products: Any, offsets: Any, branch_bias: Any, hidden: Any) -> None:
    """Add the positive part of the second convolution to a branch.

    ``branch_bias`` are the branch's number b, 0 to 2, and bias (C,), C = 256. Columns of b in
    ``hidden``, float32 (T, 3 C), are changed in place. ``products``, float32 (T, W C), are of
    tokens and the weights of W = ``WIDTHS[b]`` places, the first ``BEFORE[b]`` tokens back.
    """
    ones = np.ones(max(products.shape), F)
    _add_windows(products, ones, ones, offsets, branch_bias, hidden)


@_part
def _add_sentences(weights: Any, scales: Any, offsets: Any, branch_bias: Any, hidden: Any) -> None:
    (panels, raised, largest), (factors, column_scales) = weights, scales
    begin = branch_bias[0] * CHANNELS
    codes, row_scales = np.empty((len(hidden), CHANNELS), np.int8), np.empty(len(hidden), F)
    for token in range(len(hidden)):
        row = hidden[token, begin : begin + CHANNELS]
        top = _largest_product(row, factors)
        row_scales[token] = top / largest
        inverse = largest / top if top > 0 else F(0)
        for channel in range(CHANNELS):  # LLVM vectorises this, but not np.rint
            code = np.int32(row[channel] * factors[channel] * inverse + (largest + ONE_HALF))
            codes[token, channel] = code - np.int32(largest)
    products = products_of(codes, panels, raised)
    _add_windows(products, row_scales, column_scales, offsets, branch_bias, hidden)


@_compile
def int8_layer(weights: Any, scales: Any, offsets: Any, branch_bias: Any, hidden: Any) -> None:
    """Add the positive part of the second convolution, by int8 products.

    ``weights`` are panels of codes, the number added to each code (``panels_of``), and the largest
    code of a hidden row. ``scales`` are factors (C,), C = 256, of hidden rows before they are
    rounded, and scales of the weights' columns (places C,). The rest is as in ``float_layer``.
    """
    first = 0
    for sentence in range(len(offsets) - 1):
        if sentence + 2 == len(offsets) or offsets[sentence + 2] - offsets[first] > AT_ONCE:
            block = offsets[first : sentence + 2]
            rows = hidden[block[0] : block[-1]]
            _add_sentences(weights, scales, block - block[0], branch_bias, rows)
            first = sentence + 1


@_part
def _moments(row: Any, epsilon: Any) -> Any:
    mean = _sum(row, F(0)) / F(len(row))
    return mean, F(1) / np.sqrt(_sum_of_squares(row, mean) / F(len(row)) + epsilon)


@_compile
def normalize(rows: Any, epsilon: Any, scale: Any, shift: Any, out: Any) -> None:
    """Scale rows (R, N) to mean 0 and variance 1, into ``out``.

    Then they are multiplied by ``scale`` (N,), and ``shift`` (N,) is added. ``epsilon`` is added to
    variances. All are float32, and N is a multiple of 16.
    """
    for number in range(len(rows)):
        mean, norm = _moments(rows[number], epsilon)
        for index in range(rows.shape[1]):
            out[number, index] = (rows[number, index] - mean) * norm * scale[index] + shift[index]


@_compile
def pool(pieces: Any, scales: Any, ids: Any, offsets: Any, hidden: Any, eps: Any, out: Any) -> None:
    """Sum the normalised features of sentences' tokens into ``out``.

    ``out`` is float32 (S, 1280). A token's features are its piece's vector and its ``hidden`` row.
    ``eps`` is added to variances. The first four arguments are as for ``first_layer``.
    """
    features, total = np.zeros((TOGETHER, FEATURES), F), np.empty(FEATURES, np.float64)
    means, norms = np.zeros(TOGETHER, F), np.zeros(TOGETHER, F)
    for sentence in range(len(offsets) - 1):
        total[:] = 0
        for begin in range(offsets[sentence], offsets[sentence + 1], TOGETHER):
            norms[:] = 0  # so that places without a token add nothing
            for token in range(begin, min(begin + TOGETHER, offsets[sentence + 1])):
                row, piece_scales, place = pieces[ids[token]], scales[ids[token]], token - begin
                for start in range(0, EMBEDDING, CHANNELS):
                    scale = piece_scales[start // CHANNELS]
                    for column in range(start, start + CHANNELS):
                        features[place, column] = F(row[column]) * scale
                for column in range(HIDDEN):
                    features[place, EMBEDDING + column] = hidden[token, column]
                means[place], norms[place] = _moments(features[place], eps)
            for column in range(FEATURES):
                for place in range(TOGETHER):
                    total[column] += (features[place, column] - means[place]) * norms[place]
        out[sentence] = total


@_compile
def round_rows(rows: Any, codes: Any, largest: Any, scales: Any) -> None:
    """Round rows, float32 (R, C), to codes with a scale per row.

    ``codes``, integers (R, C), from -``largest``, float32, to ``largest``, and ``scales``, float32
    (R,), are filled. A row is about its codes times its scale.
    """
    for number in range(len(codes)):
        top = F(0)
        for column in range(codes.shape[1]):
            top = max(top, abs(rows[number, column]))
        scales[number] = top / largest
        inverse = largest / top if top > 0 else F(0)
        for column in range(codes.shape[1]):
            codes[number, column] = np.rint(rows[number, column] * inverse)
