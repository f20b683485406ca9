"""Encoders as they are trained: modules that map tokens to vectors, differentiably."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from encoder.laser.transformer import Layer
from encoder.trained import HEADS, build_network
from encoder.training.data import LONGEST

if TYPE_CHECKING:
    from encoder.tokenizer import Tokens
    from encoder.training.options import TrainingOptions

WIDTH = 320  # of LASER's token embeddings (Artetxe & Schwenk 2019, section 3.1)
# A network embeds a batch in up to so many groups of like lengths, each padded by itself, if they
# have as many sentences.
GROUPS, SMALLEST = 16, 32


class Model(nn.Module):
    """What is trained: embeds S sentences as float (S, ``dim``), not normalised."""

    dim: int

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Embed the sentences."""
        raise NotImplementedError


def make_model(options: TrainingOptions, vocabulary: int) -> Model:
    """A new model on the GPU, if there is one.

    Raises:
        ValueError: the architecture cannot have as many dimensions.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if options.architecture == "bag":
        return Bag(vocabulary, options.dim).to(device)
    return Network(options, vocabulary).to(device)


class Bag(Model):
    """The weighted bag, see ``encoder.bag``.

    The gradient of its table is sparse: a batch touches a few thousand of V rows, and a step costs
    O(touched x D) instead of O(V x D).
    """

    def __init__(self, vocabulary: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, dim) / math.sqrt(dim))
        self.dim = dim

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Sum the rows of each sentence's tokens: (S, D)."""
        device = self.table.device
        # Rows are fetched once each: their gradient then has as many rows, not one for each token.
        touched, local = np.unique(tokens.ids, return_inverse=True)
        ids, places, offsets = (
            torch.from_numpy(array.astype(np.int32)).to(device)
            for array in (touched, local, tokens.offsets)
        )
        rows = functional.embedding(ids, self.table, sparse=True)
        return functional.embedding_bag(places, rows, offsets, mode="sum", include_last_offset=True)


class Network(Model):
    """A BiLSTM or a transformer, given sentences of many lengths side by side."""

    def __init__(self, options: TrainingOptions, vocabulary: int) -> None:
        """Make its weights.

        Raises:
            ValueError: the architecture cannot have as many dimensions.
        """
        super().__init__()
        fresh = {"bilstm": _bilstm_tensors, "transformer": _transformer_tensors}
        tensors = fresh[options.architecture](options, vocabulary + 1)
        self.network = build_network(options.architecture, tensors, dropout=options.dropout)
        self.network.requires_grad_(True)
        self.dim = self.network.dim
        self._at_once = options.at_once

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Embed the sentences, each with the token that ends it: (S, D).

        Of more than ``at_once`` sentences no activations are kept: a group's are computed once
        more when its gradient is. The loss is still one over all vectors (Gao et al. 2021,
        "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup").
        """
        order = np.argsort(np.diff(tokens.offsets), kind="stable")
        count = max(1, min(GROUPS, len(order) // SMALLEST), -(-len(order) // self._at_once))
        groups = np.array_split(order, count)
        if len(order) > self._at_once and torch.is_grad_enabled():
            vectors = [
                checkpoint(self._embed, tokens.take(rows), use_reentrant=False) for rows in groups
            ]
        else:
            vectors = [self._embed(tokens.take(rows)) for rows in groups]
        return torch.cat(vectors)[torch.from_numpy(np.argsort(order))]

    def _embed(self, tokens: Tokens) -> torch.Tensor:
        device = self.network.embed_tokens.weight.device
        ids, lengths = pad(tokens, end=self.network.vocabulary - 1)
        return self.network(ids.to(device), lengths.to(device))


def pad(tokens: Tokens, *, end: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids int64 (S, T) and lengths int64 (S,): each sentence is ended, then padded, by ``end``."""
    lengths = np.minimum(np.diff(tokens.offsets), LONGEST)
    ids = np.full((len(tokens), int(lengths.max(initial=0)) + 1), end, dtype=np.int64)
    there = np.arange(ids.shape[1]) < lengths[:, None]
    starts = tokens.offsets[:-1, None]
    ids[there] = tokens.ids[(starts + np.arange(ids.shape[1]))[there]]
    return torch.from_numpy(ids), torch.from_numpy(lengths + 1)


def _bilstm_tensors(options: TrainingOptions, vocabulary: int) -> dict[str, torch.Tensor]:
    if options.dim % 2:
        raise ValueError(f"dim {options.dim}: expected an even number, half for each direction")
    hidden = options.dim // 2
    lstm = nn.LSTM(WIDTH, hidden, num_layers=options.layers, bidirectional=True)
    embeddings = nn.Embedding(vocabulary, WIDTH)
    nn.init.normal_(embeddings.weight, std=0.1)
    return _named({"embed_tokens": embeddings, "lstm": lstm})


def _transformer_tensors(options: TrainingOptions, vocabulary: int) -> dict[str, torch.Tensor]:
    dim = options.dim
    if dim % HEADS:
        raise ValueError(f"dim {dim}: expected a multiple of {HEADS}, the number of heads")
    embeddings = nn.Embedding(vocabulary, dim)
    nn.init.normal_(embeddings.weight, std=dim**-0.5)
    layers = {
        f"layers.{number}": Layer(dim, 4 * dim, HEADS, before=True, activation=functional.relu)
        for number in range(options.layers)
    }
    return _named({"embed_tokens": embeddings, **layers, "layer_norm": nn.LayerNorm(dim)})


def _named(parts: dict[str, nn.Module]) -> dict[str, torch.Tensor]:
    return {
        f"{part}.{name}": tensor
        for part, module in parts.items()
        for name, tensor in module.state_dict().items()
    }
