"""The words of a text, and the features that each of them is the sum of."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoder.bag.features import Features
from encoder.monolingual.options import MAX_WORDS
from encoder.tokenizer import SPACE, Tokenizer, Tokens

CHUNK_SENTENCES = 16_384  # bounds the memory of a step
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The V most frequent words of a text, and the text in numbers of them.

    ``counts`` are int64 (V,), ``idf`` float32 (V,) the logarithm of how many sentences there are
    for each that has the word. ``text`` has the numbers of the words of each sentence; others are
    left out.
    """

    words: list[str]
    counts: NDArray[np.int64]
    idf: NDArray[np.float32]
    text: Tokens


def read_vocabulary(
    sentences: Sequence[str], tokenizer: Tokenizer, *, min_count: int, most: int = MAX_WORDS
) -> Vocabulary:
    """Count the words of S sentences: what the tokeniser leaves between spaces, without edges.

    In scripts without spaces each subword is a word. Words with characters that the tokeniser does
    not know are left out. Of equally frequent ones the first in the
    alphabet comes first.

    Raises:
        ValueError: no two words are there ``min_count`` times.
    """
    numbers: dict[str, int] = {}
    chunks = [
        _numbered(tokenizer.encode(sentences[start : start + CHUNK_SENTENCES]), tokenizer, numbers)
        for start in range(0, len(sentences), CHUNK_SENTENCES)
    ]
    ids = np.concatenate([chunk.ids for chunk in chunks] or [np.empty(0, np.int32)])
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in chunks] or [np.empty(0, int)])
    owners = np.repeat(np.arange(len(sentences)), lengths)
    counts = np.bincount(ids, minlength=len(numbers))
    counts[[number for word, number in numbers.items() if not word]] = 0
    names = np.array(list(numbers), dtype=object)
    order = np.array(
        sorted(np.flatnonzero(counts >= min_count), key=lambda n: (-counts[n], names[n])), dtype=int
    )[:most]
    if len(order) < 2:
        raise ValueError(f"fewer than 2 words are in the text {min_count} times; give more text")
    place = np.full(len(numbers), -1, dtype=np.int32)
    place[order] = np.arange(len(order))
    known = place[ids]
    kept, owners = known[known >= 0], owners[known >= 0]
    once = np.unique(owners * len(order) + kept)
    there = np.bincount(once % len(order), minlength=len(order))
    return Vocabulary(
        words=names[order].tolist(),
        counts=counts[order],
        idf=np.log((1 + len(sentences)) / there).astype(np.float32),
        text=Tokens(ids=kept, offsets=np.searchsorted(owners, np.arange(len(sentences) + 1))),
    )


def _numbered(tokens: Tokens, tokenizer: Tokenizer, numbers: dict[str, int]) -> Tokens:
    """Return sentences as numbers of words, which are added to ``numbers``."""
    pieces = tokenizer.pieces()
    sentences, words = Features(pieces).split(tokens)
    found = np.empty(len(words), dtype=np.int32)
    for row in range(len(words)):
        ids = words.ids[words.offsets[row] : words.offsets[row + 1]]
        parts = [pieces[piece] for piece in ids]
        word = "".join(parts).replace(SPACE, " ") if all(parts) else ""  # one is unknown
        found[row] = numbers.setdefault(_EDGES.sub("", word.strip()), len(numbers))
    return Tokens(ids=found[sentences.ids], offsets=sentences.offsets)


def zipfian_idf(count: int) -> NDArray[np.float32]:
    """Return what ``Vocabulary.idf`` would be, but for a constant, by words' ranks: float32 (V,).

    A word's frequency is about as the inverse of its rank (Zipf).
    """
    return np.log(1 + np.arange(1, count + 1)).astype(np.float32)


def feature_rows(words: Sequence[str], tokenizer: Tokenizer, features: Features) -> Tokens:
    """Return the rows of the table of a bag that each of V words is the sum of."""
    parts, total = [], 0
    ids: list[NDArray[np.int32]] = []
    for start in range(0, len(words), CHUNK_SENTENCES):
        strings, rows = features.split(tokenizer.encode(words[start : start + CHUNK_SENTENCES]))
        chosen = rows.take(strings.ids.astype(np.int64))
        parts.append(chosen.offsets[strings.offsets[:-1]] + total)
        ids.append(chosen.ids)
        total += len(chosen.ids)
    return Tokens(ids=np.concatenate(ids), offsets=np.append(np.concatenate(parts), total))
