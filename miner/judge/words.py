"""The words of sentences with their vectors, as the judge reads them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Words(Protocol):
    """The W words of P sentences laid end to end, U of them different."""

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Unit rows (U, D)."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """How much each word counts, (U,)."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """The words, as rows of ``vectors``, (W,)."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Sentence i has the words ids[offsets[i]:offsets[i + 1]], (P + 1,)."""


class WordEmbedder(Protocol):
    """An encoder of words, such as ``encoder.words.WordEncoder``."""

    def words(self, sentences: Sequence[str]) -> Words:
        """Return the words of P sentences."""
