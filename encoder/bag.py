"""The weighted bag: a sentence vector is the unit-length sum of its words' vectors.

A word's vector is the sum of its features' (``encoder.features``): subwords and, if there are any,
n-grams. No weights are stored beside the vectors: the length of a vector is its weight, and
training on sums lets it shrink for what says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from encoder.features import Features
from encoder.tokenizer import Tokens
from encoder.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder.tokenizer import Tokenizer

CHUNK_SENTENCES = 16_384  # bounds the memory of one call: ids, pieces and vectors of this many


def embed_bags(table: torch.Tensor, tokens: Tokens) -> torch.Tensor:
    """Sum the rows of ``table`` (V, D) for each sentence: float tensor of shape (S, D).

    Memory traffic bounds it: 4 * D bytes are read for each token.
    """
    ids = torch.from_numpy(tokens.ids)
    offsets = torch.from_numpy(tokens.offsets.astype(np.int32))
    return functional.embedding_bag(ids, table, offsets, mode="sum", include_last_offset=True)


class BagEncoder:
    """Encodes sentences with a table of feature vectors; satisfies ``encoder.Encoder``."""

    def __init__(
        self,
        *,
        name: str,
        tokenizer: Tokenizer,
        table: NDArray[np.float32],
        ngram_rows: int = 0,
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
        self.dim = int(table.shape[1])
        self._tokenizer = tokenizer
        self._features = Features(tokenizer.pieces(), ngram_rows)
        self._table = torch.from_numpy(table)

    def for_language(self, language: str | None) -> BagEncoder:
        """Itself: its tokeniser does the same to all languages."""
        return self

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        """Vectors, float32 (S, D): of unit length, or sums; zero where no token is left."""
        vectors = torch.empty(len(sentences), self.dim, dtype=torch.float32)
        with torch.inference_mode():
            for start in range(0, len(sentences), CHUNK_SENTENCES):
                chunk = sentences[start : start + CHUNK_SENTENCES]
                numbers, words = self._words(chunk)
                vectors[start : start + len(chunk)] = embed_bags(words, numbers)
            if normalize:
                functional.normalize(vectors, out=vectors)
        return vectors.numpy()

    def words(self, sentences: Sequence[str]) -> Words:
        """The words of the sentences: a word is a bag of its features, and its length its weight.

        A sentence's vector is the sum of its words' vectors times their weights, at unit length.
        """
        with torch.inference_mode():
            numbers, words = self._words(sentences)
            weights = words.norm(dim=1)
            vectors = functional.normalize(words, out=words)
        return Words(
            vectors=vectors.numpy()[numbers.ids],
            weights=weights.numpy()[numbers.ids],
            offsets=numbers.offsets,
        )

    def _words(self, sentences: Sequence[str]) -> tuple[Tokens, torch.Tensor]:
        """Sentences as numbers of words, and the bag of each different word, float32 (W, D)."""
        numbers, words = self._features.split(self._tokenizer.encode(sentences))
        return numbers, embed_bags(self._table, words)
