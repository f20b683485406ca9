"""Digests of lines, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled

UPPER_HALF = np.uint64(0xFFFFFFFF00000000)  # a mask
HALF_BITS = np.uint64(32)

_compile = compiled()


@_compile
def digest_lines(
    data: Any, words: Any, starts: Any, keys: Any, kept: Any, high: Any, low: Any
) -> None:
    """Write two 64-bit digests of each of N texts to ``high`` and ``low``.

    Both are uint64 (N,). Different texts agree in a given half of a digest with probability 2**-32
    (multilinear hashing, Lemire & Kaser 2014, "Strongly universal string hashing is fast").

    ``data``, uint8, are the texts' bytes. ``words[i]``, uint32, are the four bytes from
    ``data[i]``, little-endian. Text i is ``data[starts[i] : starts[i + 1] - 1]``, with int64
    ``starts`` (N + 1,). Digests outside of the mask ``kept`` (N,) stay unchanged. The random
    ``keys``, uint64 (W + 2, 4), suffice for texts of W whole words.
    """
    for line in range(len(high)):
        if not kept[line]:
            continue
        first, stop = starts[line], starts[line + 1] - 1
        word_count = (stop - first) // 4
        one, two, three, four = keys[0]
        for index in range(word_count):
            word = np.uint64(words[first + 4 * index])
            one += keys[index + 1, 0] * word
            two += keys[index + 1, 1] * word
            three += keys[index + 1, 2] * word
            four += keys[index + 1, 3] * word
        word, shift = np.uint64(0), np.uint64(0)
        for index in range(first + 4 * word_count, stop):
            word |= np.uint64(data[index]) << shift
            shift += np.uint64(8)
        word |= np.uint64(1) << shift
        one += keys[word_count + 1, 0] * word
        two += keys[word_count + 1, 1] * word
        three += keys[word_count + 1, 2] * word
        four += keys[word_count + 1, 3] * word
        high[line] = one & UPPER_HALF | two >> HALF_BITS
        low[line] = three & UPPER_HALF | four >> HALF_BITS
