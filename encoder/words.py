"""Vectors of words, for comparing two sentences word by word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from encoder import BUNDLED, Encoder, load_encoder
from encoder.coverage import find_coverage, read_coverage
from encoder.joined import JoinedEncoder
from encoder.rows import Matrix
from encoder.tokenizer import Tokens, join


@dataclass(frozen=True, kw_only=True)
class Words(Tokens):
    """The words of S sentences, each distinct word with a vector and weight.

    ``ids`` and ``offsets`` list each sentence's words, as numbers of U distinct words. Their
    ``vectors``, float32 (U, D), are unit rows, or 0 for a word of weight 0, and their ``weights``,
    float32 (U,), are each word's importance. ``join_words`` merges no equal words.
    """

    vectors: Matrix
    weights: Matrix


def join_words(first: Words, second: Words) -> Words:
    """Return each sentence's words in ``first``, then its words in ``second``."""
    shifted = Tokens(ids=second.ids + np.int32(len(first.vectors)), offsets=second.offsets)
    alternating = np.arange(2 * len(first)).reshape(2, -1).T.ravel()
    words = join([first, shifted]).take(alternating)
    return Words(
        vectors=np.concatenate((first.vectors, second.vectors)),
        weights=np.concatenate((first.weights, second.weights)),
        ids=words.ids,
        offsets=words.offsets[::2],
    )


@runtime_checkable
class WordEncoder(Protocol):
    """Interface of encoders that also have vectors of words."""

    name: str

    def words(self, sentences: Sequence[str]) -> Words:
        """Return the words of S sentences, with vectors of the encoder's space."""

    def split(self, sentences: Sequence[str]) -> list[list[str]]:
        """Split sentences into texts as ``BagEncoder.split``."""


def word_encoders(
    encoder: Encoder | None, languages: Sequence[str | None]
) -> tuple[WordEncoder, ...]:
    """Return the word encoder of each side, in order.

    ``languages`` are the sides' ISO 639 codes, None if unknown. A word encoder is ``encoder`` or,
    if that is joined, its first part with word vectors, for the language. If there is none, or
    ``encoder`` is None, it is the bundled encoder. Errors of ``Encoder.for_language`` are raised.

    Raises:
        ValueError: The bundled encoder is needed, and a language is None, not covered or ``weak``.
    """
    joined_parts = encoder.parts if isinstance(encoder, JoinedEncoder) else ()
    wholes: list[Encoder | None] = [part.whole for part in joined_parts] or [encoder]
    for whole in wholes:
        if isinstance(whole, WordEncoder):
            own = (whole.for_language(language) for language in languages)
            return tuple(each for each in own if isinstance(each, WordEncoder))
    coverages = read_coverage(BUNDLED)
    for language in languages:
        coverage = find_coverage(coverages, language) if language else None
        if coverage is None or coverage.quality == "weak":
            why = (
                f"{BUNDLED} does not cover {language} well" if language else "a language is unknown"
            )
            having = f"encoder {encoder.name} has" if encoder else "embeddings have"
            raise ValueError(f"{having} no word vectors, and {why}")
    return word_encoders(load_encoder(), languages)
