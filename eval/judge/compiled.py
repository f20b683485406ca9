"""Passes over sentences that train the model of facts, compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled

_compile = compiled()


@_compile
def find_levels(says: Any, ids: Any, offsets: Any, joining: Any, levels: Any, places: Any) -> None:
    """Write the level of each meaning in B sentences, and its place.

    ``says`` float32 (U, M) are the levels of words; the sum of two neighbouring words and
    ``joining`` is a level also. ``places`` int32 (B, M) are twice the place in ``ids``, and 1 more
    for two words.
    """
    for sentence in range(len(levels)):
        level, place = levels[sentence], places[sentence]
        level[:] = -np.inf
        for at in range(offsets[sentence], offsets[sentence + 1]):
            word = says[ids[at]]
            for meaning in range(len(level)):
                if word[meaning] > level[meaning]:
                    level[meaning], place[meaning] = word[meaning], 2 * at
            if at + 1 < offsets[sentence + 1]:
                following = says[ids[at + 1]]
                for meaning in range(len(level)):
                    both = word[meaning] + following[meaning] + joining
                    if both > level[meaning]:
                        level[meaning], place[meaning] = both, 2 * at + 1


@_compile
def spread_gradients(gradients: Any, places: Any, ids: Any, of_words: Any) -> Any:
    """Spread gradients of levels over words, and return that of ``joining``.

    ``gradients`` are float32 (B, M). ``of_words`` float32 (U, M) is added to.
    """
    joining = 0.0
    for sentence in range(len(gradients)):
        for meaning in range(gradients.shape[1]):
            gradient, place = gradients[sentence, meaning], places[sentence, meaning]
            of_words[ids[place >> 1], meaning] += gradient
            if place & 1:
                of_words[ids[(place >> 1) + 1], meaning] += gradient
                joining += gradient
    return joining
