"""Networks in training: sentences of many lengths side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from encoder import Encoder
from encoder.bag.features import Features
from encoder.network import NetworkEncoder
from encoder.precision import Ready
from encoder.tokenizer import Tokenizer, Tokens
from encoder.trained import (
    ALL,
    EndingTokenizer,
    Trainable,
    TrainedNetwork,
    build_network,
    save_networks,
)
from encoder.training.architectures.model import Model, Save
from encoder.training.architectures.spelling import SpelledEmbedding
from encoder.training.data import LONGEST
from encoder.training.options import TrainingOptions

# A network embeds a batch in up to so many groups of like lengths, each padded by itself, if they
# have as many sentences.
GROUPS, SMALLEST = 16, 32
EMBEDDINGS = "embed_tokens.weight"


class Network(Model):
    """A BiLSTM, a transformer or another network, given sentences of many lengths side by side."""

    def __init__(
        self,
        architecture: str,
        tensors: Mapping[str, Tensor],
        options: TrainingOptions,
        features: Features,
    ) -> None:
        """Take weights as ``encoder.trained.build_network`` does."""
        super().__init__()
        self.architecture = architecture
        self.network = build_network(architecture, tensors, dropout=options.dropout)
        self.network.requires_grad_(True)
        self.dim = self.network.dim
        if features.ngram_rows:
            self.network.embed_tokens = SpelledEmbedding(tensors[EMBEDDINGS], features)
        self._at_once = options.at_once

    def forward(self, tokens: Tokens) -> Tensor:
        """Embed the sentences, each with the token that ends it: (S, D).

        Of more than ``at_once`` sentences no activations are kept: a group's are computed once
        more when its gradient is. The loss is still one over all vectors (Gao et al. 2021,
        "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup").
        """
        groups = like_lengths(np.diff(tokens.offsets), -(-len(tokens) // self._at_once))
        order = np.concatenate(groups)
        if len(order) > self._at_once and torch.is_grad_enabled():
            vectors = [
                checkpoint(self._embed, tokens.take(rows), use_reentrant=False) for rows in groups
            ]
        else:
            vectors = [self._embed(tokens.take(rows)) for rows in groups]
        return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]

    def begin_with(self, encoder: Encoder) -> None:
        """Take the weights of a network of the same architecture and sizes."""
        if not isinstance(encoder, TrainedNetwork):
            raise ValueError("a network begins with a network that train-encoder made; name one")
        own, given = self.network.state_dict(), encoder.weights()
        if {name: tensor.shape for name, tensor in own.items()} != {
            name: tensor.shape for name, tensor in given.items()
        }:
            raise ValueError(
                "the network to begin with has other layers than what is trained; give its "
                "--architecture, --dim and --layers, and no --ngram-rows"
            )
        self.network.load_state_dict(given)

    def _embed(self, tokens: Tokens) -> Tensor:
        device = self.network.embed_tokens.weight.device
        ids, lengths = pad(tokens, end=self.network.vocabulary - 1)
        return self.network(ids.to(device), lengths.to(device))

    def finished(
        self, tokenizer: Tokenizer, *, sample: Sequence[str], whitening: float
    ) -> tuple[NetworkEncoder, Save]:
        """Return the encoder in float32, on the device where it is, and what saves it."""
        self.eval()
        network = self.folded()
        device = network.embed_tokens.weight.device
        ready = Ready(network, precision="float32", device=device)
        ending = EndingTokenizer(tokenizer)

        def save(folder: Path, metadata: Mapping[str, Any]) -> None:
            model = tokenizer.model
            save_networks(
                folder, self.architecture, {ALL: network}, tokenizer_model=model, facts=metadata
            )

        return NetworkEncoder(name="training", tokenizer=ending, network=ready), save

    def folded(self) -> Trainable:
        """Return the network with a vector for each piece, whatever these are made of here."""
        embeddings = self.network.embed_tokens
        if not isinstance(embeddings, SpelledEmbedding):
            return self.network
        inner = {f"embed_tokens.{name}" for name in embeddings.state_dict()}
        tensors = {
            name: tensor for name, tensor in self.network.state_dict().items() if name not in inner
        }
        return build_network(self.architecture, {**tensors, EMBEDDINGS: embeddings.folded()})


def like_lengths(lengths: NDArray[np.int64], least: int = 1) -> list[NDArray[np.int64]]:
    """Return the rows of sentences, shortest first, in ``least`` groups or more."""
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, max(least, min(GROUPS, len(order) // SMALLEST)))


def pad(tokens: Tokens, *, end: int) -> tuple[Tensor, Tensor]:
    """Return ids int64 (S, T) and lengths (S,): each sentence is ended, then padded, by ``end``."""
    lengths = np.minimum(np.diff(tokens.offsets), LONGEST)
    ids = np.full((len(tokens), int(lengths.max(initial=0)) + 1), end, dtype=np.int64)
    there = np.arange(ids.shape[1]) < lengths[:, None]
    starts = tokens.offsets[:-1, None]
    ids[there] = tokens.ids[(starts + np.arange(ids.shape[1]))[there]]
    return torch.from_numpy(ids), torch.from_numpy(lengths + 1)


def named(parts: dict[str, nn.Module]) -> dict[str, Tensor]:
    """Return all weights of parts by name."""
    return {
        f"{part}.{name}": tensor
        for part, module in parts.items()
        for name, tensor in module.state_dict().items()
    }
