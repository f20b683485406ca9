"""The part that all encoders have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encoder.coverage import individual

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from encoder import Encoder

# Sentences that a precision is tried on; of many languages, scripts and lengths.
SAMPLE = tuple(
    (Path(__file__).parent / "assets" / "sample.txt").read_text(encoding="utf-8").splitlines()
)
# To float32, of each sentence of ``SAMPLE``, for another precision to be taken.
MIN_COSINE = 0.9995


class BaseEncoder(ABC):
    """An ``encoder.Encoder`` of the vectors that ``_embed`` makes, but in languages added to it."""

    name: str
    dim: int
    _added: Mapping[str, Callable[[], Any]] = {}

    def extended(self, languages: Collection[str], load: Callable[[], Encoder]) -> Self:
        """Return this encoder with another one in its space, for some languages alone.

        ``load`` gives that one, and is called when the first of these languages is asked for.
        """
        both = copy(self)
        both._added = {**self._added, **dict.fromkeys(map(individual, languages), cache(load))}
        return both

    def for_language(self, language: str | None) -> Self:
        """Return the encoder for a language (ISO 639): itself, unless it was added."""
        load = self._added.get(individual(language or ""))
        return self if load is None else load()

    def for_languages(self, languages: Sequence[str | None]) -> Self:
        """Return itself."""
        return self

    def encode(
        self, sentences: str | Sequence[str], *, normalize: bool = True
    ) -> NDArray[np.float32]:
        """Encode S sentences, float32 (S, D), or one, float32 (D,), as ``encoder.Encoder`` does."""
        vectors = self._embed(listed(sentences), normalize=normalize)
        return vectors[0] if isinstance(sentences, str) else vectors

    @abstractmethod
    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> NDArray[np.float32]:
        """Return vectors, float32 (S, D)."""


def listed(sentences: str | Sequence[str]) -> Sequence[str]:
    """Return sentences as they are, and one as a list, for a string is a sequence of strings."""
    return [sentences] if isinstance(sentences, str) else sentences
