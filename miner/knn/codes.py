"""Unit rows in the low precision that products are computed in, and what that may hide.

With ``a`` and ``b`` the mean rows of both sides, ``x.y = (x - a).(y - b) + x.b + a.(y - b)``. Only
the first term needs all pairs of rows; it is computed from codes ``x'`` and ``y'`` of the centred
rows. Centring matters where all sentences are somewhat alike (LASER's vectors): what is coded gets
smaller, and so does its rounding. By Cauchy and Schwarz

    (x - a).(y - b) <= x'.y' + |x - a - x'| max|y - b| + max|x'| |y - b - y'|

so each row brings a scale and a bias from which an upper bound on every cosine follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Precision = Literal["float32", "bfloat16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("int8", "bfloat16", "float32")

INT8_LARGEST = 127
INT8_MOST_DIMENSIONS = 1 << 17  # 127 * 127 * D stays below 2**31
BLOCK_ROWS = 1024
UNIT = 2.0**-24  # the relative rounding error of float32
# The bound itself is computed by half a dozen float32 operations on numbers below 2.
BOUND_ROUNDING = 2.0**-20


@dataclass(frozen=True, kw_only=True)
class Codes:
    """One side: ``cos(i, j) <= p + slack |p| + bias[i] + bias[j]`` for any two rows i and j.

    p is ``scale[i] scale[j]`` times the product of their codes, as ``product`` computes it.
    ``numbers`` are the codes (N, D), int8, bfloat16 or float32; ``scale`` and ``bias`` are float32
    (N,); ``slack`` is the same on both sides.
    """

    numbers: torch.Tensor
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]
    slack: np.float32

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, rows: slice | NDArray[np.int64]) -> Codes:
        """Some of the rows: a view of a slice, a copy of what positions name."""
        numbers = self.numbers
        return Codes(
            # Not by numbers[rows], which would fetch number by number.
            numbers=numbers[rows] if isinstance(rows, slice) else _rows_of(numbers, rows),
            scale=self.scale[rows],
            bias=self.bias[rows],
            slack=self.slack,
        )


def _rows_of(numbers: torch.Tensor, rows: NDArray[np.int64]) -> torch.Tensor:
    import torch

    return numbers.index_select(0, torch.from_numpy(rows))


def encode_both(source: Matrix, target: Matrix, precision: Precision) -> tuple[Codes, Codes]:
    """Both sides in ``precision``, from unit rows (N, D) and (M, D).

    Reads the rows twice; the codes take 1, 2 or (float32: shared with the rows) no bytes a number.

    Raises:
        ValueError: an unknown precision, or more dimensions than int8 products can sum.
    """
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision {precision!r} is unknown; choose one of {', '.join(PRECISIONS)}"
        )
    dim = source.shape[1]
    if precision == "int8" and dim >= INT8_MOST_DIMENSIONS:
        raise ValueError(f"int8 products of {dim} dimensions may overflow; choose bfloat16")
    left, right = _Side(source, precision), _Side(target, precision)
    product = 1.02 * UNIT * (dim + 2) if precision != "int8" else 0.0  # integers sum exactly
    measured = 1 + (dim + 8) * 2 * UNIT  # lengths are computed in float32, too
    reach = right.longest * measured
    span = (left.longest + left.error.max(initial=0.0)) * measured
    common = product * span * reach + BOUND_ROUNDING
    left_bias = left.dot(right.mean) + left.error * reach * measured + common
    right_bias = right.dot_centred(left.mean) + right.error * span * measured
    return left.codes(left_bias), right.codes(right_bias)


class _Side:
    """One side while its codes are made.

    ``error`` is float64 (N,): the length of what each row's code leaves out; ``longest`` the length
    of the longest centred row.
    """

    def __init__(self, rows: Matrix, precision: Precision) -> None:
        import torch

        self._rows, self._precision = rows, precision
        self.mean = np.zeros(rows.shape[1], dtype=np.float32)
        self._scale = np.ones(len(rows), dtype=np.float32)
        self.error = np.zeros(len(rows))
        self.longest = 1.0 + UNIT
        exact = torch.from_numpy(rows)
        if precision == "float32" or len(rows) == 0:
            self._numbers = exact.to(getattr(torch, precision))
            return
        self.mean = exact.mean(dim=0).numpy()
        self.longest = 0.0
        self._numbers = torch.empty(rows.shape, dtype=getattr(torch, precision))
        for start in range(0, len(rows), BLOCK_ROWS):
            self._encode(exact, slice(start, start + BLOCK_ROWS))

    def _encode(self, exact: torch.Tensor, block: slice) -> None:
        import torch

        centred = exact[block] - torch.from_numpy(self.mean)
        if self._precision == "int8":
            largest = centred.abs().amax(dim=1, keepdim=True)
            scale = (largest / INT8_LARGEST).clamp_(min=torch.finfo(torch.float32).tiny)
            rounded = (centred / scale).round_()
            self._scale[block] = scale[:, 0].numpy()
            self._numbers[block] = rounded.to(torch.int8)
            rounded.mul_(scale)
        else:
            self._numbers[block] = centred
            rounded = self._numbers[block].float()
        lengths = centred.norm(dim=1)
        self.longest = max(self.longest, float(lengths.max()) + UNIT)
        # To the measured error come the roundings of the difference and of scale times code.
        self.error[block] = (centred - rounded).norm(dim=1).double().numpy() + 2 * UNIT

    def dot(self, mean: Matrix) -> NDArray[np.float64]:
        """At least ``x.b`` for each row x: float64 (N,)."""
        bound = UNIT * (self._rows.shape[1] + 2) * float(np.linalg.norm(mean)) * 1.01
        products: NDArray[np.float64] = (self._rows @ mean).astype(np.float64) + bound
        return products

    def dot_centred(self, mean: Matrix) -> NDArray[np.float64]:
        """At least ``a.(y - b)`` for each row y: float64 (N,)."""
        return self.dot(mean) - float(self.mean.astype(np.float64) @ mean.astype(np.float64))

    def codes(self, bias: NDArray[np.float64]) -> Codes:
        return Codes(
            numbers=self._numbers,
            scale=self._scale,
            bias=bias.astype(np.float32),
            # One rounding of the result to 8 bits; twice that, for whatever a processor does.
            slack=np.float32(2.0**-8 if self._precision == "bfloat16" else 0.0),
        )


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The product of codes, (R, D) by (C, D): int32 of int8, else in the codes' own type (R, C)."""
    import torch

    if left.dtype == torch.int8:
        if left.shape[1] == 1:  # whose strides torch 2.13 takes for those of a row
            return left.int() @ right.int().T
        return torch._int_mm(left, right.T)
    return left @ right.T
