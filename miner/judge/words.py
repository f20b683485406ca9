"""The words of sentences with their vectors, as the judge reads them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Words(Protocol):
    """The W words of P sentences laid end to end, U of them different.

    Properties have the same arrays as ``encoder.words.Words``.
    """

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Unit rows of the different words, float32 (U, D)."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """The weight of each different word, float32 (U,)."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """The rows of ``vectors`` of all words, int32 (W,)."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Starts of the sentences in ``ids``, and W, int64 (P + 1,)."""


class WordEmbedder(Protocol):
    """An encoder of words, such as ``encoder.words.WordEncoder``."""

    def words(self, sentences: Sequence[str]) -> Words:
        """Split P sentences, maybe empty ones, into words with vectors."""
