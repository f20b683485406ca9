"""The BiLSTM in int8: products of integers, everything between them in float32, compiled by Numba.

Weights have a scale for each output, activations one for each token, found as they are computed
(symmetric quantisation, as in Jacob et al. 2018, "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference", section 2). So a sentence's vector does not depend on
its batch. Axes: ``B`` sentences of ``T`` tokens, ``H`` hidden units, ``G = 4 H`` gates in torch's
order (input, forget, cell, output), ``K`` inputs of a layer.

LLVM makes vector instructions of the loops: each is over whole arrays and in a function of its own,
and tanh is a quotient of polynomials.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn

from encoder.laser.networks import BiLSTM
from encoder.torch_private import int8_product
from miner.compiling import compiled, compiled_part
from miner.instructions import CHOSEN
from miner.knn.core.int8 import multiplier

# Nothing is reordered or fused: vectors are the same on every CPU.
_compile = compiled(fastmath={"nnan", "nsz"})
_part = compiled_part(fastmath={"nnan", "nsz"})
F = np.float32
ONE_HALF, LIMIT, LEVELS, TINY = F(0.5), F(7.9), F(127), F(1e-30)
# tanh(x) = x P(x²) / Q(x²) to 3e-7: the coefficients of Eigen's ptanh.
P0, P1, P2 = F(4.89352455891786e-03), F(6.37261928875436e-04), F(1.48572235717979e-05)
P3, P4 = F(5.12229709037114e-08), F(-8.60467152213735e-11)
P5, P6 = F(2.00018790482477e-13), F(-2.76076847742355e-16)
Q0, Q1 = F(4.89352518554385e-03), F(2.26843463243900e-03)
Q2, Q3 = F(1.18534705686654e-04), F(1.19825839466702e-06)


@njit(inline="always")
def _tanh(x: Any) -> Any:
    x = min(max(x, -LIMIT), LIMIT)
    s = x * x
    numerator = ((((((P6 * s + P5) * s + P4) * s + P3) * s + P2) * s + P1) * s + P0) * x
    return numerator / (((Q3 * s + Q2) * s + Q1) * s + Q0)


@_part
def quantize_row(row: Any, codes: Any) -> Any:
    """Write a row as int8 codes and return their scale: ``row`` is about ``codes * scale``."""
    top = F(0)
    for k in range(len(row)):
        top = max(top, abs(row[k]))
    scale = max(top, TINY) / LEVELS
    inverse = F(1) / scale
    for k in range(len(row)):  # rounds to nearest: the shift makes all numbers positive
        codes[k] = np.int8(np.int32(row[k] * inverse + F(128.5)) - np.int32(128))
    return scale


@_compile
def quantize_rows(rows: Any, codes: Any, scales: Any) -> None:
    """Quantize rows of float32 (N, K): codes int8 (N, K), scales float32 (N,)."""
    for n in range(len(rows)):
        scales[n] = quantize_row(rows[n], codes[n])


@_part
def _add_products(gates: Any, inputs: Any, hidden: Any, bias: Any) -> None:
    from_inputs, scale, input_scales = inputs
    from_hidden, last_scale, hidden_scales = hidden
    for g in range(len(gates)):
        gates[g] = (
            F(from_inputs[g]) * (scale * input_scales[g])
            + F(from_hidden[g]) * (last_scale * hidden_scales[g])
            + bias[g]
        )


@_part
def _sigmoids(gates: Any) -> None:
    for g in range(len(gates)):
        gates[g] = ONE_HALF * _tanh(ONE_HALF * gates[g]) + ONE_HALF


@_part
def _update(cells: Any, enters: Any, stays: Any, candidates: Any) -> None:
    for h in range(len(cells)):
        cells[h] = stays[h] * cells[h] + enters[h] * _tanh(candidates[h])


@_part
def _expose(hidden: Any, leaves: Any, cells: Any) -> None:
    for h in range(len(hidden)):
        hidden[h] = leaves[h] * _tanh(cells[h])


@_compile
def lstm_step(
    scales: Any, fixed: Any, products: Any, states: Any, gates: Any, out: Any, first: Any
) -> None:
    """Do one step of an LSTM for B sentences, from the integer products on.

    ``scales`` (B,) are the input tokens'; ``fixed`` are the scales of a layer's two weights, and
    its biases, (G,) each. ``products`` are those of codes with these weights, int32 (B, G);
    ``gates`` is room for G numbers. Written are ``states``: the cells', float32 (B, H), and the
    hidden ones as int8 (B, H) with scales (B,); and the latter to the columns of ``out``, float32
    (B, D), from ``first`` on.
    """
    input_scales, hidden_scales, bias = fixed
    from_inputs, from_hidden = products
    state, last, last_scales = states
    size = state.shape[1]
    for b in range(len(state)):
        inputs = from_inputs[b], scales[b], input_scales
        _add_products(gates, inputs, (from_hidden[b], last_scales[b], hidden_scales), bias)
        _sigmoids(gates[: 2 * size])
        _sigmoids(gates[3 * size :])
        _update(state[b], gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size])
        hidden = out[b, first : first + size]
        _expose(hidden, gates[3 * size :], state[b])
        last_scales[b] = quantize_row(hidden, last[b])


# Multiplies rows of codes by weights: int8 (B, K) to int32 (B, G).
Product = Callable[[NDArray[np.int8]], NDArray[np.int32]]
# Of one direction of a layer: of inputs, of hidden states, and ``fixed`` of ``lstm_step``.
Weights = tuple[Product, Product, tuple[NDArray[np.float32], ...]]


class Int8BiLSTM(nn.Module):
    """Computes nearly the same as a ``BiLSTM``, in a third of the time where int8 is fast."""

    def __init__(self, network: BiLSTM) -> None:
        super().__init__()
        self.dim = network.dim
        self._table, self._table_scales = _quantized(network.embed_tokens.weight)
        self._layers = [
            [_weights(network.lstm, f"l{layer}{direction}") for direction in network.directions]
            for layer in range(network.lstm.num_layers)
        ]

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors float32 (B, D) of token ids (B, T), longest first, -1 after the end of others."""
        ended = ids.t() < 0
        active = (~ended).sum(dim=1).tolist()
        steps = ids.t().clamp(min=0)
        x, scales = self._table[steps], self._table_scales[steps]  # (T, B, K), (T, B)
        for number, directions in enumerate(self._layers):
            outputs = torch.zeros(*steps.shape, self.dim)
            for place, weights in enumerate(directions):
                _run(weights, x, scales, active, out=outputs, place=place)
            if number + 1 < len(self._layers):
                x, scales = _quantized(outputs.flatten(0, 1))
                x, scales = x.view(outputs.shape), scales.view(steps.shape)
        return outputs.masked_fill_(ended.unsqueeze(-1), -torch.inf).amax(dim=0)


def _run(
    weights: Weights, x: Tensor, scales: Tensor, active: list[int], *, out: Tensor, place: int
) -> None:
    """Write the columns of one direction, 0 or 1, of a layer to ``out``, float32 (T, B, D).

    At step t only the first ``active[t]`` sentences have a token.
    """
    length, batch, _ = out.shape
    of_inputs, of_hidden, fixed = weights
    gates = len(fixed[-1])
    hidden = gates // 4
    last = np.zeros((batch, hidden), np.int8)  # hidden states of the step before
    states = np.zeros((batch, hidden), np.float32), last, np.zeros(batch, np.float32)
    room, codes = np.empty(gates, np.float32), x.numpy()
    scales_of, out_of = scales.numpy(), out.numpy()
    for t in reversed(range(length)) if place else range(length):
        n = active[t]
        products = of_inputs(codes[t, :n]), of_hidden(last[:n])
        moving = tuple(part[:n] for part in states)
        lstm_step(scales_of[t], fixed, products, moving, room, out_of[t], place * hidden)


def _weights(lstm: nn.LSTM, suffix: str) -> Weights:
    inputs, input_scales = _quantized(getattr(lstm, f"weight_ih_{suffix}"))
    hidden, hidden_scales = _quantized(getattr(lstm, f"weight_hh_{suffix}"))
    bias = getattr(lstm, f"bias_ih_{suffix}") + getattr(lstm, f"bias_hh_{suffix}")
    fixed = input_scales.numpy(), hidden_scales.numpy(), bias.numpy()
    return _product(inputs), _product(hidden), fixed


def _product(weights: Tensor) -> Product:
    if CHOSEN:
        return multiplier(weights.numpy())
    return lambda rows: int8_product(torch.from_numpy(rows), weights.t()).numpy()


def _quantized(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (N, K) as int8 with a scale for each, float32 (N,)."""
    codes = torch.empty(rows.shape, dtype=torch.int8)
    scales = torch.empty(len(rows))
    quantize_rows(rows.numpy(), codes.numpy(), scales.numpy())
    return codes, scales
