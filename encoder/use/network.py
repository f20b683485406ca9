"""Two convolutions over tokens, their sum, and a residual network.

The convolutional Multilingual Universal Sentence Encoder of Yang et al. 2019, section 2. Products
of the first convolution, of each token and the weights of each place in the window, are computed
once per piece, and summed afterwards. Axes: ``R`` rows, ``P`` pieces, ``S`` sentences.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import Precision
from encoder.rows import Matrix
from encoder.tokenizer import Tokens
from encoder.use import compiled
from encoder.use.compiled import CHANNELS, FEATURES, HIDDEN, WIDTHS
from encoder.use.products import Weights
from miner.knn.core.int8 import panels_of

DIM = 512
RESIDUAL = ("d0", "d1", "d2", "d3", "p1", "p3")  # the layers after the sum
PREPARED = FEATURES + sum(WIDTHS) * CHANNELS  # numbers of a prepared piece

# Codes of the second convolution. AVX2 multiplies them without overflow: 4 * 2 * 50 * 80 < 2**15.
WEIGHT_MAX = 50
ROW_MAX = 80

# Adds the second convolution to hidden rows (T, B C), given the offsets of sentences.
Layer = Callable[[NDArray[np.int64], Matrix], None]


def _float_layer(weights: Matrix, branch_bias: tuple[int, Matrix]) -> Layer:
    multiplied, channels = Weights(weights).multiplied, _channels(branch_bias[0])
    return lambda offsets, hidden: compiled.float_layer(
        multiplied(hidden[:, channels]), offsets, branch_bias, hidden
    )


def _int8_layer(weights: Matrix, branch_bias: tuple[int, Matrix], sizes: Matrix) -> Layer:
    # The square root of a channel's size moves from rows to weights, so that a large channel does
    # not coarsen the codes of the others (Xiao et al. 2023, SmoothQuant, section 4).
    columns = np.ascontiguousarray(weights.T)
    factors = np.sqrt(channel_sizes(columns) / sizes)
    codes, column_scales = quantize(columns / factors, np.int8, WEIGHT_MAX)
    panels, raised = panels_of(codes, WEIGHT_MAX)
    coded, scales = (panels, raised, np.float32(ROW_MAX)), (factors, column_scales)
    return lambda offsets, hidden: compiled.int8_layer(coded, scales, offsets, branch_bias, hidden)


class Network:
    """The network, made of the ``tensors`` of ``load_weights``.

    With ``sizes`` (768,), root mean squares of hidden channels, its largest convolution is in int8.
    """

    def __init__(self, tensors: Mapping[str, Matrix], sizes: Matrix | None = None) -> None:
        self.precision: Precision = "float32" if sizes is None else "int8"
        self.name = "float32" if sizes is None else f"int8-{WEIGHT_MAX}-{ROW_MAX}"
        self._epsilon = np.float32(tensors["eps"])
        self._project = Weights(_concatenate(tensors, "proj"))
        self._projected = tuple(_concatenate(tensors, name) for name in ("proj_b", "ln_g", "ln_b"))
        first, second = (
            [_split_places(tensors[f"w{layer}_{width}"], width) for width in WIDTHS]
            for layer in (1, 2)
        )
        self._first = [*map(Weights, first)]
        self._second: list[Layer] = []
        for branch, weights in enumerate(second):
            branch_bias = branch, tensors[f"b2_{WIDTHS[branch]}"]
            if sizes is None:
                self._second.append(_float_layer(weights, branch_bias))
            else:
                self._second.append(_int8_layer(weights, branch_bias, sizes[_channels(branch)]))
        self._biases = _concatenate(tensors, "b1_")
        # The last norm's scale and shift are the same for all tokens.
        self._out = Weights(tensors["ln_g"][:, None] * tensors["cnn_W"])
        shift = Weights(tensors["cnn_W"]).multiplied(tensors["ln_b"][None])
        self._bias = shift[0] + tensors["cnn_b"]
        self._residual = {name: Weights(tensors[name]).multiplied for name in RESIDUAL}

    def prepare(self, vectors: Matrix) -> Matrix:
        """Prepare pieces (P, 512) for ``first_layer``, as float32 (P, 3840)."""
        bias, scale, shift = self._projected
        inputs = self._project.multiplied(vectors) + bias
        compiled.normalize(inputs, self._epsilon, scale, shift, inputs)
        layers = enumerate(self._first)
        products = [layer.multiplied(inputs[:, _channels(branch)]) for branch, layer in layers]
        return np.concatenate([vectors, inputs, *products], axis=1)

    def hidden(self, numbers: NDArray[np.number], scales: Matrix, slots: Tokens) -> Matrix:
        """Compute the hidden rows, float32 (T, 768), of T tokens.

        They are the first convolution's positive part plus its input. The ids of ``slots`` are rows
        of ``numbers`` and ``scales`` of ``PreparedPieces``.
        """
        hidden = np.empty((len(slots.ids), HIDDEN), dtype=np.float32)
        compiled.first_layer(numbers, scales, slots.ids, slots.offsets, self._biases, hidden)
        return hidden

    def sums(self, numbers: NDArray[np.number], scales: Matrix, slots: Tokens, out: Matrix) -> None:
        """Sum the features of each sentence's tokens into ``out``.

        ``out`` is float32 (S, 1280). The other arguments are as for ``hidden``.
        """
        hidden = self.hidden(numbers, scales, slots)
        for layer in self._second:
            layer(slots.offsets, hidden)
        pieces = numbers, scales, slots.ids, slots.offsets
        compiled.pool(*pieces, hidden, self._epsilon, out)

    def vectors(self, sums: Matrix, counts: NDArray[np.int64]) -> Matrix:
        """Compute S sentence vectors, float32 (S, 512), not of unit length.

        ``sums`` (S, 1280) are from the method ``sums``, and ``counts`` (S,) of tokens, above 0.
        """
        layers, number = self._residual, counts[:, None].astype(np.float32)
        mean: Matrix = self._out.multiplied(sums) + number * self._bias
        mean /= np.sqrt(number)
        first = np.maximum(layers["d0"](mean), 0)
        inner = np.maximum(layers["p1"](mean) + layers["d1"](first), 0)
        second = np.maximum(layers["d2"](inner), 0)
        return np.tanh(layers["p3"](inner) + layers["d3"](second))


def quantize(
    rows: Matrix, kind: type[np.int8 | np.int16], largest: int
) -> tuple[NDArray[Any], Matrix]:
    """Round float32 rows (R, C) to codes of type ``kind``, with scales.

    Codes, from -``largest`` to ``largest``, times their row's scale, float32 (R,), are about rows.
    """
    codes = np.empty(rows.shape, dtype=kind)
    scales = np.empty(len(rows), dtype=np.float32)
    compiled.round_rows(rows, codes, np.float32(largest), scales)
    return codes, scales


def channel_sizes(hidden: Matrix) -> Matrix:
    """Return the root mean square of each column in rows (R, C), float32 (C,)."""
    return np.sqrt(np.square(hidden).mean(axis=0))  # row after row: the same bytes on every CPU


def _channels(branch: int) -> slice:
    return slice(branch * CHANNELS, (branch + 1) * CHANNELS)


def _concatenate(tensors: Mapping[str, Matrix], name: str) -> Matrix:
    return np.concatenate([tensors[f"{name}{width}"] for width in WIDTHS], axis=-1)


def _split_places(weights: Matrix, width: int) -> Matrix:
    """Return the weights of a window (W C, C) by place, (C, W C)."""
    places = weights.reshape(width, CHANNELS, CHANNELS)
    return places.transpose(1, 0, 2).reshape(CHANNELS, -1)
