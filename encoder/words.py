"""Vectors of the words of sentences, for comparing two sentences word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Words:
    """The W words of S sentences laid end to end.

    ``vectors`` are unit rows, float32 (W, D), and ``weights``, float32 (W,), are how much a word
    counts. Sentence ``i`` has those from ``offsets[i]`` to ``offsets[i + 1]``, int64 (S + 1,).
    """

    vectors: NDArray[np.float32]
    weights: NDArray[np.float32]
    offsets: NDArray[np.int64]


@runtime_checkable
class WordEncoder(Protocol):
    """An encoder that has vectors of words, too."""

    def words(self, sentences: Sequence[str]) -> Words:
        """Return the words of S sentences, in their space; none where nothing is left."""
        ...
