"""The network: two convolutions over neighbouring tokens, their sum, a residual network on that.

The convolutional model of Yang et al. 2019 (Multilingual Universal Sentence Encoder for Semantic
Retrieval, section 2), as its weights are laid out by the package that brings them. A convolution is
computed as what each token makes of each place of the window, summed afterwards. So all of the
first one but the sum depends on the piece alone, and is computed once for each piece: two fifths of
all operations are left. Axes: ``R`` rows, ``P`` pieces, ``S`` sentences.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from encoder import Precision
from encoder.rows import Matrix
from encoder.tokenizer import Tokens
from encoder.use import compiled
from encoder.use.compiled import CHANNELS, EMBEDDING, FEATURES, HIDDEN, WIDTHS
from encoder.use.products import Weights
from miner.knn.core.vnni import Columns

DIM = 512
KEPT_BYTES = 256 << 20  # of prepared pieces: in int8, those of about two languages
RESIDUAL = ("d0", "d1", "d2", "d3", "p1", "p3")  # the layers after the sum
PREPARED = FEATURES + sum(WIDTHS) * CHANNELS  # numbers of a prepared piece


class Products(NamedTuple):
    """Products (R, N), each still to be multiplied by the scales of its row and its column."""

    products: NDArray[np.int32] | Matrix
    rows: Matrix
    columns: Matrix


class FloatLayer:
    """A layer in float32."""

    def __init__(self, weights: Matrix) -> None:
        self._weights = Weights(weights)
        self._ones = np.ones(weights.shape[1], dtype=np.float32)

    def __call__(self, rows: Matrix) -> Products:
        """Multiply rows (R, C)."""
        ones = np.ones(len(rows), dtype=np.float32)
        found = self._weights.multiplied(rows)
        return Products(found, ones, self._ones)


class Int8Layer:
    """A layer in int8: each row, and each column of the weights, has a scale of its own."""

    def __init__(self, weights: Matrix) -> None:
        codes, self._scales = _rounded(np.ascontiguousarray(weights.T))
        self._columns = Columns(codes)

    def __call__(self, rows: Matrix) -> Products:
        """Multiply rows (R, C)."""
        codes, scales = _rounded(rows)
        found = self._columns.multiplied(codes)
        return Products(found, scales, self._scales)


Layer = FloatLayer | Int8Layer
LAYERS: Mapping[Precision, Callable[[Matrix], Layer]] = {"float32": FloatLayer, "int8": Int8Layer}


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Prepared pieces: numbers (P, PREPARED), and what each CHANNELS of them are multiplied by.

    They are int16 for a network in int8: half the bytes to fetch for each token.
    """

    numbers: NDArray[np.int16] | Matrix
    scales: Matrix

    @classmethod
    def empty(cls, precision: Precision) -> "Pieces":
        """Return room for pieces, KEPT_BYTES of it."""
        kind = np.dtype(np.int16 if precision == "int8" else np.float32)
        return cls.of(KEPT_BYTES // (PREPARED * kind.itemsize), kind)

    @classmethod
    def of(cls, count: int, kind: np.dtype) -> "Pieces":
        """Return room for some pieces."""
        return cls(
            numbers=np.empty((count, PREPARED), dtype=kind),
            scales=np.ones((count, PREPARED // CHANNELS), dtype=np.float32),
        )

    def put(self, slots: NDArray[np.int64], rows: Matrix) -> None:
        """Keep prepared rows (R, PREPARED) at these places (R,)."""
        if self.numbers.dtype == rows.dtype:
            self.numbers[slots] = rows
            return
        codes = np.empty(rows.shape, dtype=self.numbers.dtype)
        scales = np.empty((len(rows), PREPARED // CHANNELS), dtype=np.float32)
        parts = (array.reshape(-1, CHANNELS) for array in (rows, codes))
        compiled.round_rows(*parts, np.float32(np.iinfo(codes.dtype).max), scales.ravel())
        self.numbers[slots], self.scales[slots] = codes, scales


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
        self._second = [LAYERS[precision](weights) for weights in second]
        self._biases, self._second_biases = (_beside(tensors, f"b{layer}_") for layer in (1, 2))
        # The last norm's scale is the same for all tokens, and its shift, too.
        self._out = Weights(tensors["ln_g"][:, None] * tensors["cnn_W"])
        self._bias = tensors["ln_b"] @ tensors["cnn_W"] + tensors["cnn_b"]
        self._residual = {name: Weights(tensors[name]) for name in RESIDUAL}

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

    def sums(self, pieces: Pieces, slots: Tokens, sums: Matrix) -> None:
        """Write the sums of the tokens' features to ``sums``, float32 (S, 1280).

        The ids of ``slots`` are places among the pieces.
        """
        rows = pieces.numbers, pieces.scales, slots.ids, slots.offsets
        hidden = np.empty((len(slots.ids), HIDDEN), dtype=np.float32)
        compiled.first_layer(*rows, self._biases, hidden)
        for branch, layer in enumerate(self._second):
            own = hidden[:, _channels(branch)]
            bias = self._second_biases[_channels(branch)]
            compiled.second_layer(*layer(own), slots.offsets, branch, bias, own)
        compiled.pool(*rows, hidden, self._epsilon, sums)

    def vectors(self, sums: Matrix, counts: NDArray[np.int64]) -> Matrix:
        """Return the vectors of sentences of ``counts`` (S,) tokens by their sums: (S, 512)."""
        number = counts[:, None].astype(np.float32)
        mean: Matrix = self._out.multiplied(sums) + number * self._bias
        mean /= np.sqrt(number)
        first = _positive(self._multiplied(mean, "d0"))
        inner = _positive(self._multiplied(mean, "p1") + self._multiplied(first, "d1"))
        second = _positive(self._multiplied(inner, "d2"))
        return np.tanh(self._multiplied(inner, "p3") + self._multiplied(second, "d3"))

    def _multiplied(self, rows: Matrix, name: str) -> Matrix:
        return self._residual[name].multiplied(rows)


def _positive(rows: Matrix) -> Matrix:
    return np.maximum(rows, 0)


def _rounded(rows: Matrix) -> tuple[NDArray[np.int8], Matrix]:
    """Return rows (R, C) as codes from -127 to 127, and the scale of each row, float32 (R,)."""
    codes = np.empty(rows.shape, dtype=np.int8)
    scales = np.empty(len(rows), dtype=np.float32)
    compiled.round_rows(rows, codes, np.float32(np.iinfo(np.int8).max), scales)
    return codes, scales


def _channels(branch: int) -> slice:
    return slice(branch * CHANNELS, (branch + 1) * CHANNELS)


def _beside(tensors: Mapping[str, Matrix], name: str) -> Matrix:
    return np.concatenate([tensors[f"{name}{width}"] for width in WIDTHS], axis=-1)


def _by_places(weights: Matrix, width: int) -> Matrix:
    """Return the weights of a window (W C, C) as those of each of its places, (C, W C)."""
    places = weights.reshape(width, CHANNELS, CHANNELS)
    return places.transpose(1, 0, 2).reshape(CHANNELS, -1)
