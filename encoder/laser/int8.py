"""The BiLSTM in int8, compiled by Numba.

Products are of integers, and everything between them is float32. Weights have a scale per output,
activations one per token (symmetric quantisation, as in Jacob et al. 2018, section 2). So a vector
does not depend on its batch. Axes: ``B`` sentences of ``T`` tokens, ``H`` hidden units, ``G = 4 H``
gates in torch's order (input, forget, cell, output), ``K`` inputs of a layer.
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
from miner.knn.core.products import multiplier

# Nothing is reordered or fused, so vectors are the same on every CPU.
_compile = compiled(fastmath={"nnan", "nsz"})
_part = compiled_part(fastmath={"nnan", "nsz"})
F = np.float32
ONE_HALF = F(0.5)
LIMIT = F(7.9)  # beyond which tanh is constant
LARGEST = 63  # code of weights and activations: AVX2 needs 1.6 times the time for larger ones
LEVELS = F(LARGEST)
TINY = F(1e-30)  # the least divisor
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
def _quantize_row(row: Any, codes: Any) -> Any:
    top = F(0)
    for k in range(len(row)):
        top = max(top, abs(row[k]))
    scale = max(top, TINY) / LEVELS
    inverse = F(1) / scale
    for k in range(len(row)):  # rounds to nearest, because the shift makes all numbers positive
        codes[k] = np.int8(np.int32(row[k] * inverse + (LEVELS + ONE_HALF)) - np.int32(LARGEST))
    return scale


@_compile
def quantize_rows(rows: Any, codes: Any, scales: Any) -> None:
    """Quantise rows, float32 (N, K), into ``codes`` and ``scales`` in place.

    Codes are int8 (N, K), from -63 to 63. A row is about its codes times its scale, float32 (N,).
    """
    for n in range(len(rows)):
        scales[n] = _quantize_row(rows[n], codes[n])


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
    """Compute one step of an LSTM for B sentences, after the integer products.

    Args:
        scales: the scales of the input tokens' codes, float32 (B,).
        fixed: the scales of a layer's input and hidden weights, and its biases, float32 (G,) each.
        products: of codes of inputs and of hidden states with the weights, int32 (B, G) each.
        states: the cells' states, float32 (B, H), the hidden states, int8 (B, H), and their scales,
            float32 (B,), of the step before; receives the new ones.
        gates: working memory, float32 (G,).
        out: float32 (B, D), receives the hidden states in H columns from ``first`` on.
        first: the first such column.
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
        last_scales[b] = _quantize_row(hidden, last[b])


# Multiplies rows of codes, int8 (B, K), by weights, to int32 (B, G).
Product = Callable[[NDArray[np.int8]], NDArray[np.int32]]
# Products with inputs and hidden states, and ``fixed`` of ``lstm_step``, of a layer's direction.
Weights = tuple[Product, Product, tuple[NDArray[np.float32], ...]]


class Int8BiLSTM(nn.Module):
    """A copy, with int8 products and the same ``dim``, of a network on a CPU.

    ``network`` has no gradients, as from ``adopt``. ``forward`` takes ids, but no lengths.
    """

    def __init__(self, network: BiLSTM) -> None:
        super().__init__()
        self.dim, self.name = network.dim, f"int8-{LARGEST}"
        self._table, self._table_scales = _quantize(network.embed_tokens.weight)
        self._layers = [
            [_weights(network.lstm, f"l{layer}{direction}") for direction in network.directions]
            for layer in range(network.lstm.num_layers)
        ]

    def forward(self, ids: Tensor) -> Tensor:
        """Embed B sentences as float32 (B, D).

        ``ids`` are int64 (B, T), in descending order of length, with -1 after the ends.
        """
        is_padding = ids.t() < 0
        active = (~is_padding).sum(dim=1).tolist()
        steps = ids.t().clamp(min=0)
        x, scales = self._table[steps], self._table_scales[steps]  # (T, B, K), (T, B)
        for layer, directions in enumerate(self._layers):
            outputs = torch.zeros(*steps.shape, self.dim)
            for direction, weights in enumerate(directions):
                _run(weights, x, scales, active, out=outputs, direction=direction)
            if layer + 1 < len(self._layers):
                x, scales = _quantize(outputs.flatten(0, 1))
                x, scales = x.view(outputs.shape), scales.view(steps.shape)
        return outputs.masked_fill_(is_padding.unsqueeze(-1), -torch.inf).amax(dim=0)


def _run(
    weights: Weights, x: Tensor, scales: Tensor, active: list[int], *, out: Tensor, direction: int
) -> None:
    length, batch, _ = out.shape
    multiply_inputs, multiply_hidden, fixed = weights
    gates = len(fixed[-1])
    hidden = gates // 4
    last = np.zeros((batch, hidden), np.int8)  # hidden states of the previous step
    states = np.zeros((batch, hidden), np.float32), last, np.zeros(batch, np.float32)
    room, codes, start = np.empty(gates, np.float32), x.numpy(), direction * hidden
    step_scales, step_outputs = scales.numpy(), out.numpy()
    for t in reversed(range(length)) if direction else range(length):
        n = active[t]  # only these sentences have a token at step t
        products = multiply_inputs(codes[t, :n]), multiply_hidden(last[:n])
        active_states = tuple(state[:n] for state in states)
        lstm_step(step_scales[t], fixed, products, active_states, room, step_outputs[t], start)


def _weights(lstm: nn.LSTM, suffix: str) -> Weights:
    inputs, input_scales = _quantize(getattr(lstm, f"weight_ih_{suffix}"))
    hidden, hidden_scales = _quantize(getattr(lstm, f"weight_hh_{suffix}"))
    bias = getattr(lstm, f"bias_ih_{suffix}") + getattr(lstm, f"bias_hh_{suffix}")
    fixed = input_scales.numpy(), hidden_scales.numpy(), bias.numpy()
    return _product(inputs), _product(hidden), fixed


def _product(weights: Tensor) -> Product:
    if CHOSEN:
        return multiplier(weights.numpy(), LARGEST)
    return lambda rows: int8_product(torch.from_numpy(rows), weights.t()).numpy()


def _quantize(rows: Tensor) -> tuple[Tensor, Tensor]:
    codes = torch.empty(rows.shape, dtype=torch.int8)
    scales = torch.empty(len(rows))
    quantize_rows(rows.numpy(), codes.numpy(), scales.numpy())
    return codes, scales
