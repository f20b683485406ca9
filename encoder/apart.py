"""Networks that are a language's own, in one space: which one encodes is chosen by the language."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder, Precision
from encoder.network import NetworkEncoder
from encoder.trained import EndingTokenizer, load_networks


class ApartEncoder:
    """An encoder for each language; satisfies ``encoder.Encoder``, but that it must be told which.

    Sentences of no language have no vector.
    """

    def __init__(self, *, name: str, encoders: Mapping[str, NetworkEncoder]) -> None:
        self._encoders = encoders
        self.name = name
        first = next(iter(encoders.values()))
        self.dim, self.precision = first.dim, first.precision

    def for_language(self, language: str | None) -> Encoder:
        """Return the encoder of a language.

        Raises:
            ValueError: it has none.
        """
        if language is None:
            return self
        if language not in self._encoders:
            raise ValueError(
                f"encoder {self.name} has no network for {language}; it has {self._languages()}"
            )
        return self._encoders[language]

    def for_languages(self, languages: Sequence[str | None]) -> "ApartEncoder":
        """Return itself."""
        return self

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        """Refuse: the language must be known.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"encoder {self.name} has a network for each of {self._languages()}; say which "
            "language the text is in (--src-lang, --tgt-lang or --lang)"
        )

    def _languages(self) -> str:
        return ", ".join(self._encoders)


def load_apart_encoder(folder: Path, *, name: str, precision: Precision) -> ApartEncoder:
    """Load an encoder with a network for each language; raises as ``load_networks``."""
    full_name, pieces, networks = load_networks(folder, name=name, precision=precision)
    tokenizer = EndingTokenizer(pieces)
    encoders = {
        language: NetworkEncoder(name=f"{full_name}/{language}", tokenizer=tokenizer, network=one)
        for language, one in networks.items()
    }
    return ApartEncoder(name=full_name, encoders=encoders)
