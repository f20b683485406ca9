"""Passes over sentences that train the model of facts, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled

_compile = compiled()


@_compile
def find_levels(words: Any, ids: Any, offsets: Any, joining: Any, levels: Any, places: Any) -> None:
    """Find the level of each of M meanings in each of B sentences.

    The level is the highest of the sentence's words and pairs of neighbouring words. A pair has the
    sum of both levels and ``joining``. Without words, the level is -inf.

    Args:
        words: Levels of U words, float32 (U, M).
        ids: Rows in ``words`` of the words of all sentences, int32 (W,).
        offsets: First word of each sentence, and W, int64 (B + 1,).
        joining: Added to the level of two neighbouring words, a float.
        levels: Filled with levels, float32 (B, M).
        places: Filled with twice the index in ``ids`` of the word with the level, plus 1 if it is
            the first of two words, int32 (B, M). -1 without words. The first place wins ties.
    """
    for sentence in range(len(levels)):
        level, place = levels[sentence], places[sentence]
        level[:], place[:] = -np.inf, -1
        for at in range(offsets[sentence], offsets[sentence + 1]):
            word = words[ids[at]]
            for meaning in range(len(level)):
                if word[meaning] > level[meaning]:
                    level[meaning], place[meaning] = word[meaning], 2 * at
            if at + 1 < offsets[sentence + 1]:
                following = words[ids[at + 1]]
                for meaning in range(len(level)):
                    both = word[meaning] + following[meaning] + joining
                    if both > level[meaning]:
                        level[meaning], place[meaning] = both, 2 * at + 1


@_compile
def spread_gradients(gradients: Any, places: Any, ids: Any, of_words: Any) -> Any:
    """Add gradients of levels to words' gradients, and return ``joining``'s.

    ``gradients``, float32 (B, M), are of the levels at ``places``, int32 (B, M), which
    ``find_levels`` filled from ``ids``, int32 (W,). They are added to ``of_words``, float32 (U, M).
    """
    joining = 0.0
    for sentence in range(len(gradients)):
        for meaning in range(gradients.shape[1]):
            gradient, place = gradients[sentence, meaning], places[sentence, meaning]
            if place < 0:
                continue
            of_words[ids[place >> 1], meaning] += gradient
            if place & 1:
                of_words[ids[(place >> 1) + 1], meaning] += gradient
                joining += gradient
    return joining
