"""Vectors of the words of sentences, for comparing two sentences word by word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from encoder import BUNDLED, Encoder, load_encoder
from encoder.coverage import find_coverage, read_coverage
from encoder.joined import JoinedEncoder


@dataclass(frozen=True, kw_only=True)
class Words:
    """The words of S sentences laid end to end, as ``Tokens`` are, of which U are different.

    ``vectors`` are unit rows, float32 (U, D); ``weights`` how much a word counts, float32 (U,).
    """

    vectors: NDArray[np.float32]
    weights: NDArray[np.float32]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]


def joined(first: Words, second: Words) -> Words:
    """Return the words that two encoders have of S sentences: the first one's, then the other's."""
    offsets = first.offsets + second.offsets
    ids = np.empty(offsets[-1], dtype=np.int32)
    for one, before, shift in (
        (first, second.offsets[:-1], 0),
        (second, first.offsets[1:], len(first.vectors)),
    ):
        places = np.arange(len(one.ids)) + np.repeat(before, np.diff(one.offsets))
        ids[places] = one.ids + shift
    return Words(
        vectors=np.concatenate((first.vectors, second.vectors)),
        weights=np.concatenate((first.weights, second.weights)),
        ids=ids,
        offsets=offsets,
    )


@runtime_checkable
class WordEncoder(Protocol):
    """An encoder that has vectors of words, too."""

    name: str

    def words(self, sentences: Sequence[str]) -> Words:
        """Return the words of S sentences, in their space; none where nothing is left."""


def word_encoders(
    encoder: Encoder | None, languages: Sequence[str | None]
) -> tuple[WordEncoder, ...]:
    """Return what makes the words of each side: the encoder of their vectors, else the bundled one.

    Of a joined encoder, it is the first part that has words. ``encoder`` is None where vectors are
    given; ``languages`` are those of the sides (ISO 639). A ValueError says that the encoder has no
    words, and that the bundled one does not cover a language well.
    """
    joined_parts = encoder.parts if isinstance(encoder, JoinedEncoder) else ()
    wholes: list[Encoder | None] = [part.whole for part in joined_parts] or [encoder]
    for whole in wholes:
        if isinstance(whole, WordEncoder):
            own = (whole.for_language(language) for language in languages)
            return tuple(each for each in own if isinstance(each, WordEncoder))
    known = read_coverage(BUNDLED)
    for language in languages:
        coverage = find_coverage(known, language) if language else None
        if coverage is None or coverage.quality == "weak":
            raise ValueError(
                f"the encoder has no word vectors, and {BUNDLED} does not cover "
                f"{language or 'an unrecognised language'} well"
            )
    return word_encoders(load_encoder(), languages)
