"""The base class of all encoders."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, Self

from encoder import Encoder
from encoder.coverage import language_key
from encoder.rows import Matrix

# Sentences on which precisions are compared, of many languages, scripts and lengths.
SAMPLE = tuple(
    (Path(__file__).parent / "assets" / "sample.txt").read_text(encoding="utf-8").splitlines()
)
# The lowest cosine that a sentence's vectors in another precision and in float32 may have.
MIN_COSINE = 0.9995


class BaseEncoder(ABC):
    """Base class of encoders, each with the attributes of ``Encoder``."""

    name: str
    dim: int
    _added: Mapping[str, Callable[[], Any]] = {}

    def with_languages(self, languages: Collection[str], load: Callable[[], Encoder]) -> Self:
        """Return a copy that encodes some languages by another encoder.

        ``languages`` are ISO 639 codes. ``load`` returns the other encoder, of the same space.
        ``BaseEncoder.for_language`` calls it once, at the first of these, and raises its errors.
        """
        copied = copy(self)
        copied._added = {**self._added, **dict.fromkeys(map(language_key, languages), cache(load))}
        return copied

    def for_language(self, language: str | None) -> Self:
        """Return the encoder of ``with_languages`` for a language, or this one."""
        load = self._added.get(language_key(language or ""))
        return self if load is None else load()

    def for_languages(self, languages: Sequence[str | None]) -> Self:
        """Return this encoder, which has no parts."""
        return self

    def encode(self, sentences: str | Sequence[str], *, normalize: bool = True) -> Matrix:
        """Encode sentences, or one string, as in ``Encoder.encode``."""
        vectors = self._embed(as_list(sentences), normalize=normalize)
        return vectors[0] if isinstance(sentences, str) else vectors

    @abstractmethod
    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        """Encode S sentences, float32 (S, D)."""


def as_list(sentences: str | Sequence[str]) -> Sequence[str]:
    """Return one string in a list, or several sentences unchanged."""
    return [sentences] if isinstance(sentences, str) else sentences
