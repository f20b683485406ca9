"""The weighted bag: a sentence vector is the unit-length sum of its words' vectors.

A word's vector is the sum of its features' (``encoder.bag.features``): subwords and, if there are
any, n-grams. No weights are stored beside the vectors: the length of a vector is its weight, and
training on sums lets it shrink for what says little.
"""

import re
import sys
import threading
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from encoder import Precision
from encoder.bag.features import SCHEME, Features
from encoder.base import BaseEncoder, listed
from encoder.rows import Matrix, PackedTable, normalize_rows, sum_rows
from encoder.tokenizer import Tokenizer, Tokens
from encoder.words import Words, joined

if TYPE_CHECKING:
    from encoder.bag.known_words import WordCache  # loads Numba

KNOWN_FROM = 4096  # sentences: for fewer, to remember their words takes longer than it saves
CHUNK_SENTENCES = 16_384  # bounds the memory of one call: ids, pieces and vectors of this many


class BagEncoder(BaseEncoder):
    """Encodes sentences with a table of feature vectors; satisfies ``encoder.Encoder``."""

    def __init__(
        self,
        *,
        name: str,
        tokenizer: Tokenizer,
        table: Matrix | PackedTable,
        ngram_rows: int = 0,
        scheme: int = SCHEME,
    ) -> None:
        """With one row of ``table`` for each piece, and ``ngram_rows`` for n-grams after them."""
        if len(table) != len(tokenizer) + ngram_rows:
            pieces = len(table) - ngram_rows
            raise ValueError(
                f"encoder {name}: {pieces} vectors for {len(tokenizer)} pieces; "
                "weights and tokeniser are from different trainings"
            )
        self.name, self.scheme, self.dim = name, scheme, table.shape[1]
        self.precision: Precision = "float32"
        self.tokenizer_model = tokenizer.model
        self._tokenizer, self._table = tokenizer, table
        self._features = Features(tokenizer.pieces(), ngram_rows, scheme=scheme)
        self._known: WordCache | None = None
        self._lock = threading.Lock()  # around what is known, which each call adds to
        self.namer: BagEncoder | None = None

    def with_names(self, other: "BagEncoder") -> "BagEncoder":
        """Return this encoder with names as another one in its space has them, as further words."""
        both = copy(self)
        both.namer = other
        return both

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        vectors = np.empty((len(sentences), self.dim), dtype=np.float32)
        for start in range(0, len(sentences), CHUNK_SENTENCES):
            chunk = sentences[start : start + CHUNK_SENTENCES]
            with self._lock:
                numbers, words = self._words(chunk)
                sum_rows(words, numbers, out=vectors[start : start + len(chunk)])
            if self.namer is not None:
                named = self.namer.encode(names(chunk), normalize=False)
                vectors[start : start + len(chunk)] += named
        if normalize:
            normalize_rows(vectors)
        return vectors

    def rows(self) -> Matrix:
        """Return the vectors of pieces and of n-grams after them: float32 (V, D), a copy."""
        return np.array(self._table[np.arange(len(self._table))])

    def words(self, sentences: str | Sequence[str]) -> Words:
        """Return the words of the sentences: each the sum of its features, weighted by its length.

        A sentence's vector is the sum of its words' vectors times their weights, at unit length.
        """
        with self._lock:
            numbers, known = self._words(listed(sentences))
            used = np.zeros(len(known), dtype=np.bool_)
            used[numbers.ids] = True
            vectors = known.take(np.flatnonzero(used), axis=0)  # twice as fast as a mask
        ids = (used.cumsum(dtype=np.int32) - 1)[numbers.ids]
        weights = normalize_rows(vectors)
        own = Words(vectors=vectors, weights=weights, ids=ids, offsets=numbers.offsets)
        if self.namer is None:
            return own
        return joined(own, self.namer.words(names(listed(sentences))))

    def _words(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        """Return sentences as numbers of words, and sums (W, D), which the next call may change."""
        many = self._known is not None or len(sentences) >= KNOWN_FROM
        if len(sentences) and many and "encoder.compiled" in sys.modules:
            if self._known is None:
                from encoder.bag.known_words import WordCache

                self._known = WordCache(self._tokenizer, self._features, self._table)
            return self._known.split(sentences)
        numbers, words = self._features.split(self._tokenizer.encode(sentences))
        return numbers, sum_rows(self._table, words)


def names(sentences: Sequence[str]) -> list[str]:
    """Return the names in each sentence: the words inside of it that begin with a capital letter.

    Names are spelt much alike in many languages, so that an encoder that has met more of them knows
    better what a language's names stand for than one that was trained on little text of it. Where
    more than half of a sentence's words have capitals, as in headlines, it has no names.
    """
    found = map(_name().findall, sentences)
    return [
        " ".join(words) if 2 * len(words) <= 1 + sentence.count(" ") else ""
        for words, sentence in zip(found, sentences, strict=True)
    ]


@cache
def _name() -> re.Pattern[str]:
    capitals = "".join(letter for letter in map(chr, range(2**16)) if letter.isupper())
    # After a space, for any first word has a capital; quotes and brackets may stand before it.
    return re.compile(rf"(?<=\s)[^\w\s]*[{capitals}]\S*")
