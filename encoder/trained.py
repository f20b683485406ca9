"""Networks that train-encoder makes: how they are built, as encoders, and on disk.

``bilstm`` is LASER's network; ``transformer`` the dual encoder of Chidambaram et al. 2019
(section 2.1) over SentencePiece: 8 heads, filters of 4 x D, the mean over all positions; norms come
before the blocks. The others are those of ``encoder.sentence_networks``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from encoder import Precision
from encoder.checkpoint import NETWORK_FORMAT, WEIGHTS, read_folder, write_folder
from encoder.laser.bilstm import BiLSTM
from encoder.laser.transformer import Transformer
from encoder.network import NetworkEncoder
from encoder.precision import Ready, ready
from encoder.sample import SAMPLE
from encoder.sentence_networks import KINDS, SentenceNetwork
from encoder.tokenizer import Tokenizer, Tokens

Trainable = BiLSTM | Transformer | SentenceNetwork

HEADS = 8
SETTINGS = {
    "sentemb_criterion": "mean",
    "activation_fn": "relu",
    "encoder_attention_heads": HEADS,
    "encoder_normalize_before": True,
}


def build_network(
    architecture: str, tensors: Mapping[str, Tensor], *, dropout: float = 0.0
) -> Trainable:
    """Build the network of these weights, the last of whose tokens ends each sentence.

    Raises:
        ValueError: there is no such architecture, or the tensors are not its own.
    """
    if architecture == "bilstm":
        return BiLSTM(tensors, dropout=dropout)
    if architecture == "transformer":
        return Transformer(tensors, SETTINGS, dropout=dropout)
    if architecture in KINDS:
        return KINDS[architecture].build(tensors, dropout=dropout)
    raise ValueError(f"is of an architecture {architecture!r} that is not known")


def saved_network(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], pieces: int
) -> Trainable:
    """Build the network of a saved encoder.

    Raises:
        ValueError: the tensors are not those of its architecture, or of so many pieces.
    """
    network = build_network(config.get("architecture", "unnamed"), tensors)
    if network.vocabulary != pieces + 1:
        raise ValueError(
            f"has {network.vocabulary} vectors for {pieces} pieces and an end; weights and "
            "tokeniser are not from the same training"
        )
    return network


class EndingTokenizer:
    """Ends each sentence with a token of its own, so that none is empty; its id is the last."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def for_language(self, language: str | None) -> "EndingTokenizer":
        """Return itself: it does the same to all languages."""
        return self

    def encode(self, sentences: Sequence[str]) -> Tokens:
        """Tokenise."""
        tokens = self._tokenizer.encode(sentences)
        ids = np.insert(tokens.ids, tokens.offsets[1:], len(self._tokenizer))
        return Tokens(ids=ids, offsets=tokens.offsets + np.arange(len(tokens.offsets)))


class TrainedNetwork(NetworkEncoder):
    """A network that train-encoder made, with what another training can begin with."""

    def __init__(self, *, name: str, tokenizer: Tokenizer, network: Ready) -> None:
        super().__init__(name=name, tokenizer=EndingTokenizer(tokenizer), network=network)
        self.tokenizer_model = tokenizer.model
        self._ready = network

    def weights(self) -> Mapping[str, Tensor]:
        """Return all tensors, by name, in the precision that the encoder was loaded in."""
        return self._ready.weights()


def save_network(
    folder: Path,
    architecture: str,
    network: Trainable,
    *,
    tokenizer_model: bytes,
    facts: Mapping[str, Any],
) -> None:
    """Write a network; an encoder that was in ``folder`` is kept until this one is written."""
    from safetensors.torch import save

    config = {
        "format": NETWORK_FORMAT,
        "architecture": architecture,
        "vocabulary": network.vocabulary,
        "dim": network.dim,
        "facts": facts,
    }
    write_folder(folder, config, tokenizer_model, save(network.state_dict()))


def load_network_encoder(folder: Path, *, name: str, precision: Precision) -> TrainedNetwork:
    """Load an encoder that ``save_network`` wrote; a hash of its files becomes part of its name.

    Raises:
        ValueError: a file is missing, damaged, or of another format, or the network cannot run in
            this precision.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    config, pieces, weights = read_folder(folder)
    try:
        network = saved_network(config, load(weights), len(pieces))
        chosen = ready(network, precision, EndingTokenizer(pieces).encode(SAMPLE))
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"encoder {folder}: {WEIGHTS} {error}") from error
    full_name = f"{name}@{config['sha256'][:12]}-{chosen.precision}"
    return TrainedNetwork(name=full_name, tokenizer=pieces, network=chosen)
