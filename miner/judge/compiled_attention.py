"""Attention between words, compiled by Numba.

Products of words are of whole numbers and exact, in any order. All other sums are in the order of
the words, and the exponential function is computed here, so results are the same on every CPU.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from miner.compiling import compiled, compiled_part
from miner.instructions import in_lanes
from miner.judge.compiled import longest_sentence

HALVING, PER_HALVING = np.float32(np.log(2)), np.float32(1 / np.log(2))
TERMS = tuple(np.float32(1 / one) for one in (2, 6, 24, 120, 720))  # of the series, from the third
NEVER = np.float32(-1e9)  # a logit without a share
LANES = 16  # numbers per head of attention, and words whose shares are computed together
LEAST = np.float32(-40)  # the least logarithm of a share
STATISTICS = 7  # per word: of its attention to the other side
FLOOR = np.float32(-1)  # the cosine of a word that the other side does not have

FLOAT, NUMBER = ir.FloatType(), ir.IntType(32)
FLOATS, NUMBERS = ir.VectorType(FLOAT, LANES), ir.VectorType(NUMBER, LANES)

_compile = compiled()
_part = compiled_part()
_part_exact = compiled_part(fastmath={"nnan", "nsz", "contract", "reassoc"})


@_compile
def scale_products(products: Any, scale: Any, bias: Any, least: Any, out: Any) -> None:
    """Multiply products by ``scale``, add ``bias``, and write to ``out``.

    Products are (N, L), ``scale`` and ``bias`` (L,), and ``out`` (N, L) is at least ``least``.
    """
    for row in range(len(products)):
        for place in range(len(scale)):
            value = np.float32(products[row, place]) * scale[place] + bias[place]
            out[row, place] = max(value, least)


@_part_exact
def _products(rows: Any, others: Any, out: Any) -> None:
    for row in range(len(rows)):
        for other in range(len(others)):
            total = np.float32(0)
            for place in range(rows.shape[1]):
                total += rows[row, place] * others[other, place]
            out[row, other] = total


def _at(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Return a pointer to LANES numbers of an array from ``place``."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), FLOATS.as_pointer())


@intrinsic
def _sum_rows(
    typing: Any, count: Any, factors: Any, rows: Any, start: Any, step: Any, out: Any
) -> Any:
    """Fill LANES numbers of ``out`` with a sum of rows times factors.

    It is called in compiled code, without ``typing``. Arrays are flat. Row i < ``count`` begins at
    ``start + i step`` in ``rows``, and is multiplied by ``factors[i]``.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        count, factors, rows, start, step, out = values
        kinds = signature.args
        factors = context.make_array(kinds[1])(context, builder, factors).data
        total = cgutils.alloca_once_value(builder, FLOATS(None))
        with cgutils.for_range(builder, count) as row:
            factor = in_lanes(builder, builder.load(builder.gep(factors, [row.index])), LANES)
            place = builder.add(start, builder.mul(row.index, step))
            numbers = builder.load(_at(context, builder, kinds[2], rows, place), align=4)
            product = builder.fmul(factor, numbers)
            builder.store(builder.fadd(builder.load(total), product), total)
        place = _at(context, builder, kinds[5], out, count.type(0))
        builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return types.void(count, factors, rows, start, step, out), generate


@intrinsic
def _exponentials(typing: Any, logits: Any, start: Any, greatest: Any) -> Any:
    """Replace LANES logits by e to the power of logit minus greatest.

    It is called in compiled code, without ``typing``. Exponents are clipped to ``LEAST`` to 0.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        logits, start, greatest = values
        place = _at(context, builder, signature.args[0], logits, start)
        value = builder.fsub(builder.load(place, align=4), in_lanes(builder, greatest, LANES))
        for limit, too in ((0.0, ">"), (float(LEAST), "<")):
            bound = _constant(limit)
            value = builder.select(builder.fcmp_ordered(too, value, bound), bound, value)
        halvings = builder.fptosi(builder.fmul(value, _constant(-PER_HALVING)), NUMBERS)
        whole = builder.fmul(builder.sitofp(halvings, FLOATS), _constant(HALVING))
        rest, total = builder.fadd(value, whole), _constant(TERMS[-1])
        for term in (*reversed(TERMS[:-1]), 1, 1):
            total = builder.fadd(_constant(term), builder.fmul(rest, total))
        exponent = builder.sub(ir.Constant(NUMBERS, [127] * LANES), halvings)
        power = builder.shl(exponent, ir.Constant(NUMBERS, [23] * LANES))
        builder.store(builder.fmul(total, builder.bitcast(power, FLOATS)), place, align=4)
        return context.get_dummy_value()

    return types.void(logits, start, greatest), generate


def _constant(number: Any) -> Any:
    return ir.Constant(FLOATS, [float(number)] * LANES)


@_part
def _normalise(logits: Any, words: int, more: Any) -> Any:
    """Replace logits by shares (softmax), and return the share of ``more``.

    There is room for another logit, up to a multiple of LANES.
    """
    greatest = more
    for word in range(words):
        greatest = max(greatest, logits[word])
    logits[words] = more
    for start in range(0, words + 1, LANES):
        _exponentials(logits, start, greatest)
    total = logits[words]
    for word in range(words):
        total += logits[word]
    for word in range(words + 1):
        logits[word] /= total
    return logits[words]


@_part
def _room(words: int) -> int:
    """Return the least multiple of LANES that is larger than ``words``."""
    return words // LANES * LANES + LANES


@_compile
def put_in_context(
    units: Any, products: Any, ids: Any, offsets: Any, scale: Any, bias: Any, out: Any
) -> None:
    """Add to each word's units its ReLU convolution with adjacent words.

    ``units``, float32 (U, H), and ``products``, int32 (U, 3 H), are of U different words. Products
    are with weights of the word before, the word, and the word after. ``scale`` multiplies sums of
    products, and ``bias`` is added, float32 (H,) each. ``ids`` (N,) are the rows of N words in U,
    and ``offsets`` (S + 1,) the starts of S sentences, and N. ``out`` (N, H) is filled.
    """
    size = units.shape[1]
    none = np.zeros(size, np.int32)
    for sentence in range(len(offsets) - 1):
        start, stop = offsets[sentence], offsets[sentence + 1]
        for word in range(start, stop):
            row = ids[word]
            before = products[ids[word - 1], :size] if word > start else none
            after = products[ids[word + 1], 2 * size :] if word + 1 < stop else none
            for place in range(size):
                total = products[row, size + place] + before[place] + after[place]
                value = np.float32(total) * scale[place] + bias[place]
                out[word, place] = units[row, place] + max(value, np.float32(0))


@_compile
def attend_within(words: Any, scale: Any, offsets: Any, out: Any) -> None:
    """Attend from each word to the words of its sentence.

    ``words``, float32 (N, 3, H), are queries, keys and values of N words. Queries and keys are
    whole numbers, and ``scale`` multiplies their products. Each ``LANES`` of H belong to a head.
    ``offsets`` (S + 1,) are the starts of S sentences, and N. ``out``, float32 (N, H), is filled
    with the means of the values, weighted by attention.
    """
    room, heads = _room(longest_sentence(offsets)), words.shape[2] // LANES
    keys = np.zeros((heads, LANES, room), np.float32)
    shares, flat_words, flat_keys = np.zeros((heads, room), np.float32), words.ravel(), keys.ravel()
    width = 3 * words.shape[2]
    for sentence in range(len(offsets) - 1):
        start = offsets[sentence]
        count = offsets[sentence + 1] - start
        for head in range(heads):
            for place in range(LANES):
                for other in range(count):
                    keys[head, place, other] = words[start + other, 1, head * LANES + place]
        for word in range(start, start + count):
            for head in range(heads):
                own, lanes = shares[head], slice(head * LANES, head * LANES + LANES)
                for first in range(0, count, LANES):
                    key = head * LANES * room + first
                    _sum_rows(LANES, words[word, 0, lanes], flat_keys, key, room, own[first:])
                for other in range(count):
                    own[other] *= scale
                _normalise(own, count, NEVER)
                value = start * width + 2 * words.shape[2] + head * LANES
                _sum_rows(count, own, flat_words, value, width, out[word, lanes])


@_part
def _describe(
    cosines: Any, products: Any, there: Any, mixing: Any, scale: Any, weight: Any, out: Any
) -> None:
    words, others = len(out), len(there)
    size = (out.shape[1] - STATISTICS) // 4
    room = _room(others)
    attention, places = np.zeros(room, np.float32), np.zeros(room, np.float32)
    apart, flat_there = np.zeros(room, np.float32), there.ravel()
    for other in range(others):
        places[other] = np.float32(other + 0.5) / np.float32(others)
    for word in range(words):
        best, second, row = FLOOR, FLOOR, out[word]
        own = np.float32(word + 0.5) / np.float32(words)
        for other in range(others):
            cosine = cosines[word, other]
            second = max(second, min(best, cosine))
            best = max(best, cosine)
        for start in range(0, others, LANES):
            for other in range(start, start + LANES):
                apart[other] = abs(own - places[other])
                logit = mixing[0] * cosines[word, other] - mixing[1] * apart[other]
                attention[other] = logit + products[word, other] * scale
        unmatched = _normalise(attention, others, mixing[2])
        for place in range(0, size, LANES):
            _sum_rows(others, attention, flat_there, place, out.shape[1], row[size + place :])
        expected, distance, most = np.float32(0), np.float32(0), np.float32(0)
        for other in range(others):
            share = attention[other]
            expected += share * cosines[word, other]
            distance += share * apart[other]
            most = max(most, share)
        for place in range(size):
            one, mean = row[place], row[size + place]
            row[2 * size + place] = one * mean
            row[3 * size + place] = abs(one - mean)
        last = row[4 * size :]
        last[0], last[1], last[2], last[3] = best, second, expected, unmatched
        last[4], last[5], last[6] = weight[word], distance, most


@_compile
def attend_across(
    vectors: Any,
    ids: Any,
    queries: Any,
    keys: Any,
    scales: Any,
    mixing: Any,
    weights: Any,
    offsets: Any,
    out: Any,
) -> None:
    """Compare each word with the words of its pair's other side.

    Args:
        vectors: Whole numbers of the different words, int8 (U, D).
        ids: The rows of ``vectors`` of all words, int64 (N,).
        queries: Whole numbers of all words, float32 (N, H).
        keys: Whole numbers to multiply by the other side's queries, float32 (N, H).
        scales: Factors of products of vectors, and of queries and keys, float32 (2,).
        mixing: Factors of cosine and minus distance, and the logit of no word, float32 (3,).
        weights: The weight of each word, float32 (N,).
        offsets: Starts of P source and P target sentences, and N, int64 (2 P + 1,).
        out: Float32 (N, 4 H + STATISTICS). The first H columns are the units of each word, H a
            multiple of LANES. The others are filled: means of attended words' units, products and
            absolute differences of both, the two greatest cosines, -1 if none, expected cosine,
            share of no word, weight, expected distance (of relative places), greatest share.
    """
    pairs, most = len(offsets) // 2, longest_sentence(offsets)
    room = _room(most)
    cosines, back = np.zeros((most, room), np.float32), np.zeros((most, room), np.float32)
    products = np.zeros((most, room), np.float32)
    rows = np.empty((2, most, vectors.shape[1]), np.float32)
    for pair in range(pairs):
        first, last = offsets[pair], offsets[pair + 1]
        start, stop = offsets[pairs + pair], offsets[pairs + pair + 1]
        words, others = last - first, stop - start
        for word in range(words):
            rows[0, word] = vectors[ids[first + word]]
        for word in range(others):
            rows[1, word] = vectors[ids[start + word]]
        _products(rows[0, :words], rows[1, :others], cosines)
        for word in range(words):
            for other in range(others):
                cosines[word, other] *= scales[0]
                back[other, word] = cosines[word, other]
        own, theirs = out[first:last], out[start:stop]
        _products(queries[first:last], keys[start:stop], products)
        _describe(cosines, products, theirs, mixing, scales[1], weights[first:last], own)
        _products(queries[start:stop], keys[first:last], products)
        _describe(back, products, own, mixing, scales[1], weights[start:stop], theirs)


@_compile
def pool_words(units: Any, weights: Any, offsets: Any, out: Any) -> None:
    """Pool the units of the words of S sentences, each with one or more words.

    ``units`` are float32 (N, G), not negative, and ``weights`` float32 (N,), of each word.
    ``offsets`` (S + 1,) are the starts of the sentences, and N. ``out``, float32 (S, 3 G), zeros at
    first, gets each unit's greatest, mean and weighted mean (divided by at least 0.001).
    """
    size = units.shape[1]
    for sentence in range(len(offsets) - 1):
        start, stop = offsets[sentence], offsets[sentence + 1]
        total, row = np.float32(0), out[sentence]
        for word in range(start, stop):
            total += weights[word]
            for place in range(size):
                unit = units[word, place]
                row[place] = max(row[place], unit)
                row[size + place] += unit
                row[2 * size + place] += unit * weights[word]
        for place in range(size):
            row[size + place] /= np.float32(stop - start)
            row[2 * size + place] /= max(total, np.float32(1e-3))
