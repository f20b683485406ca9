"""Words that contradict, such as another month, number or unit.

The words are listed in English. A word of any language says a listed word as far as their vectors
are alike, so no other language needs a list.

Axes: ``P`` pairs, ``G`` groups, ``M`` meanings, ``L`` listed words, ``U`` different words.
"""

from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.judge.words import WordMaker, Words

# A line is a group: the least difference that counts, and words that exclude each other. Words with
# commas between them mean the same.
LIST = files("miner").joinpath("assets", "contradicting-words.tsv").read_text(encoding="utf-8")
PARTS, MOST = 400, 127  # of 1 in a vector, and the most of one number: products are exact
LEAST = 0.3  # the cosine from which a word may say a listed word
NEAR = 0.1  # a word says the listed word of its best cosine, and those this near
ROWS = 1 << 11  # of different words that are multiplied at a time


class Meanings(NamedTuple):
    """Listed words and their meanings.

    Attributes:
        vectors: Of the words, whole numbers (L, D).
        meanings: Of the words, (L,).
        groups: Of the meanings, (M,).
        least: The least difference that counts in a group, (G,).
    """

    vectors: NDArray[np.float32]
    meanings: NDArray[np.int64]
    groups: NDArray[np.int64]
    least: NDArray[np.float32]


@cache
def _listed() -> tuple[list[str], Meanings]:
    """Return the listed words, and their meanings without vectors."""
    rows = [line.split("\t") for line in LIST.splitlines()]
    same = [(group, words) for group, row in enumerate(rows) for words in row[1:]]
    listed = [(place, word) for place, (_, words) in enumerate(same) for word in words.split(",")]
    return [word for _, word in listed], Meanings(
        vectors=np.empty((0, 0), dtype=np.float32),
        meanings=np.array([place for place, _ in listed]),
        groups=np.array([group for group, _ in same]),
        least=np.array([row[0] for row in rows], dtype=np.float32),
    )


@lru_cache(maxsize=8)
def meanings_of(maker: WordMaker) -> Meanings:
    """Return the meanings in the vector space of an encoder of English words."""
    listed, known = _listed()
    words = maker.words(listed)
    there = np.diff(words.offsets) > 0
    vectors = np.zeros((len(listed), words.vectors.shape[1]), dtype=np.float32)
    vectors[there] = _whole(words.vectors[words.ids[words.offsets[:-1][there]]])
    return known._replace(vectors=vectors)


def contradictions(source: Words, target: Words, known: Meanings) -> NDArray[np.float32]:
    """Measure how much words of pairs contradict, float32 (P,), above 0 if so.

    A meaning is only in one text if a word there says it and no word of the other text is as near.
    A group counts as the lesser of what is only in the source and only in the target, less what
    the group needs at least.
    """
    from miner.judge.compiled import compare_meanings  # loads Numba

    found = np.empty(len(source.offsets) - 1, dtype=np.float32)
    sides = [(*_said(side, known), side.ids, side.offsets) for side in (source, target)]
    compare_meanings(*sides, known.groups, known.least, np.float32(LEAST), found)
    return found


def _said(words: Words, known: Meanings) -> tuple[NDArray[np.generic], ...]:
    """Return the meanings of U words.

    Returns:
        The start of each word's meanings (U + 1,), meanings, cosines, and whether each is near the
        word's best.
    """
    counts, places = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    cosines, best = [np.zeros(0, dtype=np.float32)], [np.zeros(0, dtype=np.bool_)]
    for start in range(0, len(words.vectors), ROWS):
        products = _whole(words.vectors[start : start + ROWS]) @ known.vectors.T
        rows, columns = np.nonzero(products >= LEAST * PARTS**2)
        near = products[rows, columns]
        counts.append(np.bincount(rows, minlength=len(products)))
        places.append(columns)
        cosines.append(near * np.float32(1 / PARTS**2))
        best.append(near >= products.max(axis=1)[rows] - NEAR * PARTS**2)
    starts = np.cumsum(np.concatenate(counts))
    said = known.meanings[np.concatenate(places)]
    return starts, said, np.concatenate(cosines), np.concatenate(best)


def _whole(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    whole: NDArray[np.float32] = np.clip(np.rint(vectors * np.float32(PARTS)), -MOST, MOST)
    return whole
