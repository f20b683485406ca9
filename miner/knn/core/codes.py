"""Unit rows in the low precision that products are computed in, and what that may hide.

With ``a`` and ``b`` the mean rows of both sides, ``x.y = (x - a).(y - b) + x.b + a.(y - b)``. Only
the first term needs all pairs of rows; it is computed from codes ``x'`` and ``y'`` of the centred
rows. Centring matters where all sentences are somewhat alike (LASER's vectors): what is coded gets
smaller, and so does its rounding. By Cauchy and Schwarz

    (x - a).(y - b) <= x'.y' + |x - a - x'| max|y - b| + max|x'| |y - b - y'|

so each row brings a scale and a bias from which an upper bound on every cosine follows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from miner.threads import blocks, in_threads

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Precision = Literal["float32", "bfloat16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("int8", "bfloat16", "float32")

INT8_LARGEST = 127
INT8_MOST_DIMENSIONS = 1 << 17  # 127 * 127 * D stays below 2**31
BLOCK_ROWS = 256  # what is made of them stays in the cache
UNIT = 2.0**-24  # the relative rounding error of float32
# Float32 operations from a product to its bound: conversion, two scalings, two for the slack, the
# rounding of the biases, two sums; each errs by a UNIT of the terms' sizes, in whatever order.
BOUND_OPERATIONS = 8
# oneDNN's settings that let float32 products be computed in bfloat16; it reads them when loaded.
FAST_MATH = "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"


@dataclass(frozen=True, kw_only=True)
class Codes:
    """One side: ``cos(i, j) <= p + slack |p| + bias[i] + bias[j]`` for any two rows i and j.

    p is ``scale[i] scale[j]`` times the product of their codes, as ``product`` computes it.
    ``ids``, int32 (N,), are positions in the side; ``numbers`` the codes (N, D), int8, bfloat16 or
    float32; ``scale`` and ``bias`` are float32 (N,); ``slack`` is the same on both sides.
    """

    ids: NDArray[np.int32]
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
            ids=self.ids[rows],
            # Not by numbers[rows], which would fetch number by number.
            numbers=numbers[rows] if isinstance(rows, slice) else _rows_of(numbers, rows),
            scale=self.scale[rows],
            bias=self.bias[rows],
            slack=self.slack,
        )


def _rows_of(numbers: torch.Tensor, rows: NDArray[np.int64]) -> torch.Tensor:
    import torch

    return numbers.index_select(0, torch.from_numpy(rows))


def encode_both(
    source: Matrix, target: Matrix, precision: Precision, *, centred: bool = True
) -> tuple[Codes, Codes]:
    """Both sides in ``precision``, from unit rows (N, D) and (M, D).

    float32 is never ``centred``. What is not has biases that hold the errors of rounding alone, so
    that products rank all but as bounds do.

    Reads the rows twice; the codes take 1, 2 or (float32: shared with the rows) no bytes a number.

    Raises:
        ValueError: an unknown precision, more dimensions than int8 products can sum, or int8 where
            its products are wrong.
    """
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision {precision!r} is unknown; choose one of {', '.join(PRECISIONS)}"
        )
    dim = source.shape[1]
    if precision == "int8" and dim >= INT8_MOST_DIMENSIONS:
        raise ValueError(f"int8 products of {dim} dimensions may overflow; choose bfloat16")
    if precision == "int8" and not int8_is_exact():
        raise ValueError("int8 products saturate on this machine; choose bfloat16 or float32")
    centred = centred and precision != "float32"
    left, right = (_Side(rows, precision, centred=centred) for rows in (source, target))
    measured = 1 + (dim + 8) * 2 * UNIT  # lengths are computed in float32, too
    reach = right.longest * measured
    span = (left.longest + left.error.max(initial=0.0)) * measured
    largest = span * (right.longest + right.error.max(initial=0.0)) * measured  # product of codes
    left_bias = left.dot(right.mean) + left.error * reach * measured
    right_bias = right.dot_centred(left.mean) + right.error * span * measured
    terms = largest + sum(float(np.abs(bias).max(initial=0.0)) for bias in (left_bias, right_bias))
    left_bias += product_rounding(precision, dim) * largest
    left_bias += BOUND_OPERATIONS * UNIT * (terms + UNIT)  # + UNIT for what underflows
    return left.codes(left_bias), right.codes(right_bias)


def round_to_int8(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row in steps of 1/127 of its largest number: how many, (N, D), and the step, (N, 1).

    Both are float32 and depend on the row alone.
    """
    import torch

    largest = rows.abs().amax(dim=1, keepdim=True)
    scale = (largest / INT8_LARGEST).clamp_(min=torch.finfo(torch.float32).tiny)
    return (rows / scale).round_(), scale


def type_of_integers(dim: int) -> torch.dtype:
    """In what type ``product`` sums D products of int8 codes without error here."""
    import torch

    try:
        if dim < INT8_MOST_DIMENSIONS and int8_is_exact():
            return torch.int8
    except (RuntimeError, AttributeError):  # this build of torch has no int8 products
        pass
    return torch.float64


@cache
def int8_is_exact() -> bool:
    """Whether int8 products of the largest codes are right here.

    Without VNNI instructions oneDNN sums pairs of products in 16 bits, which saturate
    (pytorch/pytorch#136746). torch avoids it from 2.6 on, unless ONEDNN_MAX_CPU_ISA hides VNNI.

    Raises:
        RuntimeError, AttributeError: this build of torch has no int8 products.
    """
    import torch

    numbers = torch.full((64, 64), INT8_LARGEST, dtype=torch.int8)
    numbers[::2] *= -1
    return torch.equal(product(numbers, numbers), numbers.int() @ numbers.int().T)


def product_rounding(precision: Precision, dim: int) -> float:
    """By what share of their lengths a product of codes may err before it is rounded to their type.

    Arm's bfloat16 instructions round sums to odd, which errs by twice as much as to nearest.
    """
    if precision == "int8":
        return 0.0  # integers sum exactly
    if precision == "bfloat16":
        return _sum_rounding(dim, 2 * UNIT)
    numbers = 2 * 2.0**-8 + 2.0**-16 if _in_bfloat16() else 0.0
    return numbers + (1 + numbers) * _sum_rounding(dim, UNIT)


def _sum_rounding(dim: int, unit: float) -> float:
    """The error of a sum of D products in any order: of their absolutes', so of the lengths' too.

    Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
    """
    steps = (dim + 2) * unit
    return steps / (1 - steps)


def _in_bfloat16() -> bool:
    """Whether torch or oneDNN has been told that float32 products may round their numbers first."""
    import torch

    matmul = getattr(torch.backends.mkldnn, "matmul", None)  # since torch 2.9
    told = matmul.fp32_precision if matmul else torch.get_float32_matmul_precision()
    modes = [os.environ.get(name, "STRICT").upper() for name in FAST_MATH]
    return told not in ("none", "ieee", "highest") or modes != ["STRICT"] * len(modes)


class _Side:
    """One side while its codes are made.

    ``error`` is float64 (N,): the length of what each row's code leaves out; ``longest`` the length
    of the longest centred row.
    """

    def __init__(self, rows: Matrix, precision: Precision, *, centred: bool) -> None:
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
        if centred:
            self.mean = exact.mean(dim=0).numpy()
        self._numbers = torch.empty(rows.shape, dtype=getattr(torch, precision))
        self._lengths = np.empty(len(rows), dtype=np.float32)
        in_threads(self._encode, blocks(len(rows), BLOCK_ROWS))
        self.longest = float(self._lengths.max()) + UNIT

    def _encode(self, block: slice) -> None:
        import torch

        centred = torch.from_numpy(self._rows[block]) - torch.from_numpy(self.mean)
        if self._precision == "int8":
            rounded, scale = round_to_int8(centred)
            self._scale[block] = scale[:, 0].numpy()
            self._numbers[block] = rounded.to(torch.int8)
            rounded.mul_(scale)
        else:
            self._numbers[block] = centred
            rounded = self._numbers[block].float()
        lengths = centred.norm(dim=1)
        self._lengths[block] = lengths.numpy()
        error = (centred - rounded).norm(dim=1).double()
        # To the measured error come the roundings of the difference and of scale times code.
        self.error[block] = (error + UNIT * (2 * lengths + error)).numpy()

    def dot(self, mean: Matrix) -> NDArray[np.float64]:
        """At least ``x.b`` for each row x: float64 (N,)."""
        length = 1.01 * float(np.linalg.norm(mean.astype(np.float64)))
        bound = _sum_rounding(len(mean), UNIT) * length
        products: NDArray[np.float64] = (self._rows @ mean).astype(np.float64) + bound
        return products

    def dot_centred(self, mean: Matrix) -> NDArray[np.float64]:
        """At least ``a.(y - b)`` for each row y: float64 (N,)."""
        return self.dot(mean) - float(self.mean.astype(np.float64) @ mean.astype(np.float64))

    def codes(self, bias: NDArray[np.float64]) -> Codes:
        return Codes(
            ids=np.arange(len(bias), dtype=np.int32),
            numbers=self._numbers,
            scale=self._scale,
            bias=bias.astype(np.float32),
            # The result is rounded to the nearest number of 8 bits; product_rounding has the rest.
            slack=np.float32(2.0**-8 if self._precision == "bfloat16" else 0.0),
        )


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The product of codes, (R, D) by (C, D): int32 of int8, else in the codes' own type (R, C)."""
    import torch

    if left.dtype == torch.int8:
        if left.shape[1] == 1:  # which _int_mm leaves unset in torch 2.13
            return left.int() * right.int().T
        return torch._int_mm(left, right.T)
    return left @ right.T
