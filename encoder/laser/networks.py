"""LASER's BiLSTM (LASER1 and LASER2) and transformer (LASER3).

Artetxe & Schwenk 2019, section 3, and Heffernan et al. 2022, "Bitext Mining Using Distilled
Sentence Representations". Axes: ``B`` sentences, ``T`` tokens, ``D`` outputs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Tensors = Mapping[str, Tensor]  # the tensors of a network by name
Config = Mapping[str, Any]
Map = Callable[[Tensor], Tensor]

PAD = 1  # the id of padding; fairseq numbers positions from the next number on
ACTIVATIONS = {"relu": functional.relu, "gelu": functional.gelu}
# Names that fairseq saves next to the weights.
BOOKKEEPING = {"version", "embed_positions._float_tensor", "embed_positions.weights"}


class BiLSTM(nn.Module):
    """A network of LSTMs in both directions, or one, with max pooling.

    ``tensors`` have LASER's names. Training drops the share ``dropout`` of each layer's inputs. The
    mode, sharing and errors are as in ``adopt``. ``dim`` is D, and ``vocabulary`` a count.
    """

    def __init__(self, tensors: Tensors, *, dropout: float = 0.0) -> None:
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
        """Embed B sentences of token ids (B, T) as vectors (B, D).

        Ids are int64 below ``vocabulary``, also in padding. ``lengths``, int64 (B,), from 1 to T,
        which one must have, count the ids before padding, and None means T each.
        """
        x = functional.dropout(self.embed_tokens(ids), self._dropout, self.training)
        if lengths is None:
            outputs, _ = self.lstm(x)
        else:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, _ = pad_packed_sequence(self.lstm(packed)[0], True, padding_value=-torch.inf)
        return outputs.amax(dim=1)


def adopt(module: nn.Module, tensors: Tensors) -> None:
    """Set a module's parameters to tensors, by name, converted to float32.

    Contiguous float32 tensors are shared. The module gets evaluation mode, without gradients.

    Raises:
        ValueError: A tensor is missing or unknown, or has another shape than the parameter.
    """
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
        raise ValueError(f"has {name} of shape {shape}; expected 2 axes, not empty")
    return shape


def _first(x: Tensor, is_token: Tensor | None) -> Tensor:
    return x[:, 0]


def _maximum(x: Tensor, is_token: Tensor | None) -> Tensor:
    if is_token is not None:
        x = x.masked_fill(~is_token.unsqueeze(2), -torch.inf)
    return x.amax(dim=1)


def _mean(x: Tensor, is_token: Tensor | None) -> Tensor:
    if is_token is None:
        return x.mean(dim=1)
    return x.masked_fill(~is_token.unsqueeze(2), 0).sum(dim=1) / is_token.sum(dim=1, keepdim=True)


POOLS = {"cls": _first, "maxpool": _maximum, "mean": _mean}  # (B, T, D) to (B, D)


class Transformer(nn.Module):
    """The transformer encoder of fairseq, whose vectors aren't normalised.

    ``tensors`` have fairseq's names, and ``config`` is its ``cfg.model``. The network is in float32
    and evaluation mode, without gradients, and shares float32 tensors. Training drops the share
    ``dropout`` of embeddings and of each block's outputs. The attribute ``capacity`` is the highest
    T, or None. ValueError says that a tensor or a setting is missing or does not fit.
    """

    def __init__(self, tensors: Tensors, config: Config, *, dropout: float = 0.0) -> None:
        super().__init__()
        weights = {name: tensor for name, tensor in tensors.items() if name not in BOOKKEEPING}
        self.vocabulary, self.dim = _sizes(weights, "embed_tokens.weight")
        inner, _ = _sizes(weights, "layers.0.fc1.weight")
        layers = sum(name.endswith(".fc1.weight") for name in weights)
        self._pool = _choice(config, "sentemb_criterion", POOLS)
        activation = _choice(config, "activation_fn", ACTIVATIONS)
        heads = read_setting(config, "encoder_attention_heads")
        if not isinstance(heads, int) or heads < 1 or self.dim % heads:
            raise ValueError(
                f"has encoder_attention_heads {heads!r} for {self.dim} dimensions, which they do "
                "not divide"
            )
        if self._pool is _first and not read_setting(config, "prepend_bos"):
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
            before = bool(read_setting(config, "encoder_normalize_before"))
            kind = {"before": before, "activation": activation, "dropout": dropout}
            sizes = self.dim, inner, heads
            self.layers = nn.ModuleList(Layer(*sizes, **kind) for _ in range(layers))
            if "layer_norm.weight" in weights:
                self.layer_norm = nn.LayerNorm(self.dim)
        adopt(self, weights)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed token ids (B, T) as vectors (B, D), as ``BiLSTM.forward``."""
        is_token = None if lengths is None else token_mask(lengths, ids.shape[1], ids.device)
        return self._pool(self.states(ids, is_token), is_token)

    def states(
        self,
        ids: Tensor,
        is_token: Tensor | None,
        *,
        parts: Sequence[int] = (),
        causal: bool = False,
    ) -> Tensor:
        """Return the last layer's vectors of all tokens, (B, T, D).

        ``ids`` are int64 (B, T). ``is_token``, bool (B, T), is false for padding, or None without
        padding. ``parts`` are lengths, with the sum T, of parts that each have positions from 0 on,
        by default one part. If ``causal``, tokens attend only to themselves and earlier tokens.
        """
        positions = [self._positions(length) for length in parts or (ids.shape[1],)]
        x = self.embed_tokens(ids) * self._scale + torch.cat(positions)
        if hasattr(self, "layernorm_embedding"):
            x = self.layernorm_embedding(x)
        x = functional.dropout(x, self._dropout, self.training)
        mask = None if is_token is None else is_token[:, None, None]
        if causal:
            before = torch.ones(ids.shape[1], ids.shape[1], device=ids.device).tril().bool()
            mask = before if mask is None else mask & before
        for layer in self.layers:
            x = layer(x, mask)
        return self.layer_norm(x) if hasattr(self, "layer_norm") else x

    def _positions(self, length: int) -> Tensor:
        if hasattr(self, "embed_positions"):
            return self.embed_positions.weight[PAD + 1 : PAD + 1 + length]
        like = self.embed_tokens.weight
        return sinusoids(length, self.dim).to(like.device, like.dtype)


class Layer(nn.Module):
    """A layer of fairseq's ``TransformerEncoder``, with its parameter names.

    ``dim`` is D, a multiple of ``heads``. ``inner`` is the width between the two linear maps, where
    ``activation`` is applied. Norms precede the blocks if ``before``, or else follow them. Training
    drops the share ``dropout`` of each block's outputs.
    """

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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map token vectors (B, T, D) to new ones of the same shape.

        ``mask``, bool, is broadcast to (B, H, T, T) for H heads. It is true where tokens attend,
        and None if all attend to all.
        """
        if self._before:
            x = x + self._attend(self.self_attn_layer_norm(x), mask)
            return x + self._feed(self.final_layer_norm(x))
        x = self.self_attn_layer_norm(x + self._attend(x, mask))
        return self.final_layer_norm(x + self._feed(x))

    def _feed(self, x: Tensor) -> Tensor:
        fed = self.fc2(self._activation(self.fc1(x)))
        return functional.dropout(fed, self._dropout, self.training)

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = (
            self.self_attn[name](x).unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        is_slow = q.dtype == torch.bfloat16 and q.device.type == "cpu" and q.requires_grad
        with sdpa_kernel(SDPBackend.MATH) if is_slow else nullcontext():  # (B, H, T, D / H)
            mixture = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        attended = self.self_attn["out_proj"](mixture.transpose(1, 2).flatten(2))
        return functional.dropout(attended, self._dropout, self.training)


def token_mask(lengths: Tensor, count: int, device: torch.device) -> Tensor:
    """Return a mask, bool (B, ``count``), true below ``lengths`` (B,)."""
    return torch.arange(count, device=device) < lengths.to(device).unsqueeze(1)


def sinusoids(length: int, dim: int) -> Tensor:
    """Return vectors of fairseq's positions from 2 on, (length, dim >= 4)."""
    half = dim // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10000) / (half - 1)))
    angles = torch.arange(PAD + 1, PAD + 1 + length).unsqueeze(1) * rates
    return functional.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, dim % 2))


def read_setting(config: Config, name: str) -> Any:  # noqa: ANN401
    """Return a setting in the mapping ``config`` by its name.

    Raises:
        ValueError: It is missing; the message lacks the file's name.
    """
    if name not in config:
        raise ValueError(f"lacks the setting {name}")
    return config[name]


def _choice(config: Config, name: str, choices: Mapping[str, Any]) -> Any:  # noqa: ANN401
    value = read_setting(config, name)
    if value not in choices:
        raise ValueError(f"has {name} {value!r}; expected one of {', '.join(choices)}")
    return choices[value]
