"""Names of one side without a similar word on the other.

Vectors of words are made of romanised letters also, so they are similar for the spellings of a name
in many scripts. Axes: ``P`` pairs.
"""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from miner.judge.facts import PARTS, whole_vectors
from miner.judge.words import WordEmbedder, Words

MAX_SHARE = 2  # in a headline, more than one word in 2 begins with a capital letter


@cache
def _pattern() -> re.Pattern[str]:
    capitals = "".join(letter for letter in map(chr, range(2**16)) if letter.isupper())
    # After a space, because any first word has a capital letter; quotes may precede it.
    return re.compile(rf"(?<=\s)[^\w\s]*([{capitals}]\w\w+)")


def names_in(text: str) -> list[str]:
    """Return the words with a capital letter inside a text, unless it is a headline."""
    names: list[str] = _pattern().findall(text)
    return names if MAX_SHARE * len(names) <= 1 + text.count(" ") else []


def unmatched_names(
    texts: Sequence[Sequence[str]], words: Sequence[Words], makers: Sequence[WordEmbedder]
) -> NDArray[np.float32]:
    """Measure how far the names of each side are from all words of the other.

    Args:
        texts: Source and target texts.
        words: Their words.
        makers: The word encoders of both sides.

    Returns:
        float32 (P, 2): 1 less the least of the names' best cosines, 0 without names; NaN if the
        side's script has no capital letters.
    """
    from miner.judge.compiled import farthest_names  # loads Numba

    found = np.zeros((len(texts[0]), 2), dtype=np.float32)
    for side, other in ((0, 1), (1, 0)):
        names = makers[side].words([" ".join(names_in(text)) for text in texts[side]])
        vectors = whole_vectors(names.vectors), whole_vectors(words[other].vectors)
        rows = (names.ids, names.offsets), (words[other].ids, words[other].offsets)
        farthest_names(*vectors, *rows, 1 / PARTS**2, found[:, side])
        found[[not _has_case(text) for text in texts[side]], side] = np.nan
    return found


def _has_case(text: str) -> bool:
    letter = next(filter(str.isalpha, text), "")
    return letter.lower() != letter.upper()
