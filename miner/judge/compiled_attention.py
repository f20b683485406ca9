"""Attention between words, compiled by Numba.

Products of words are of whole numbers and exact, in any order. All other sums are in the order of
the words, and the exponential function is computed here, so that results are the same bits on
every CPU.
"""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part
from miner.judge.compiled import longest_sentence

HALVING, PER_HALVING = np.float32(np.log(2)), np.float32(1 / np.log(2))
TERMS = tuple(np.float32(1 / one) for one in (2, 6, 24, 120, 720))  # of the series, from the third
NEVER = np.float32(-1e9)  # a logit without a share
LEAST = np.float32(-40)  # the least logarithm of a share
STATISTICS = 7  # per word: of its attention to the other side
FLOOR = np.float32(-1)  # the cosine of a word that the other side does not have

TO_WHOLE = np.float32(1.5 * 2.0**23)  # adding it rounds a float32 up to 2**22 to an integer

_compile = compiled()
_part = compiled_part()
_part_exact = compiled_part(fastmath={"nnan", "nsz", "contract", "reassoc"})


@_compile
def round_to_whole(values: Any, steps: Any, most: Any, out: Any) -> None:
    """Multiply values by steps, and round them to whole numbers.

    ``values`` (N, K) and ``steps`` (K,) are float32. The numbers are at most ``most`` in size,
    which is below 2**22. ``out`` is int8 or float32 (N, K).
    """
    for row in range(len(values)):
        for place in range(len(steps)):
            value = min(max(values[row, place] * steps[place], -most), most)
            out[row, place] = value + TO_WHOLE - TO_WHOLE


@_compile
def scale_products(products: Any, scale: Any, bias: Any, least: Any, out: Any) -> None:
    """Multiply products by ``scale``, and add ``bias``.

    Products are int32 (N, L), ``scale`` and ``bias`` float32 (L,). ``out``, float32 (N, L), is
    filled with the results, at least ``least``.
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


@_part
def _exponential(value: Any) -> Any:
    """Return e to the power of a number from ``LEAST`` to 0."""
    value = max(value, LEAST)
    halvings = np.int32(value * -PER_HALVING)
    rest = value + np.float32(halvings) * HALVING
    total = TERMS[0] + rest * (TERMS[1] + rest * (TERMS[2] + rest * (TERMS[3] + rest * TERMS[4])))
    power = np.int32((127 - halvings) << 23).view(np.float32)  # 2 ** -halvings
    return (np.float32(1) + rest * (np.float32(1) + rest * total)) * power


@_part
def _normalise(weights: Any, more: Any) -> Any:
    """Replace logits by shares (softmax), and return the share of ``more``."""
    greatest = more
    for word in range(len(weights)):
        greatest = max(greatest, weights[word])
    for word in range(len(weights)):
        weights[word] = _exponential(weights[word] - greatest)
    rest = _exponential(more - greatest)
    total = rest
    for word in range(len(weights)):
        total += weights[word]
    for word in range(len(weights)):
        weights[word] /= total
    return rest / total


@_part
def _copy_head(words: Any, start: int, first: int, out: Any) -> None:
    for part in range(len(out)):
        for word in range(out.shape[1]):
            for place in range(out.shape[2]):
                out[part, word, place] = words[start + word, part, first + place]


@_compile
def attend_within(words: Any, heads: int, scale: Any, offsets: Any, out: Any) -> None:
    """Attend from each word to the words of its sentence.

    Args:
        words: Queries, keys and values of N words, float32 (N, 3, H). Queries and keys are whole
            numbers. Equal parts of H belong to the heads.
        heads: Number of heads.
        scale: Factor of products of queries and keys, float32.
        offsets: Starts of S sentences in N words, and N, int64 (S + 1,).
        out: Filled with the means of the values, weighted by attention, float32 (N, H).
    """
    most, size = longest_sentence(offsets), words.shape[2] // heads
    weights, parts = np.empty((most, most), np.float32), np.empty((4, most, size), np.float32)
    for sentence in range(len(offsets) - 1):
        start = offsets[sentence]
        count = offsets[sentence + 1] - start
        own, sums = weights[:count, :count], parts[3]
        for head in range(heads):
            first = head * size
            _copy_head(words, start, first, parts[:3, :count])
            _products(parts[0, :count], parts[1, :count], own)
            for word in range(count):
                row = own[word]
                for other in range(count):
                    row[other] *= scale
                _normalise(row, NEVER)
                sums[word] = 0
                for other in range(count):
                    for place in range(size):
                        sums[word, place] += row[other] * parts[2, other, place]
                for place in range(size):
                    out[start + word, first + place] = sums[word, place]


@_part
def _describe(
    cosines: Any, products: Any, there: Any, mixing: Any, scale: Any, weight: Any, out: Any
) -> None:
    words, others = cosines.shape
    size = (out.shape[1] - STATISTICS) // 4
    attention = np.empty(others, np.float32)
    for word in range(words):
        best, second, row = FLOOR, FLOOR, out[word]
        for other in range(others):
            cosine = cosines[word, other]
            if cosine > best:
                best, second = cosine, best
            elif cosine > second:
                second = cosine
            apart = _distance(word, words, other, others)
            logit = mixing[0] * cosine - mixing[1] * apart
            attention[other] = logit + products[word, other] * scale
        unmatched = _normalise(attention, mixing[2])
        row[size:] = 0
        expected, distance, most = np.float32(0), np.float32(0), np.float32(0)
        for other in range(others):
            share = attention[other]
            expected += share * cosines[word, other]
            distance += share * _distance(word, words, other, others)
            most = max(most, share)
            for place in range(size):
                row[size + place] += share * there[other, place]
        for place in range(size):
            one, mean = row[place], row[size + place]
            row[2 * size + place] = one * mean
            row[3 * size + place] = abs(one - mean)
        last = row[4 * size :]
        last[0], last[1], last[2], last[3] = best, second, expected, unmatched
        last[4], last[5], last[6] = weight[word], distance, most


@_part
def _distance(word: int, words: int, other: int, others: int) -> Any:
    """Return the distance of the relative places of two words, float32."""
    own, theirs = np.float32(word + 0.5), np.float32(other + 0.5)
    return abs(own / np.float32(words) - theirs / np.float32(others))


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
        vectors: Whole numbers of the different words, float32 (U, D).
        ids: The rows of ``vectors`` of all words, int64 (N,).
        queries: Whole numbers of all words, float32 (N, H).
        keys: Whole numbers to multiply by the other side's queries, float32 (N, H).
        scales: Factors of products of vectors, and of queries and keys, float32 (2,).
        mixing: Factors of cosine and of distance, and the logit of no word, float32 (3,).
        weights: The weight of each word, float32 (N,).
        offsets: Starts of P source and P target sentences, and N, int64 (2 P + 1,).
        out: Float32 (N, 4 H + STATISTICS). The first H columns are the hidden units of each word,
            and the others are filled: means of the units of the attended words, the products and
            the absolute differences of both, the two greatest cosines, the expected cosine, the
            share of no word, the weight, the expected distance and the greatest share.
    """
    pairs, most = len(offsets) // 2, longest_sentence(offsets)
    cosines, back = np.empty((most, most), np.float32), np.empty((most, most), np.float32)
    products = np.empty((most, most), np.float32)
    rows = np.empty((2, most, vectors.shape[1]), np.float32)
    for pair in range(pairs):
        first, last = offsets[pair], offsets[pair + 1]
        start, stop = offsets[pairs + pair], offsets[pairs + pair + 1]
        words, others = last - first, stop - start
        for word in range(words):
            rows[0, word] = vectors[ids[first + word]]
        for word in range(others):
            rows[1, word] = vectors[ids[start + word]]
        here, there = cosines[:words, :others], back[:others, :words]
        _products(rows[0, :words], rows[1, :others], here)
        for word in range(words):
            for other in range(others):
                here[word, other] *= scales[0]
                there[other, word] = here[word, other]
        own, theirs = out[first:last], out[start:stop]
        common = products[:words, :others]
        _products(queries[first:last], keys[start:stop], common)
        _describe(here, common, theirs, mixing, scales[1], weights[first:last], own)
        common = products[:others, :words]
        _products(queries[start:stop], keys[first:last], common)
        _describe(there, common, own, mixing, scales[1], weights[start:stop], theirs)


@_compile
def pool_words(units: Any, weights: Any, offsets: Any, out: Any) -> None:
    """Pool the units of each sentence's words, one or more.

    Args:
        units: Float32 (N, G), not negative.
        weights: The weight of each word, float32 (N,).
        offsets: Starts of S sentences in N words, and N, int64 (S + 1,).
        out: Zeros, float32 (S, 3 G), to which the greatest, the mean and the weighted mean of
            each unit are added.
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
