"""Networks that are a language's own, in one space: which one encodes is chosen by the language."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from encoder import Encoder, Precision
from encoder.checkpoint import APART_FORMAT, WEIGHTS, read_folder, write_folder
from encoder.network import NetworkEncoder
from encoder.precision import ready
from encoder.sample import SAMPLE
from encoder.trained import EndingTokenizer, Trainable, saved_network

BETWEEN = ":"  # a language and the name of a tensor of its network


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


def save_apart(
    folder: Path,
    architecture: str,
    networks: Mapping[str, Trainable],
    *,
    tokenizer_model: bytes,
    facts: Mapping[str, Any],
) -> None:
    """Write the networks of languages; an encoder that was in ``folder`` is kept until then."""
    from safetensors.torch import save

    first = next(iter(networks.values()))
    config = {
        "format": APART_FORMAT,
        "architecture": architecture,
        "apart": list(networks),
        "vocabulary": first.vocabulary,
        "dim": first.dim,
        "facts": facts,
    }
    tensors = {
        f"{language}{BETWEEN}{name}": tensor
        for language, network in networks.items()
        for name, tensor in network.state_dict().items()
    }
    write_folder(folder, config, tokenizer_model, save(tensors))


def load_apart_encoder(folder: Path, *, name: str, precision: Precision) -> ApartEncoder:
    """Load an encoder that ``save_apart`` wrote; a hash of its files becomes part of its name.

    Raises:
        ValueError: a file is missing, damaged, or of another format, or a network cannot run in
            this precision.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    config, pieces, weights = read_folder(folder)
    tokenizer = EndingTokenizer(pieces)
    try:
        own: dict[str, dict[str, Tensor]] = {language: {} for language in config["apart"]}
        for full, tensor in load(weights).items():
            language, _, part = full.partition(BETWEEN)
            own.setdefault(language, {})[part] = tensor
        networks = {
            language: saved_network(config, each, len(pieces)) for language, each in own.items()
        }
        sample = tokenizer.encode(SAMPLE)
        chosen = {language: ready(one, precision, sample) for language, one in networks.items()}
        if len({one.precision for one in chosen.values()}) > 1:  # what is fast suits some of them
            chosen = {language: ready(one, "float32", sample) for language, one in networks.items()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"encoder {folder}: {WEIGHTS} {error}") from error
    full_name = f"{name}@{config['sha256'][:12]}-{next(iter(chosen.values())).precision}"
    encoders = {
        language: NetworkEncoder(name=f"{full_name}/{language}", tokenizer=tokenizer, network=one)
        for language, one in chosen.items()
    }
    return ApartEncoder(name=full_name, encoders=encoders)
