"""A network for each language, in training, see ``encoder.apart``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from encoder import Encoder
from encoder.apart import ApartEncoder
from encoder.tokenizer import Tokenizer, Tokens
from encoder.trained import save_networks
from encoder.training.architectures.model import Model, Save
from encoder.training.architectures.network import Network


class Apart(Model):
    """Networks of one architecture and size, by language; ``of`` gives the one to embed with."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        super().__init__()
        self._networks = nn.ModuleDict(networks)
        self.dim = next(iter(networks.values())).dim

    def of(self, language: str) -> Network:
        """Return the network of a language."""
        network = self._networks[language]
        assert isinstance(network, Network)
        return network

    def forward(self, tokens: Tokens) -> Tensor:
        """Not to be called: which network embeds depends on the language."""
        raise AssertionError("embed with the network of a language")

    def begin_with(self, encoder: Encoder) -> None:
        """Begin all networks with the same weights."""
        for language in self._networks:
            self.of(language).begin_with(encoder)

    def finished(
        self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float
    ) -> tuple[ApartEncoder, Save]:
        """Return the encoder, and what saves it."""
        encoders = {
            language: self.of(language).finished(tokenizer, sample=sample, whitening=whitening)[0]
            for language in self._networks
        }

        def save(folder: Path, metadata: Mapping[str, Any]) -> None:
            networks = {language: self.of(language).folded() for language in encoders}
            architecture = self.of(next(iter(encoders))).architecture
            save_networks(
                folder, architecture, networks, tokenizer_model=tokenizer.model, facts=metadata
            )

        return ApartEncoder(name="training", encoders=encoders), save
