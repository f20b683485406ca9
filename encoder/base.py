"""The part that all encoders have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray


# To float32, of each sentence of ``encoder.sample``, for another precision to be taken.
MIN_COSINE = 0.9995


class BaseEncoder(ABC):
    """An ``encoder.Encoder`` of the vectors that ``_embed`` makes, the same for all languages."""

    name: str
    dim: int

    def for_language(self, language: str | None) -> Self:
        """Return itself."""
        return self

    def for_languages(self, languages: Sequence[str | None]) -> Self:
        """Return itself."""
        return self

    def encode(
        self, sentences: str | Sequence[str], *, normalize: bool = True
    ) -> NDArray[np.float32]:
        """Encode S sentences: float32 (S, D); or one that is not in a list: float32 (D,).

        Rows have unit length, or the length that the network gives them; a sentence of which
        nothing is left has the zero vector.
        """
        vectors = self._embed(listed(sentences), normalize=normalize)
        return vectors[0] if isinstance(sentences, str) else vectors

    @abstractmethod
    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        """Return vectors, float32 (S, D)."""


def listed(sentences: str | Sequence[str]) -> Sequence[str]:
    """Return sentences as they are, and one as a list, for a string is a sequence of strings."""
    return [sentences] if isinstance(sentences, str) else sentences
