"""Names and sentences of texts without a counterpart on the other side."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from miner.judge.words import WordEmbedder, Words
from miner.storage.documents.splitting import sentence_spans

NOUN_CAPITALS = frozenset({"de", "lb", "nds"})  # languages that capitalise all nouns
NAME, START = 1, 2  # flags of a word: it is a name, or begins a sentence after another
PART = 6  # features of a side

_WORD = re.compile(r"(?<=\s)[^\w\s]*([^\W\d_]\w\w+)")  # not the first word of a text


def flag_words(
    maker: WordEmbedder, texts: Sequence[str], words: Words, language: str | None
) -> NDArray[np.int8]:
    """Return the flags of each of the W words of P texts, int8 (W,).

    ``maker`` made the ``words``, and ``language`` is their ISO 639-1 code, None if unknown. A name
    is a capitalised word of 3+ characters after a space and maybe marks. In scripts without
    spaces, words that follow the text's own are also names.
    """
    flags = bytearray(len(words.ids))  # faster to set one by one than an array
    # Of texts without spaces: first and last word, a flag, and how often to set it.
    unspaced: list[tuple[int, int, int, int]] = []
    befores: list[str] = []
    for text, (first, last) in zip(texts, pairwise(words.offsets.tolist()), strict=True):
        places = [
            (match.start(), NAME, 1) for match in _WORD.finditer(text) if match[1][0].isupper()
        ]
        if places:
            places.append((len(text), NAME, last - first))
        places += [(start, START, 1) for start, _ in sentence_spans(text, language)][1:]
        if places and len(text.split()) == last - first:
            before, word = 0, first
            for place, flag, _ in sorted(places):
                word += len(text[before:place].split())
                before = place
                if word < last:
                    flags[word] |= flag
        else:
            unspaced += [(first, last, flag, times) for _, flag, times in places]
            befores += [text[:place] for place, _, _ in places]
    for (first, last, flag, times), own in zip(unspaced, maker.split(befores), strict=True):
        start = first + len(own)
        for word in range(start, min(start + times, last)):
            flags[word] |= flag
    return np.frombuffer(flags, dtype=np.int8)


def combine_parts(
    parts: NDArray[np.float32], languages: Sequence[str | None]
) -> NDArray[np.float32]:
    """Return the features of names and sentences of P pairs, float32 (P, 9).

    ``parts``, float32 (P, 2, PART), are of source and target, from ``describe_words``. Features
    are the lesser gap of names, NaN if either is, and the greater gap, NaN if both are; the same
    of weighted gaps; the lesser and the greater number of names; the lesser coverage; and the
    greater difference in coverage and weight of unmatched words. Sides in a language of
    ``NOUN_CAPITALS`` count only for lesser gaps.
    """
    sides = np.moveaxis(parts, 0, 2).copy()  # (2, PART, P)
    fewest, lesser = sides[:, 0].min(axis=0), sides[:, 1:3].min(axis=0)
    for side, language in zip(sides, languages, strict=True):
        if language in NOUN_CAPITALS:
            fewest[:], side[0], side[1:3] = 0, 0, np.nan
    least, greatest = np.fmin(*sides[:, 3]), np.fmax(*sides)
    names = lesser[0], greatest[1], lesser[1], greatest[2], fewest, greatest[0]
    return np.stack([*names, least, *greatest[4:]], axis=1)
