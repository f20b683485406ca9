"""Encoders as they are trained: modules that map tokens to vectors, differentiably."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from encoder.laser.transformer import Layer
from encoder.trained import HEADS, build_network
from encoder.training.data import LONGEST

if TYPE_CHECKING:
    from encoder.features import Features
    from encoder.tokenizer import Tokens
    from encoder.training.options import TrainingOptions

WIDTH = 320  # of LASER's token embeddings (Artetxe & Schwenk 2019, section 3.1)
# A network embeds a batch in up to so many groups of like lengths, each padded by itself, if they
# have as many sentences.
GROUPS, SMALLEST = 16, 32
NGRAMS_AT_FIRST = 0.3  # length of n-grams' vectors beside those of pieces, as a word has many


class Model(nn.Module):
    """What is trained: embeds S sentences as float (S, ``dim``), not normalised."""

    dim: int

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Embed the sentences."""
        raise NotImplementedError


def make_model(options: TrainingOptions, features: Features) -> Model:
    """A new model on the GPU, if there is one.

    Raises:
        ValueError: the architecture cannot have as many dimensions.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if options.architecture == "bag":
        return Bag(features, options.dim).to(device)
    return Network(options, features.pieces).to(device)


class Bag(Model):
    """The weighted bag, see ``encoder.bag``.

    The gradient of its table is sparse: a batch touches some of its rows, and a step costs
    O(touched x D) instead of O(rows x D).
    """

    def __init__(self, features: Features, dim: int) -> None:
        super().__init__()
        table = torch.randn(len(features), dim) / math.sqrt(dim)
        table[features.pieces :] *= NGRAMS_AT_FIRST
        self.table = nn.Parameter(table)
        self.dim = dim
        self._features = features

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Sum the rows of each sentence's words: (S, D)."""
        sentences, words = self._features.split(tokens)
        return bag_sums(bag_sums(self.table, words, sparse=True), sentences, sparse=False)


def bag_sums(table: torch.Tensor, tokens: Tokens, *, sparse: bool) -> torch.Tensor:
    """Sum rows of float32 (V, D), with a sparse gradient if asked for."""
    device = table.device
    ids, offsets = (torch.from_numpy(a.astype(np.int32)) for a in (tokens.ids, tokens.offsets))
    sums: torch.Tensor = _Sums.apply(table, ids.to(device), offsets.to(device), sparse)
    return sums


class _Sums(torch.autograd.Function):
    """Sums of rows, whose gradient is sums of rows, too.

    torch's own gradient adds to the table token by token, in places far apart; here the tokens
    are sorted by row, and each row fetches what it is due: 4 times as fast.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        table: torch.Tensor,
        ids: torch.Tensor,
        offsets: torch.Tensor,
        sparse: bool,
    ) -> torch.Tensor:
        ctx.save_for_backward(ids, offsets)
        ctx.rows, ctx.sparse = len(table), sparse
        return _sums(table, ids, offsets)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:  # noqa: ANN401
        ids, offsets = ctx.saved_tensors
        owners = torch.repeat_interleave(offsets.diff())
        rows, order = torch.sort(ids, stable=True)
        touched, counts = torch.unique_consecutive(rows, return_counts=True)
        ends = functional.pad(counts.cumsum(0), (1, 0))
        values = _sums(gradient.contiguous(), owners[order].int(), ends.int())
        shape = (ctx.rows, gradient.shape[1])
        if ctx.sparse:
            found = torch.sparse_coo_tensor(
                touched[None], values, shape, is_coalesced=True, check_invariants=False
            )
        else:
            found = gradient.new_zeros(shape).index_copy_(0, touched.long(), values)
        return found, None, None, None


def _sums(table: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return functional.embedding_bag(ids, table, offsets, mode="sum", include_last_offset=True)


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
