"""Sentences of a longer text that lack a counterpart on the other side."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from miner.judge.words import Words

# The end of a word of 3+ characters, a sentence's last mark, and the next word's first letter.
_END = re.compile(
    r"(?<=\S{3})[.!?\u2026\u061f\u06d4\u0964\u1362\u0589]['\")\]\u00bb\u2019\u201d]*"
    r"(?=\s+['\"(\[\u00ab\u2018\u201c\u201e]*([^\W\d_]))"
)


def sentence_starts(text: str) -> Iterator[int]:
    """Yield the positions, in a text's words, of its sentences but the first.

    A sentence follows a last mark of a word of 3+ characters and white space, and its first letter
    is not small. Abbreviations also end sentences.
    """
    for match in _END.finditer(text):
        if not match[1].islower():
            yield len(text[: match.end()].split())


def compare_sentences(
    texts: Sequence[Sequence[str]], words: Sequence[Words]
) -> NDArray[np.float32]:
    """Compare the coverage of sentences in the same text.

    ``texts`` are P texts of each side, and ``words`` their words. A text's least covered sentence
    is the one whose words match least by weight. Features, float32 (P, 3), are its coverage on the
    lesser side; the greater side's difference to the best covered sentence; and the greater
    side's weight of its unmatched words, in mean weights of the text's words. They are NaN without
    a text of several sentences whose words are separated by spaces.
    """
    from miner.judge.compiled import compare_coverage  # loads Numba

    starts, offsets = [], [[0], [0]]
    for side, own in enumerate(texts):
        places: list[int] = []
        counts = np.diff(words[side].offsets).tolist()
        for text, count in zip(own, counts, strict=True):
            positions = list(sentence_starts(text))
            if positions and len(text.split()) == count:
                places += positions
            offsets[side].append(len(places))
        starts.append(np.array(places, dtype=np.int64))
    sides = [(side.vectors, side.weights, side.ids, side.offsets) for side in words]
    places_of = [(own, np.array(ends)) for own, ends in zip(starts, offsets, strict=True)]
    found_by_side = np.full((2, len(texts[0]), 3), np.nan, dtype=np.float32)
    compare_coverage(*sides, *places_of, found_by_side)
    least, greatest = np.fmin(*found_by_side), np.fmax(*found_by_side)
    return np.concatenate([least[:, :1], greatest[:, 1:]], axis=1)
