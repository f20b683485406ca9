"""The weighted bag: a sentence vector is the unit-length sum of its subword vectors.

No weights are stored beside the vectors: the length of a subword's vector is its weight, and
training on sums lets it shrink for words that say little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

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
    """Encodes sentences with a subword vector table; satisfies ``encoder.Encoder``."""

    def __init__(self, *, name: str, tokenizer: Tokenizer, table: NDArray[np.float32]) -> None:
        if len(table) != len(tokenizer):
            raise ValueError(
                f"encoder {name}: {len(table)} vectors for {len(tokenizer)} pieces; "
                "weights and tokeniser are not from the same training"
            )
        self.name = name
        self.dim = int(table.shape[1])
        self._tokenizer = tokenizer
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
                bags = embed_bags(self._table, self._tokenizer.encode(chunk))
                vectors[start : start + len(chunk)] = bags
            if normalize:
                functional.normalize(vectors, out=vectors)
        return vectors.numpy()

    def words(self, sentences: Sequence[str]) -> Words:
        """The words of the sentences: a word is a bag of its subwords, and its length its weight.

        A sentence's vector is the sum of its words' vectors times their weights, at unit length.
        """
        tokens = self._tokenizer.encode(sentences)
        begins = np.ones(len(tokens.ids) + 1, dtype=np.bool_)
        begins[:-1] = self._tokenizer.begins_word[tokens.ids]
        begins[tokens.offsets] = True
        starts = np.flatnonzero(begins)
        with torch.inference_mode():
            bags = embed_bags(self._table, Tokens(ids=tokens.ids, offsets=starts))
            weights = bags.norm(dim=1)
            vectors = functional.normalize(bags, out=bags)
        return Words(
            vectors=vectors.numpy(),
            weights=weights.numpy(),
            offsets=np.searchsorted(starts, tokens.offsets),
        )
