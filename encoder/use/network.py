"""The network: two convolutions over neighbouring tokens, their sum, a residual network on that.

The convolutional model of Yang et al. 2019 (Multilingual Universal Sentence Encoder for Semantic
Retrieval, section 2), as its weights are laid out by the package that brings them. A convolution is
computed as what each token makes of each place of the window, summed afterwards. So all of the
first one but the sum depends on the piece alone, and is computed once for each piece: two fifths of
all operations are left. Axes: ``R`` rows, ``P`` pieces, ``S`` sentences.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import Precision
from encoder.rows import Matrix
from encoder.tokenizer import Tokens
from encoder.use import compiled
from encoder.use.compiled import CHANNELS, EMBEDDING, FEATURES, HIDDEN, WIDTHS
from encoder.use.products import Weights
from miner.knn.core.int8 import multiplier

DIM = 512
RESIDUAL = ("d0", "d1", "d2", "d3", "p1", "p3")  # the layers after the sum
PREPARED = FEATURES + sum(WIDTHS) * CHANNELS  # numbers of a prepared piece

# Multiplies rows (R, C): products (R, N), each still times the scale of its row and its column.
Layer = Callable[[Matrix], tuple[NDArray[np.int32] | Matrix, Matrix, Matrix]]


def _float_layer(weights: Matrix) -> Layer:
    multiplied = Weights(weights).multiplied
    ones = np.ones(weights.shape[1], dtype=np.float32)
    return lambda rows: (multiplied(rows), np.ones(len(rows), dtype=np.float32), ones)


def _int8_layer(weights: Matrix) -> Layer:
    """Return a layer in int8: each row, and each column of the weights, has a scale of its own."""
    columns, column_scales = rounded(np.ascontiguousarray(weights.T), np.int8)
    multiplied = multiplier(columns)

    def layer(rows: Matrix) -> tuple[NDArray[np.int32], Matrix, Matrix]:
        codes, scales = rounded(rows, np.int8)
        return multiplied(codes), scales, column_scales

    return layer


class Network:
    """The network in float32 or int8: pieces prepared, tokens summed, sums to vectors.

    In int8 it is the second convolution that is, nearly all that is left for each token.
    """

    def __init__(self, tensors: Mapping[str, Matrix], precision: Precision) -> None:
        self.precision = precision
        self._epsilon = np.float32(tensors["eps"])
        self._project = Weights(_beside(tensors, "proj"))
        self._projected = tuple(_beside(tensors, name) for name in ("proj_b", "ln_g", "ln_b"))
        first, second = (
            [_by_places(tensors[f"w{layer}_{width}"], width) for width in WIDTHS]
            for layer in (1, 2)
        )
        self._first = [*map(Weights, first)]
        self._second = [*map(_int8_layer if precision == "int8" else _float_layer, second)]
        self._biases, self._second_biases = (_beside(tensors, f"b{layer}_") for layer in (1, 2))
        # The last norm's scale is the same for all tokens, and its shift, too.
        self._out = Weights(tensors["ln_g"][:, None] * tensors["cnn_W"])
        self._bias = tensors["ln_b"] @ tensors["cnn_W"] + tensors["cnn_b"]
        self._residual = {name: Weights(tensors[name]).multiplied for name in RESIDUAL}

    def prepare(self, vectors: Matrix) -> Matrix:
        """Return what is the same wherever pieces stand, of their vectors (P, 512).

        That is float32 (P, PREPARED), as ``encoder.use.compiled.first_layer`` has it.
        """
        rows = np.empty((len(vectors), PREPARED), dtype=np.float32)
        rows[:, :EMBEDDING] = vectors
        inputs = rows[:, EMBEDDING:FEATURES]
        bias, scale, shift = self._projected
        projected = self._project.multiplied(rows[:, :EMBEDDING]) + bias
        compiled.normalize(projected, self._epsilon, scale, shift, inputs)
        column = FEATURES
        for branch, layer in enumerate(self._first):
            found = layer.multiplied(inputs[:, _channels(branch)])
            rows[:, column : column + found.shape[1]] = found
            column += found.shape[1]
        return rows

    def sums(self, numbers: NDArray[np.number], scales: Matrix, slots: Tokens, out: Matrix) -> None:
        """Write the sums of the tokens' features to ``out``, float32 (S, 1280).

        The ids of ``slots`` are places among the prepared pieces, ``numbers`` times ``scales``.
        """
        pieces = numbers, scales, slots.ids, slots.offsets
        hidden = np.empty((len(slots.ids), HIDDEN), dtype=np.float32)
        compiled.first_layer(*pieces, self._biases, hidden)
        for branch, layer in enumerate(self._second):
            own = hidden[:, _channels(branch)]
            bias = self._second_biases[_channels(branch)]
            compiled.second_layer(*layer(own), slots.offsets, branch, bias, own)
        compiled.pool(*pieces, hidden, self._epsilon, out)

    def vectors(self, sums: Matrix, counts: NDArray[np.int64]) -> Matrix:
        """Return the vectors of sentences of ``counts`` (S,) tokens by their sums: (S, 512)."""
        layers, number = self._residual, counts[:, None].astype(np.float32)
        mean: Matrix = self._out.multiplied(sums) + number * self._bias
        mean /= np.sqrt(number)
        first = np.maximum(layers["d0"](mean), 0)
        inner = np.maximum(layers["p1"](mean) + layers["d1"](first), 0)
        second = np.maximum(layers["d2"](inner), 0)
        return np.tanh(layers["p3"](inner) + layers["d3"](second))


def rounded(rows: Matrix, kind: type[np.int8 | np.int16]) -> tuple[NDArray[Any], Matrix]:
    """Return rows (R, C) as codes of a kind, and the scale of each row, float32 (R,)."""
    codes = np.empty(rows.shape, dtype=kind)
    scales = np.empty(len(rows), dtype=np.float32)
    compiled.round_rows(rows, codes, np.float32(np.iinfo(kind).max), scales)
    return codes, scales


def _channels(branch: int) -> slice:
    return slice(branch * CHANNELS, (branch + 1) * CHANNELS)


def _beside(tensors: Mapping[str, Matrix], name: str) -> Matrix:
    return np.concatenate([tensors[f"{name}{width}"] for width in WIDTHS], axis=-1)


def _by_places(weights: Matrix, width: int) -> Matrix:
    """Return the weights of a window (W C, C) as those of each of its places, (C, W C)."""
    places = weights.reshape(width, CHANNELS, CHANNELS)
    return places.transpose(1, 0, 2).reshape(CHANNELS, -1)
