"""Digests of lines, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled

HIGH = np.uint64(0xFFFFFFFF00000000)
HALF = np.uint64(32)

_compile = compiled()


@_compile
def digest_lines(
    data: Any, words: Any, starts: Any, keys: Any, kept: Any, high: Any, low: Any
) -> None:
    """Write two digests of 64 bits for each of N texts: ``high`` and ``low``, uint64 (N,).

    Each half of a digest is that of a sum of products modulo 2**64, of the 32-bit words of a text
    with random numbers of 64 bits, its upper half: whatever two texts are, they share it by a
    chance of 2**-32 (multilinear hashing, Lemire and Kaser 2014, "Strongly universal string hashing
    is fast", section 2). A byte of 1 after the last makes texts of different lengths differ.

    ``data`` are the bytes of texts, ``words`` the four from each of them on as a number. Texts end
    one byte before the next of ``starts`` (N + 1,); those that are ``kept`` (N,) are digested. Of
    the random ``keys`` (W + 1, 4) there are some to begin with, and some for each word.
    """
    for line in range(len(high)):
        if not kept[line]:
            continue
        first, stop = starts[line], starts[line + 1] - 1
        count = (stop - first) // 4
        one, two, three, four = keys[0]
        for place in range(count):
            word = np.uint64(words[first + 4 * place])
            one += keys[place + 1, 0] * word
            two += keys[place + 1, 1] * word
            three += keys[place + 1, 2] * word
            four += keys[place + 1, 3] * word
        word, shift = np.uint64(0), np.uint64(0)
        for place in range(first + 4 * count, stop):
            word |= np.uint64(data[place]) << shift
            shift += np.uint64(8)
        word |= np.uint64(1) << shift
        one += keys[count + 1, 0] * word
        two += keys[count + 1, 1] * word
        three += keys[count + 1, 2] * word
        four += keys[count + 1, 3] * word
        high[line] = one & HIGH | two >> HALF
        low[line] = three & HIGH | four >> HALF
