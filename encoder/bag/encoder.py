"""The weighted bag: a sentence vector is the unit-length sum of its words' vectors.

A word's vector is the sum of its features' (``encoder.bag.features``): subwords and, if there are
any, n-grams. No weights are stored beside the vectors: the length of a vector is its weight, and
training on sums lets it shrink for what says little.
"""

import sys
import threading
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoder import Precision
from encoder.bag.features import SCHEME, Features
from encoder.bag.names import names
from encoder.base import BaseEncoder, listed
from encoder.rows import PackedTable, normalize_rows, sum_rows
from encoder.tokenizer import Tokenizer, Tokens
from encoder.words import Words, joined

if TYPE_CHECKING:
    from encoder.bag.known_words import KnownWords  # loads Numba

KNOWN_FROM = 4096  # sentences: for fewer, to remember their words takes longer than it saves
CHUNK_SENTENCES = 16_384  # bounds the memory of one call: ids, pieces and vectors of this many


class BagEncoder(BaseEncoder):
    """Encodes sentences with a table of feature vectors; satisfies ``encoder.Encoder``."""

    def __init__(
        self,
        *,
        name: str,
        tokenizer: Tokenizer,
        table: NDArray[np.float32] | PackedTable,
        ngram_rows: int = 0,
        scheme: int = SCHEME,
    ) -> None:
        """With one row of ``table`` for each piece, and ``ngram_rows`` for n-grams after them.

        Raises:
            ValueError: the table has another number of rows.
        """
        if len(table) != len(tokenizer) + ngram_rows:
            pieces = len(table) - ngram_rows
            raise ValueError(
                f"encoder {name}: {pieces} vectors for {len(tokenizer)} pieces; "
                "weights and tokeniser are not from the same training"
            )
        self.name = name
        self.scheme = scheme
        self.dim = table.shape[1]
        self.precision: Precision = "float32"
        self._tokenizer = tokenizer
        self._features = Features(tokenizer.pieces(), ngram_rows, scheme=scheme)
        self._table = table
        self._known: KnownWords | None = None
        self._lock = threading.Lock()  # around what is known, which each call adds to
        self.namer: BagEncoder | None = None

    def with_names(self, other: "BagEncoder") -> "BagEncoder":
        """Return this encoder with the names that another one in its space has.

        Names (``encoder.bag.names``) are further words of a sentence, beside its own, which are
        names, too.
        """
        both = copy(self)
        both.namer = other
        return both

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
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

    @property
    def tokenizer_model(self) -> bytes:
        """The serialised SentencePiece model."""
        return self._tokenizer.model

    def rows(self) -> NDArray[np.float32]:
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

    def _words(self, sentences: Sequence[str]) -> tuple[Tokens, NDArray[np.float32]]:
        """Return sentences as numbers of words, and the sum of each word, float32 (W, D).

        The sums are valid until the next call.
        """
        many = self._known is not None or len(sentences) >= KNOWN_FROM
        if len(sentences) and many and "encoder.compiled" in sys.modules:
            if self._known is None:
                from encoder.bag.known_words import KnownWords

                self._known = KnownWords(self._tokenizer, self._features, self._table)
            return self._known.split(sentences)
        numbers, words = self._features.split(self._tokenizer.encode(sentences))
        return numbers, sum_rows(self._table, words)
