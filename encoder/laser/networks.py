"""LASER's networks: a BiLSTM for LASER1 and LASER2, fairseq's transformer encoder for LASER3.

Artetxe & Schwenk 2019, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual
Transfer and Beyond", section 3; Heffernan, Çelebi & Schwenk 2022, "Bitext Mining Using Distilled
Sentence Representations for Low-Resource Languages". Axes: ``B`` sentences, ``T`` tokens, ``D``
outputs, ``H`` heads.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Tensors = Mapping[str, Tensor]  # of a network, by name
Config = Mapping[str, Any]
Map = Callable[[Tensor], Tensor]

PAD = 1  # the id of padding, after which fairseq numbers positions
ACTIVATIONS = {"relu": functional.relu, "gelu": functional.gelu}
# What fairseq saves beside the weights.
BOOKKEEPING = {"version", "embed_positions._float_tensor", "embed_positions.weights"}


class BiLSTM(nn.Module):
    """Embeds token ids (B, T) as the maximum over T of the last layer's outputs: (B, D)."""

    def __init__(self, tensors: Tensors, *, dropout: float = 0.0) -> None:
        """Take the weights as LASER names them; its sizes are theirs.

        ``dropout`` is the share of what enters each layer that is left out in training. A
        ValueError names a tensor that does not fit the others.
        """
        super().__init__()
        vocabulary, width = _sizes(tensors, "embed_tokens.weight")
        hidden = _sizes(tensors, "lstm.weight_hh_l0")[1]
        layers = sum(name.startswith("lstm.weight_hh_l") for name in tensors)
        both = "lstm.weight_hh_l0_reverse" in tensors
        self.directions = ("", "_reverse") if both else ("",)
        layers //= len(self.directions)
        with torch.device("meta"):
            self.embed_tokens = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, hidden, layers, bidirectional=both, batch_first=True)
        adopt(self, tensors)
        self.vocabulary, self.dim = vocabulary, hidden * len(self.directions)
        self.lstm.dropout = self._dropout = dropout

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed sentences as (B, D), of one length; or of ``lengths`` (B,), and padded to T."""
        x = functional.dropout(self.embed_tokens(ids), self._dropout, self.training)
        if lengths is None:
            outputs, _ = self.lstm(x)
        else:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, _ = pad_packed_sequence(self.lstm(packed)[0], True, padding_value=-torch.inf)
        return outputs.amax(dim=1)


def adopt(module: nn.Module, tensors: Tensors) -> None:
    """Make tensors a module's parameters, as float32; a ValueError names one that does not fit."""
    expected = module.state_dict()
    for name in expected.keys() - tensors.keys():
        raise ValueError(f"lacks the tensor {name}")
    for name in sorted(tensors.keys() - expected.keys()):
        raise ValueError(f"has an unknown tensor {name}")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise ValueError(
                f"has {name} of shape {tuple(tensor.shape)}; "
                f"the other tensors need {tuple(expected[name].shape)}"
            )
    floats = {name: tensor.float().contiguous() for name, tensor in tensors.items()}
    module.load_state_dict(floats, assign=True)
    module.requires_grad_(False).eval()


def _sizes(tensors: Tensors, name: str) -> tuple[int, ...]:
    if name not in tensors:
        raise ValueError(f"lacks the tensor {name}")
    shape = tuple(tensors[name].shape)
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"has {name} of shape {shape}; expected 2 axes")
    return shape


def _first(x: Tensor, there: Tensor | None) -> Tensor:
    return x[:, 0]


def _maximum(x: Tensor, there: Tensor | None) -> Tensor:
    return (x if there is None else x.masked_fill(~there.unsqueeze(2), -torch.inf)).amax(dim=1)


def _mean(x: Tensor, there: Tensor | None) -> Tensor:
    if there is None:
        return x.mean(dim=1)
    return x.masked_fill(~there.unsqueeze(2), 0).sum(dim=1) / there.sum(dim=1, keepdim=True)


POOLS = {"cls": _first, "maxpool": _maximum, "mean": _mean}  # (B, T, D) to (B, D)


class Transformer(nn.Module):
    """Embeds token ids (B, T) as unnormalised vectors (B, D)."""

    def __init__(self, tensors: Tensors, config: Config, *, dropout: float = 0.0) -> None:
        """Take the weights and the configuration (``cfg.model``) as fairseq names them.

        ``dropout`` is the share of the embeddings and of each block's output that is left out in
        training. A ValueError names a tensor or a setting that does not fit the others.
        """
        super().__init__()
        weights = {name: tensor for name, tensor in tensors.items() if name not in BOOKKEEPING}
        for name in ("embed_tokens.weight", "layers.0.fc1.weight"):
            if name not in weights or weights[name].dim() != 2:
                raise ValueError(f"lacks the tensor {name}")
        self.vocabulary, self.dim = weights["embed_tokens.weight"].shape
        layers = sum(name.endswith(".fc1.weight") for name in weights)
        self._pool = _choice(config, "sentemb_criterion", POOLS)
        activation = _choice(config, "activation_fn", ACTIVATIONS)
        heads = _setting(config, "encoder_attention_heads")
        if not isinstance(heads, int) or heads < 1 or self.dim % heads:
            raise ValueError(f"has encoder_attention_heads {heads!r} for {self.dim} dimensions")
        if self._pool is _first and not _setting(config, "prepend_bos"):
            raise ValueError("is pooled at <s> (sentemb_criterion cls) but has no prepend_bos")
        self._dropout = dropout
        self._scale = 1.0 if config.get("no_scale_embedding") else math.sqrt(self.dim)
        learned = weights.get("embed_positions.weight")
        if learned is None and config.get("encoder_learned_pos"):
            raise ValueError("lacks the tensor embed_positions.weight")
        self.capacity = None if learned is None else len(learned) - PAD - 1  # tokens
        with torch.device("meta"):
            self.embed_tokens = nn.Embedding(self.vocabulary, self.dim)
            if learned is not None:
                self.embed_positions = nn.Embedding(*learned.shape)
            if "layernorm_embedding.weight" in weights:
                self.layernorm_embedding = nn.LayerNorm(self.dim)
            sizes = self.dim, len(weights["layers.0.fc1.weight"]), heads
            before = bool(_setting(config, "encoder_normalize_before"))
            kind = {"before": before, "activation": activation, "dropout": dropout}
            self.layers = nn.ModuleList(Layer(*sizes, **kind) for _ in range(layers))
            if "layer_norm.weight" in weights:
                self.layer_norm = nn.LayerNorm(self.dim)
        adopt(self, weights)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed sentences as (B, D), of one length; or of ``lengths`` (B,), and padded to T."""
        there = None if lengths is None else within(lengths, ids.shape[1], ids.device)
        return self._pool(self.states(ids, there), there)

    def states(
        self, ids: Tensor, there: Tensor | None, *, parts: Sequence[int] = (), causal: bool = False
    ) -> Tensor:
        """Return the last layer's vectors of all tokens (B, T, D), of ids int64 (B, T).

        ``there``, bool (B, T), is false where there is padding. ``parts`` are numbers of tokens, T
        together, each of which has positions from 0 on. If ``causal``, none attends to a later one.
        """
        positions = [self._positions(length) for length in parts or (ids.shape[1],)]
        x = self.embed_tokens(ids) * self._scale + torch.cat(positions)
        if hasattr(self, "layernorm_embedding"):
            x = self.layernorm_embedding(x)
        x = functional.dropout(x, self._dropout, self.training)
        seen = None if there is None else there[:, None, None]
        if causal:
            before = torch.ones(ids.shape[1], ids.shape[1], device=ids.device).tril().bool()
            seen = before if seen is None else seen & before
        for layer in self.layers:
            x = layer(x, seen)
        return self.layer_norm(x) if hasattr(self, "layer_norm") else x

    def _positions(self, length: int) -> Tensor:
        """Return vectors (T, D) of positions, which fairseq numbers from ``PAD`` + 1 on."""
        if hasattr(self, "embed_positions"):
            return self.embed_positions.weight[PAD + 1 : PAD + 1 + length]
        like = self.embed_tokens.weight
        return sinusoids(length, self.dim).to(like.device, like.dtype)


class Layer(nn.Module):
    """A layer of fairseq's ``TransformerEncoder``, under its parameter names."""

    def __init__(
        self, dim: int, inner: int, heads: int, *, before: bool, activation: Map, dropout: float = 0
    ) -> None:
        super().__init__()
        self.self_attn = nn.ModuleDict(
            {name: nn.Linear(dim, dim) for name in ("k_proj", "v_proj", "q_proj", "out_proj")}
        )
        self.self_attn_layer_norm = nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.final_layer_norm = nn.LayerNorm(dim)
        self._heads, self._before = heads, before
        self._activation, self._dropout = activation, dropout

    def forward(self, x: Tensor, seen: Tensor | None = None) -> Tensor:
        """Map (B, T, D); where ``seen``, broadcast to (B, H, T, T), is false, no token attends."""
        if self._before:
            x = x + self._attend(self.self_attn_layer_norm(x), seen)
            return x + self._feed(self.final_layer_norm(x))
        x = self.self_attn_layer_norm(x + self._attend(x, seen))
        return self.final_layer_norm(x + self._feed(x))

    def _feed(self, x: Tensor) -> Tensor:
        fed = self.fc2(self._activation(self.fc1(x)))
        return functional.dropout(fed, self._dropout, self.training)

    def _attend(self, x: Tensor, seen: Tensor | None) -> Tensor:
        q, k, v = (
            self.self_attn[name](x).unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        with _kernel(q):  # (B, H, T, D / H)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        attended = self.self_attn["out_proj"](mixed.transpose(1, 2).flatten(2))
        return functional.dropout(attended, self._dropout, self.training)


def _kernel(q: Tensor) -> AbstractContextManager[None]:
    """Choose plain products where the fused ones' gradient takes three to five times as long."""
    slow = q.dtype == torch.bfloat16 and q.device.type == "cpu" and q.requires_grad
    return sdpa_kernel(SDPBackend.MATH) if slow else nullcontext()


def within(lengths: Tensor, count: int, device: torch.device) -> Tensor:
    """Return which of ``count`` tokens sentences of these lengths (B,) have: bool (B, T)."""
    return torch.arange(count, device=device) < lengths.to(device).unsqueeze(1)


def sinusoids(length: int, dim: int) -> Tensor:
    """Return vectors of positions, as fairseq numbers and computes them: float32 (T, D)."""
    half = dim // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10000) / (half - 1)))
    angles = torch.arange(PAD + 1, PAD + 1 + length).unsqueeze(1) * rates
    return functional.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, dim % 2))


def _setting(config: Config, name: str) -> Any:  # noqa: ANN401
    if name not in config:
        raise ValueError(f"lacks the setting {name}")
    return config[name]


def _choice(config: Config, name: str, choices: Mapping[str, Any]) -> Any:  # noqa: ANN401
    found = _setting(config, name)
    if found not in choices:
        raise ValueError(f"has {name} {found!r}; expected one of {', '.join(choices)}")
    return choices[found]
