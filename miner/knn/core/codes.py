"""Unit rows as codes of low precision, with bounds of the rounding error.

With ``a`` and ``b`` the mean rows of both sides, ``x.y = (x - a).(y - b) + x.b + a.(y - b)``. Only
the first term needs all pairs of rows. It is computed from codes ``x'`` and ``y'`` of the centred
rows. If all sentences are somewhat similar, as with LASER's vectors, centring reduces the coded
values, and so the rounding errors. By Cauchy and Schwarz

    (x - a).(y - b) <= x'.y' + |x - a - x'| max|y - b| + max|x'| |y - b - y'|

so each row has a scale and a bias that give an upper bound on every cosine.

Centred rows of text have most of their length along a few axes (``miner.knn.core.tuning``). If x'
and y' are codes of coordinates along D' such axes, products take fewer operations. The rests u of
x and v of y, orthogonal to the axes, add at most ``u.v <= (u.u + v.v) / 2`` to a cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Matrix, Rows, take_rows
from miner.choices import check_choice
from miner.knn.core.products import (
    INT8_DIMENSIONS,
    INT8_MAX,
    int8_is_exact,
    largest_code,
    largest_sum,
    loops,
    numbers_of,
)
from miner.threads import blocks, run_in_threads

# int16 contains codes up to 127 if int8 codes are smaller (AVX2). Only trials choose it.
Precision = Literal["float32", "bfloat16", "int8", "int16"]
PRECISIONS: tuple[Precision, ...] = ("int8", "bfloat16", "float32")
TYPES = {"int8": np.int8, "int16": np.int16, "bfloat16": np.uint16, "float32": np.float32}

BLOCK_ROWS = 256  # whose codes stay in the cache
UNIT = 2.0**-24  # the relative rounding error of float32
TINY = np.finfo(np.float32).tiny
# Float32 operations from a product to its bound: conversion, two scalings, two for the slack, the
# rounding of the biases, two sums. Each errs by a UNIT of the terms' sizes, in any order.
BOUND_OPERATIONS = 8


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The codes of N rows of a side, with bounds of cosines.

    For rows i and j of both sides of ``encode_both``, ``cos(i, j) <= p + slack |p| + bias[i] +
    bias[j]``, where p is ``scale[i] scale[j]`` times the product of their codes.

    ``numbers`` (N, D), or (N, D') with axes, are the codes: int8, int16, bfloat16 bits as uint16,
    or floats. ``ids``, int32 (N,), are at first the rows' positions. ``scale`` and ``bias`` are
    float32 (N,). ``slack`` is the relative rounding error of products of both sides.
    """

    ids: NDArray[np.int32]
    numbers: NDArray[Any]
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]
    slack: np.float32

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def terms(self) -> tuple[Matrix, Matrix]:
        """The ``scale`` and the ``bias``, float32 (N,) each."""
        return self.scale, self.bias

    def take(self, rows: Rows) -> Codes:
        """Return codes of rows, a view by a slice, or a copy by positions."""
        columns = self.ids, self.numbers, self.scale, self.bias
        ids, numbers, scale, bias = (take_rows(column, rows) for column in columns)
        return Codes(ids=ids, numbers=numbers, scale=scale, bias=bias, slack=self.slack)


def encode_both(
    source: Matrix,
    target: Matrix,
    precision: Precision,
    *,
    centred: bool = True,
    axes: Matrix | None = None,
) -> tuple[Codes, Codes]:
    """Encode both sides in ``precision``, with bounds of their cosines.

    ``source`` (N, D) and ``target`` (M, D) are unit rows. float32 codes without ``axes`` are the
    rows, not copied. For others, if ``centred``, each side's mean is subtracted first. If not,
    biases without ``axes`` contain only rounding errors, so products rank like bounds. ``axes``,
    float32 (D, D'), are orthonormal columns, up to rounding. Codes are then the coordinates of the
    rows along them, and biases also contain the rests of the rows. int8 codes of ``source`` may
    only be rows of a product, and codes of ``target`` its columns.

    Raises:
        ValueError: The precision is unknown, its products overflow or are wrong on this CPU, or the
            axes are not orthonormal.
        ModuleNotFoundError: int8 products need torch, which is not installed.
    """
    check_choice("precision", precision, (*PRECISIONS, "int16"))
    dim = source.shape[1]
    if precision in ("int8", "int16") and dim >= INT8_DIMENSIONS:
        raise ValueError(
            f"--search-precision {precision}: sums of {dim} dimensions may overflow; use bfloat16"
        )
    if precision == "int8" and not int8_is_exact():
        raise ValueError(
            "--search-precision int8: products are inexact on this CPU; use bfloat16 or float32"
        )
    of_rows, of_columns = (INT8_MAX, largest_sum()), (largest_code(), 8 * INT8_MAX)
    left = _Side(source, precision, centred, axes, of_rows)
    right = _Side(target, precision, centred, axes, of_columns)
    measured = _measured(dim)
    reach = right.longest * measured
    span = (left.longest + left.error.max(initial=0.0)) * measured
    largest = span * (right.longest + right.error.max(initial=0.0)) * measured  # product of codes
    of_means = float(right.mean.astype(np.float64) @ left.mean.astype(np.float64))
    left_bias = left.dot(right.mean) + left.error * reach * measured
    right_bias = right.dot(left.mean) - of_means + right.error * span * measured
    left_bias += left.rest / 2
    right_bias += right.rest / 2
    terms = largest + sum(float(np.abs(bias).max(initial=0.0)) for bias in (left_bias, right_bias))
    left_bias += product_rounding(precision, dim) * largest
    left_bias += BOUND_OPERATIONS * UNIT * (terms + UNIT)  # + UNIT for underflow
    return left.codes(left_bias), right.codes(right_bias)


def round_to_int8(rows: Matrix) -> tuple[Matrix, Matrix]:
    """Round each row to multiples of 1/127 of its largest absolute value.

    The multiples are whole float32 (N, D), -127 to 127. Their units are float32 (N, 1).
    """
    largest = np.maximum(rows.max(axis=1, keepdims=True), -rows.min(axis=1, keepdims=True))
    scale = np.maximum(largest / np.float32(INT8_MAX), TINY)
    numbers = rows / scale
    return np.rint(numbers, out=numbers), scale


def codes_of(rows: Matrix, integers: type[np.number]) -> Codes:
    """Encode rows (N, D) by ``round_to_int8``, without bounds of cosines.

    Ids are positions, biases and slack 0. ``integers``, the dtype, is from ``type_of_integers``.
    """
    numbers, steps = round_to_int8(rows)
    return Codes(
        ids=np.arange(len(rows), dtype=np.int32),
        numbers=numbers.astype(integers),
        scale=steps[:, 0],
        bias=np.zeros(len(rows), dtype=np.float32),
        slack=np.float32(0),
    )


def round_to_bfloat16(rows: Matrix) -> NDArray[np.uint16]:
    """Round finite float32 rows to bfloat16, ties to even, as uint16 bits."""
    bits = rows.view(np.uint32)
    odd = (bits >> 16) & 1
    return ((bits + (np.uint32(0x7FFF) + odd)) >> 16).astype(np.uint16)


def product_rounding(precision: Precision, dim: int) -> float:
    """Return a bound of the error of a sum of ``dim`` products.

    It is relative to the sum of absolute products, and holds in any order (Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd ed., section 3.1), before the result is rounded. Integers
    sum exactly. Arm's bfloat16 rounds sums to odd, which errs by twice as much as to nearest.
    """
    steps = (dim + 2) * {"bfloat16": 2 * UNIT, "float32": UNIT}.get(precision, 0.0)
    return steps / (1 - steps)


def _measured(dim: int) -> float:
    """Return a factor that makes a row's length in float32 an upper bound."""
    return 1 + (dim + 8) * 2 * UNIT


def _turning_error(axes: Matrix) -> float:
    """Return a bound of coordinates' errors, relative to a row's length.

    It includes the distance of the axes (D, D') from orthonormal ones, and float32's rounding.

    Raises:
        ValueError: The distance is large.
    """
    exact = axes.astype(np.float64)
    defect = np.linalg.norm(axes.T.astype(np.float64) @ exact - np.eye(axes.shape[1]))
    if not defect < 1:  # also for NaN
        raise ValueError(f"{axes.shape[1]} axes are not orthonormal columns")
    rounding = product_rounding("float32", len(axes)) * np.linalg.norm(exact)
    return 1.01 * float(defect + rounding) + 2 * UNIT


class _Side:
    """A side while it is encoded, and the lengths of its rounding errors.

    ``limits`` are the largest int8 code, and the largest sum of ``largest_sum``. ``rest`` are the
    squared lengths of centred rows' parts that are orthogonal to the axes.
    """

    def __init__(
        self,
        rows: Matrix,
        precision: Precision,
        centred: bool,
        axes: Matrix | None,
        limits: tuple[int, int],
    ) -> None:
        self._rows, self._precision, self._axes = rows, precision, axes
        self._limits = limits if precision == "int8" else (INT8_MAX, 8 * INT8_MAX)
        self.mean = np.zeros(rows.shape[1], dtype=np.float32)
        self._scale = np.ones(len(rows), dtype=np.float32)
        self.error, self.rest = np.zeros(len(rows)), np.zeros(len(rows))
        self.longest = 1.0 + UNIT
        width = rows.shape[1] if axes is None else axes.shape[1]
        if len(rows) == 0 or (precision == "float32" and axes is None):
            self._numbers: NDArray[Any] = rows[:, :width].astype(TYPES[precision], copy=False)
            return
        if centred:  # at the rounded mean; bounds hold for any row
            self.mean = np.full(len(rows), 1 / len(rows), dtype=np.float32) @ rows
        self._turning = 0.0 if axes is None else _turning_error(axes)
        self._numbers = np.empty((len(rows), width), dtype=TYPES[precision])
        self._lengths = np.empty(len(rows))
        run_in_threads(self._encode, blocks(len(rows), BLOCK_ROWS))
        self.longest = float(self._lengths.max()) + UNIT

    def _encode(self, block: slice) -> None:
        rows, mean, turned = self._rows[block], self.mean, 0.0
        if self._axes is not None:
            rows = rows - mean
            whole = np.einsum("nd,nd->n", rows, rows).astype(np.float64)
            turned = self._turning * np.sqrt(whole)
            rows, mean = rows @ self._axes, np.zeros(self._axes.shape[1], dtype=np.float32)
        lengths, errors = (np.zeros(len(rows), np.float32) for _ in range(2))
        if self._precision in ("int8", "int16"):
            codes = self._numbers[block], self._scale[block], lengths, errors
            loops().round_centred(rows, mean, self._limits, codes)
        else:
            centred = rows - mean
            np.sqrt(np.einsum("nd,nd->n", centred, centred), out=lengths)
            is_narrow = self._precision == "bfloat16"
            self._numbers[block] = round_to_bfloat16(centred) if is_narrow else centred
            centred -= numbers_of(self._numbers[block])
            np.sqrt(np.einsum("nd,nd->n", centred, centred), out=errors)
        # Add the rounding errors of the difference and of scale times code.
        error = errors.astype(np.float64)
        self.error[block] = error + UNIT * (2 * lengths + error) + turned
        self._lengths[block] = lengths + turned
        if self._axes is not None:
            measured = _measured(self._rows.shape[1])
            within = np.maximum(0.0, lengths / measured - turned)
            self.rest[block] = np.maximum(0.0, whole * measured**2 - within**2)

    def dot(self, mean: Matrix) -> NDArray[np.float64]:
        """Return an upper bound of ``x.b`` for each row x, float64 (N,)."""
        length = 1.01 * float(np.linalg.norm(mean.astype(np.float64)))
        bound = product_rounding("float32", len(mean)) * length
        with np.errstate(invalid="ignore"):  # BLAS may set it though rows are finite
            return np.asarray((self._rows @ mean).astype(np.float64) + bound)

    def codes(self, bias: NDArray[np.float64]) -> Codes:
        return Codes(
            ids=np.arange(len(bias), dtype=np.int32),
            numbers=self._numbers,
            scale=self._scale,
            bias=bias.astype(np.float32),
            # The result is rounded to 8 bits. product_rounding contains the rest.
            slack=np.float32(2.0**-8 if self._precision == "bfloat16" else 0.0),
        )
