"""Vectors and lengths of a document's blocks of consecutive sentences.

Axes: ``A`` sizes of blocks, ``N`` sentences, ``D`` dimensions.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from miner.arrays import FloatArray, Matrix

# Han, kana and their punctuation have no spaces between sentences; Hangul has.
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

MAX_BLOCK = 5  # sentences per side: beads are 1-1 to 1-5 and 5-1


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Vectors of runs of 1 to A consecutive sentences of a document.

    ``vectors[a - 1, i]`` is the unit vector of sentences i to i + a - 1, float32 (A, N, D), or zero
    if fewer remain or their sum is zero. ``lengths``, float64 (N,), are numbers of characters.
    """

    vectors: Matrix
    lengths: FloatArray

    def __len__(self) -> int:
        return len(self.lengths)

    def halved(self) -> "Blocks":
        """Return each two sentences, or an odd last one, as one, with an A of 1."""
        even = np.arange(0, len(self), 2)
        vectors = _unit(np.add.reduceat(self.vectors[0], even, axis=0))[None]
        return Blocks(vectors=vectors, lengths=np.add.reduceat(self.lengths, even))


def merged_blocks(sums: Matrix, lengths: FloatArray) -> Blocks:
    """Build blocks of 1 to 5 sentences, with unit sums of sentence vectors.

    ``sums`` (N, D) are vectors before normalisation, and ``lengths`` (N,) numbers of characters.
    """
    vectors = np.zeros((MAX_BLOCK, *sums.shape), dtype=np.float32)
    block = np.zeros_like(sums)
    for size in range(1, min(MAX_BLOCK, len(sums)) + 1):
        block = block[: len(sums) - size + 1] + sums[size - 1 :]
        vectors[size - 1, : len(block)] = _unit(block)
    return Blocks(vectors=vectors, lengths=lengths)


def text_blocks(texts: Sequence[str], encode: Callable[..., Matrix], *, is_bag: bool) -> Blocks:
    """Encode the blocks of a document's N sentences.

    ``encode(texts, normalize=...)`` is the method of an ``encoder.Encoder``. If that is a bag of
    words (``is_bag``), each sentence is encoded once and vectors are added. Otherwise, each block
    of 1 to 5 sentences is encoded as one text: 15 times as many words. Lengths omit outer spaces.
    """
    lengths = np.array([len(text.strip()) for text in texts], dtype=np.float64)
    if is_bag:
        return merged_blocks(encode(texts, normalize=False), lengths)
    first = encode(texts, normalize=True)
    vectors = np.zeros((MAX_BLOCK, *first.shape), dtype=np.float32)
    vectors[0] = first
    for size in range(2, min(MAX_BLOCK, len(texts)) + 1):
        merged = [joined(texts[start : start + size]) for start in range(len(texts) - size + 1)]
        vectors[size - 1, : len(merged)] = encode(merged, normalize=True)
    return Blocks(vectors=vectors, lengths=lengths)


def joined(texts: Sequence[str]) -> str:
    """Join sentences with spaces, except next to Chinese or Japanese text."""
    parts: list[str] = []
    for text in filter(None, texts):
        if parts and not (_UNSPACED.match(parts[-1][-1:]) or _UNSPACED.match(text)):
            parts.append(" ")
        parts.append(text)
    return "".join(parts)


def _unit(vectors: Matrix) -> Matrix:
    lengths: Matrix = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return vectors / lengths
