"""The words of sentences with their vectors, as the judge reads them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Words(Protocol):
    """The W words of P sentences, in order, with vectors of U different ones."""

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Unit rows of the different words, float32 (U, D)."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """The weight of each different word, float32 (U,)."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """The position in ``vectors`` of each of the W words, int32 (W,)."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The first word of each sentence in ``ids``, and W, int64 (P + 1,)."""


class WordEmbedder(Protocol):
    """An encoder of words, implemented by ``encoder.words.WordEncoder``."""

    def words(self, sentences: Sequence[str]) -> Words:
        """Split P sentences, maybe empty ones, into words with vectors."""

    def split(self, sentences: Sequence[str]) -> list[list[str]]:
        """Split P sentences, maybe none, into the texts of their words.

        Of a sentence's words in the result of ``words``, these come first, in order.
        """


def encoder_names(makers: Sequence[WordEmbedder]) -> frozenset[str]:
    """Return the names of word encoders, "" for one without a name."""
    return frozenset(getattr(maker, "name", "") for maker in makers)
