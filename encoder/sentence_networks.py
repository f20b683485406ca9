"""Recurrent and convolutional networks of Conneau et al. 2017 and 2018.

"Supervised Learning of Universal Sentence Representations" and "What you can cram into a single
vector". Padding does not change a vector. Axes: ``B`` sentences, ``T`` tokens, ``D`` dimensions.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from encoder.laser.networks import POOLS, Tensors, adopt, sinusoids, token_mask

WIDTH = 320  # of token vectors, as in LASER
KERNEL = 3  # positions per convolution
HIERARCHY = 4  # layers of a hierarchical network, one for each part of the vector
GATED = 8  # layers of a gated network
CONTEXTS = 4  # context vectors of inner attention
RECURRENT = "rnn.weight_hh_l"  # the prefix of names of a recurrent layer's weights


class SentenceNetwork(nn.Module):
    """Base of networks from ids (B, T) below ``vocabulary`` to vectors (B, D)."""

    dim: int

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary, self.dropout = vocabulary, 0.0
        self.embed_tokens = nn.Embedding(vocabulary, WIDTH)
        nn.init.normal_(self.embed_tokens.weight, std=0.1)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed token ids (B, T) as vectors (B, D), as ``BiLSTM.forward``."""
        if lengths is None:
            lengths = torch.full((len(ids),), ids.shape[1])
        is_token = token_mask(lengths, ids.shape[1], ids.device)
        x = functional.dropout(self.embed_tokens(ids), self.dropout, self.training)
        return self.embed(x, is_token)

    def embed(self, x: Tensor, is_token: Tensor) -> Tensor:
        """Map (B, T, 320) to (B, D) by ``is_token``, bool (B, T), in subclasses."""
        raise NotImplementedError


class _Recurrent(SentenceNetwork):
    """An ``lstm`` or ``gru``, with a pool ``last``, ``attention`` or of POOLS."""

    def __init__(
        self, vocabulary: int, hidden: int, layers: int = 1, *, cell: str, both: bool, pool: str
    ) -> None:
        super().__init__(vocabulary)
        kind: type[nn.LSTM] | type[nn.GRU] = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.rnn = kind(WIDTH, hidden, num_layers=layers, bidirectional=both, batch_first=True)
        self._directions, self._pool = 1 + both, pool
        self.dim = hidden * self._directions
        if pool == "attention":
            self.project = nn.Linear(self.dim, self.dim)
            self.contexts = nn.Linear(self.dim, CONTEXTS, bias=False)
            self.dim *= CONTEXTS

    def embed(self, x: Tensor, is_token: Tensor) -> Tensor:
        lengths = is_token.sum(dim=1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, state = self.rnn(packed)
        if self._pool == "last":
            last = state[0] if isinstance(state, tuple) else state
            return torch.cat(list(last[-self._directions :]), dim=1)
        states, _ = pad_packed_sequence(outputs, batch_first=True)
        if self._pool == "attention":
            return self._attend(states, is_token)
        return POOLS[self._pool](states, is_token)

    def _attend(self, states: Tensor, is_token: Tensor) -> Tensor:
        scores = self.contexts(torch.tanh(self.project(states)))  # (B, T, contexts)
        weights = scores.masked_fill(~is_token.unsqueeze(2), -torch.inf).softmax(dim=1)
        return torch.einsum("btc,bth->bch", weights, states).flatten(1)


class _Hierarchical(SentenceNetwork):
    """Stacked convolutions, whose vector is the maxima of each layer."""

    def __init__(self, vocabulary: int, hidden: int, layers: int = HIERARCHY) -> None:
        super().__init__(vocabulary)
        widths = [WIDTH, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList(_convolution(width, hidden) for width in widths)
        self.dim = hidden * layers

    def embed(self, x: Tensor, is_token: Tensor) -> Tensor:
        parts = []
        for layer in self.layers:
            x = _convolve(layer, x, is_token).relu()
            parts.append(POOLS["maxpool"](x, is_token))
        return torch.cat(parts, dim=1)


class _Gated(SentenceNetwork):
    """Gated convolutions (Dauphin et al. 2017), with maximum pooling."""

    def __init__(self, vocabulary: int, hidden: int, layers: int = GATED) -> None:
        super().__init__(vocabulary)
        self.project = nn.Linear(WIDTH, hidden)
        self.layers = nn.ModuleList(_convolution(hidden, 2 * hidden) for _ in range(layers))
        self.dim = hidden

    def embed(self, x: Tensor, is_token: Tensor) -> Tensor:
        x = self.project(x + sinusoids(x.shape[1], WIDTH).to(x.device, x.dtype))
        for layer in self.layers:
            x = (x + functional.glu(_convolve(layer, x, is_token), dim=2)) * 0.5**0.5
        return POOLS["maxpool"](x, is_token)


def _convolution(inputs: int, outputs: int) -> nn.Conv1d:
    return nn.Conv1d(inputs, outputs, KERNEL, padding=KERNEL // 2)


def _convolve(layer: nn.Module, x: Tensor, is_token: Tensor) -> Tensor:
    # Padding is zero, like the positions before a sentence.
    outputs: Tensor = layer(x.masked_fill(~is_token.unsqueeze(2), 0).transpose(1, 2))
    return outputs.transpose(1, 2)


class _Kind(NamedTuple):
    """A network's constructor, and how many hidden widths its dim has."""

    make: Callable[..., SentenceNetwork]
    times: int

    def new(self, vocabulary: int, dim: int, **more: int) -> dict[str, Tensor]:
        return dict(self.make(vocabulary, dim // self.times, **more).state_dict())

    def build(self, tensors: Tensors, *, dropout: float) -> SentenceNetwork:
        depth = {name.split(".")[1] for name in tensors if name.startswith("layers.")}
        depth |= {n for n in tensors if n.startswith(RECURRENT) and not n.endswith("_reverse")}
        sizing_tensor = f"{RECURRENT}0" if f"{RECURRENT}0" in tensors else "layers.0.bias"
        for name in ("embed_tokens.weight", sizing_tensor):
            if name not in tensors or not tensors[name].dim():
                raise ValueError(f"lacks the tensor {name}")
        hidden = tensors[sizing_tensor].shape[-1] // (2 if self.make is _Gated else 1)
        with torch.device("meta"):
            network = self.make(len(tensors["embed_tokens.weight"]), hidden, layers=len(depth))
        adopt(network, tensors)
        network.dropout = dropout
        return network


def _recurrent(cell: str, *, both: bool, pool: str) -> _Kind:
    times = (1 + both) * (CONTEXTS if pool == "attention" else 1)
    return _Kind(partial(_Recurrent, cell=cell, both=both, pool=pool), times)


KINDS = {
    "lstm-last": _recurrent("lstm", both=False, pool="last"),
    "gru-last": _recurrent("gru", both=False, pool="last"),
    "bigru-last": _recurrent("gru", both=True, pool="last"),
    "bilstm-last": _recurrent("lstm", both=True, pool="last"),
    "bilstm-mean": _recurrent("lstm", both=True, pool="mean"),
    "attention": _recurrent("lstm", both=True, pool="attention"),
    "hierarchical": _Kind(_Hierarchical, HIERARCHY),
    "gated": _Kind(_Gated, 1),
}
