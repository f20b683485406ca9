"""Names of one side of a pair that no word of the other side resembles."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from miner.judge.words import WordEmbedder, Words

NOUN_CAPITALS = frozenset({"de", "lb", "nds"})  # languages that capitalise all nouns
MIN_LETTERS = 3
LEAST_GAP = 0.5  # that a name's weight counts from: translations of names have lesser gaps

_WORD = re.compile(r"(?<=\s)[^\w\s]*([^\W\d_]\w+)")  # not the first word of a text


def names_in(text: str) -> list[str]:
    """Return capitalised words of 3+ characters after a space and maybe marks."""
    return [word for word in _WORD.findall(text) if word[0].isupper() and len(word) >= MIN_LETTERS]


def compare_names(
    makers: Sequence[WordEmbedder],
    texts: Sequence[Sequence[str]],
    words: Sequence[Words],
    languages: Sequence[str | None],
) -> NDArray[np.float32]:
    """Compare the names on each side with the words of the other side.

    ``makers`` are the word encoders of both sides, ``texts`` P texts of each side, and ``words``
    the words of these texts. ``languages`` are ISO 639-1 codes of both sides, None if unknown.
    A name's gap is 1 minus the cosine to its most similar word on the other side. A side has its
    greatest gap, and the greatest product of a gap above ``LEAST_GAP`` and the name's weight, in
    mean weights of its text's words; both are NaN without names or other words. Features, float32
    (P, 6), are the lesser gap, NaN if either is; the greater gap, NaN if both are; the same of
    weighted gaps; the lesser and the greater number of words in names. Sides in a language that
    capitalises all nouns count only for lesser gaps.
    """
    from miner.judge.compiled import find_missing_names  # loads Numba

    gaps = np.full((2, len(texts[0]), 2), np.nan, dtype=np.float32)
    counts = np.zeros((2, len(texts[0]), 1), dtype=np.float32)
    for side, (maker, own) in enumerate(zip(makers, texts, strict=True)):
        # The space says that the first is also a name.
        names = maker.words([" " + " ".join(names_in(text)) for text in own])
        all_words = names, words[side], words[1 - side]
        arrays = [(each.vectors, each.weights, each.ids, each.offsets) for each in all_words]
        find_missing_names(*arrays, LEAST_GAP, gaps[side])
        counts[side, :, 0] = np.diff(names.offsets)
    lesser = gaps.min(axis=0)
    for side, language in enumerate(languages):
        if language in NOUN_CAPITALS:
            gaps[side], counts[side] = np.nan, 0
    both = np.stack([lesser, np.fmax(*gaps)], axis=2).reshape(-1, 4)
    return np.concatenate([both, counts.min(axis=0), counts.max(axis=0)], axis=1)
