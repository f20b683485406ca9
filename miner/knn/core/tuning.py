"""Choose the fastest precision and axes of codes.

Results of a search do not depend on them. Axes are principal components of sampled rows of both
sides (Jolliffe 2002, Principal Component Analysis, 2nd ed.; ``miner.knn.core.codes``). Coarse
precisions and few axes take few operations, but more bounds exceed floors, and exact cosines take
time. Functions that choose may load torch (``miner.knn.core.products.low_precision_pays``).
``source`` (N, D) and ``target`` (M, D) are unit rows, and ``k`` is the number of neighbours.
"""

from __future__ import annotations

import logging
from functools import cache, cached_property, partial

import numpy as np

from miner.arrays import IntArray, Matrix, evenly_spaced
from miner.knn.core.codes import Precision, encode_both
from miner.knn.core.passes import find_hits
from miner.knn.core.products import (
    COLUMNS,
    DIM,
    FLOAT32_MAX_DIMENSIONS,
    INT8_DIMENSIONS,
    INT8_MAX,
    LARGE,
    ROWS,
    blas_seconds_of,
    largest_code,
    low_precision_pays,
    numbers_of,
    seconds_of,
    torch_is_loaded,
)
from miner.threads import blocks, map_in_threads, on_one_thread

logger = logging.getLogger(__name__)

TRIAL_ROWS = 64  # per side
PART_TRIAL_ROWS = 32  # per side, if the search is one of many parts
TRIAL_COLUMNS = 2048  # sampled for the rows of a trial
BLOCK_COLUMNS = 8192  # of a search in float32
# Shares of the columns that are searched already when a product is compared with a floor.
SEARCHED = (np.arange(32) + 0.5) / 32
# Seconds of a hit, and of its exact cosine per dimension (measured in 256 and 1,024 dimensions).
HIT, COSINE = 1e-7, 1e-10
# Candidates per row on devices, and the share of rows for which they are enough.
MAX_KEPT, SPARE, SHARE = 64, 4, 0.98
MEASURED: tuple[Precision, ...] = ("int8", "int16", "bfloat16", "float32")
# Axes.
STEP = 64  # numbers of axes to try are multiples; the size of a Hadamard matrix
MOST_TRIED = 8
SAMPLED_ROWS = 4096  # per side
FLAT = 0.75  # share of dimensions, above which rows are about as long along all axes
MIN_SECONDS = 5.0  # of a search in one thread, for which the trials pay


def product_rates() -> dict[Precision, float]:
    """Return the operations per second of one thread, by precision.

    A multiply-add is two operations. Products are also compared with floors that none exceeds.
    Rates are measured once, in about 70 milliseconds, and again after torch is loaded. Omitted are
    precisions that fail on this machine, bfloat16 until torch is loaded, and int16 if int8 products
    of full codes are exact.
    """
    return _rates(torch_is_loaded())


@cache
def _rates(with_torch: bool) -> dict[Precision, float]:
    return on_one_thread(partial(_measure_products, with_torch))


def _measure_products(with_torch: bool) -> dict[Precision, float]:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, DIM), dtype=np.float32) for rows in (ROWS, COLUMNS))
    floors = (np.full(ROWS, LARGE, np.float32), np.full(COLUMNS, LARGE, np.float32))
    omitted = {"bfloat16": not with_torch, "int16": largest_code() == INT8_MAX}
    rates: dict[Precision, float] = {}
    for precision in MEASURED:
        if omitted.get(precision):
            continue
        try:
            work = partial(find_hits, *encode_both(x, y, precision), *floors)
            seconds = (blas_seconds_of if precision == "float32" else seconds_of)(work)
            rates[precision] = 2 * x.size * len(y) / seconds
        except (RuntimeError, AttributeError, ValueError, ImportError) as error:  # of torch
            logger.debug("no %s products on this machine: %s", precision, error)
    shown = ", ".join(f"{name} {rate / 1e9:.0f}" for name, rate in rates.items())
    logger.debug("products of one thread, 10^9 operations a second: %s", shown)
    return rates


def type_of_integers(dim: int, operations: float) -> type[np.number]:
    """Return the fastest NumPy type with exact products of codes up to 127.

    It is int8, int16, float32, or float64, which counts as half as fast as float32. ``dim`` is the
    number of codes per row, and ``operations`` the number to compute, two for each multiply-add.
    """
    narrow = dim <= FLOAT32_MAX_DIMENSIONS
    floats = np.float32 if narrow else np.float64
    if dim >= INT8_DIMENSIONS or not low_precision_pays(operations):
        return floats
    rates, integers = product_rates(), np.int8 if largest_code() == INT8_MAX else np.int16
    rate = rates.get("int8" if integers is np.int8 else "int16", 0.0)
    is_faster = rate > rates["float32"] * (1 if narrow else 0.5)
    return integers if is_faster else floats


def choose(
    source: Matrix, target: Matrix, *, k: int, precision: Precision | None, tried: int = TRIAL_ROWS
) -> Precision:
    """Return ``precision``, unchecked, or the fastest one if it is None.

    Up to ``tried`` rows of each side are searched in float32. With an empty side, the fastest is
    float32.
    """
    return precision or _fastest(_TwoWayTrial(source, target, k, tried))


def choose_codes(
    source: Matrix, target: Matrix, *, k: int, precision: Precision | None
) -> tuple[Precision, Matrix | None]:
    """Choose the precision like ``choose``, and the fastest axes.

    Axes are orthonormal columns, float32 (D, D'). None means that codes without axes are as fast,
    or that trials don't pay.
    """
    trial = _TwoWayTrial(source, target, k, TRIAL_ROWS)
    chosen = precision or _fastest(trial)
    return chosen, _best_axes(trial, chosen)


def _fastest(trial: _TwoWayTrial) -> Precision:
    operations, dim = trial.operations, trial.dim
    rates = product_rates() if operations and low_precision_pays(operations) else {}
    fits = dim < INT8_DIMENSIONS
    usable = [each for each in rates if fits or each not in ("int8", "int16")]
    return min(usable, key=trial.seconds, default="float32")


def _best_axes(trial: _TwoWayTrial, precision: Precision) -> Matrix | None:
    dim, rate = trial.dim, product_rates().get(precision)
    if not rate or dim <= STEP or trial.operations < MIN_SECONDS * rate:
        return None
    scatter = scatter_of(*trial.sides)
    # The squared sum of the axes' square lengths by the sum of their squares: D if all are equal.
    if scatter.trace() ** 2 > FLAT * dim * np.square(scatter).sum():
        return None
    components, rests = principal_components(scatter)
    best, least = None, trial.seconds(precision)
    gap = float(np.mean([each.gap for each in trial.trials]))
    step = STEP * -(-dim // (STEP * MOST_TRIED))
    for width in range(step, dim, step):
        if rests[width] > gap:  # most bounds would exceed floors
            continue
        axes = mixed(components[:, :width])
        seconds = trial.seconds(precision, axes)
        if seconds < least:
            best, least = axes, seconds
        elif best is not None:
            break
    return best


def scatter_of(source: Matrix, target: Matrix) -> Matrix:
    """Return the mean products of coordinates of both sides, float32 (D, D).

    Neither side is empty. Up to 4,096 rows of each are evenly sampled, and each side's mean is
    subtracted. Both sides count equally.
    """
    scatter = np.zeros((source.shape[1],) * 2, dtype=np.float32)
    for side in (source, target):
        sample = side[evenly_spaced(len(side), min(SAMPLED_ROWS, len(side)))]
        sample = sample - sample.mean(axis=0)
        # Not x.T @ x, for which OpenBLAS returns NaN on an emulated Arm CPU (qemu 7.2).
        scatter += sample.T @ (sample / (2 * len(sample)))
    return scatter


def principal_components(scatter: Matrix) -> tuple[Matrix, Matrix]:
    """Return principal components, the longest first, by ``scatter_of``.

    Returns:
        The components, orthonormal columns, float32 (D, D), and the mean square length of rows
        beyond the first 0 to D - 1 components, float32 (D,).
    """
    lengths, components = np.linalg.eigh(scatter)
    return components[:, ::-1], np.cumsum(lengths, dtype=np.float32)[::-1]


def mixed(axes: Matrix) -> Matrix:
    """Rotate orthonormal axes (D, D') among themselves, for even coordinates.

    D' is a multiple of 64. A Hadamard matrix multiplies groups of 64 axes, each D' / 64-th one.
    Without it, the largest coordinates would make int8 codes of all others coarse.
    """
    hadamard: Matrix = np.ones((1, 1), dtype=np.float32)
    while len(hadamard) < STEP:
        hadamard = np.kron(hadamard, np.array([[1, 1], [1, -1]], np.float32) / np.float32(2**0.5))
    groups: Matrix = np.swapaxes(axes.reshape(len(axes), STEP, -1), 1, 2) @ hadamard
    return np.swapaxes(groups, 1, 2).reshape(axes.shape)


def candidates_per_row(source: Matrix, target: Matrix, *, k: int, precision: Precision) -> int:
    """Return how many largest products contain the k nearest of most rows.

    Neither side is empty. The number is from k + 4 to max(64, k + 4).
    """
    both = _TwoWayTrial(source, target, k, TRIAL_ROWS)
    counts, least = [trial.hidden(precision) for trial in both.trials], k + SPARE
    return int(np.clip(np.quantile(np.concatenate(counts), SHARE) + 2, least, max(MAX_KEPT, least)))


class _TwoWayTrial:
    """Estimates of a search, from trials of both directions.

    ``operations`` is the number for all products in all ``dim`` dimensions.
    """

    def __init__(self, source: Matrix, target: Matrix, k: int, rows: int) -> None:
        self.sides, self._k, self._rows = (source, target), k, rows
        self.dim, self.operations = source.shape[1], 2 * source.size * len(target)

    @cached_property
    def trials(self) -> list[_Trial]:
        return [_Trial(*sides, self._k, self._rows) for sides in (self.sides, self.sides[::-1])]

    def seconds(self, precision: Precision, axes: Matrix | None = None) -> float:
        """Return the estimated seconds of one thread, without reading vectors."""
        rates, (rows, columns) = product_rates(), map(len, self.sides)
        width = self.dim if axes is None else axes.shape[1]
        hits = rows * columns * sum(trial.share_of_hits(precision, axes) for trial in self.trials)
        turning = 0 if axes is None else 2 * (rows + columns) * self.dim * width
        products = 2 * rows * columns * width / rates[precision] + turning / rates["float32"]
        logger.debug("%s, %d axes: %.3g exact cosines", precision, width, hits)
        return float(products + hits * (HIT + self.dim * COSINE))


class _Trial:
    """A search in float32 for the nearest of some rows of a side.

    ``gap`` is the mean difference of a row's floors and cosines.
    """

    def __init__(self, side: Matrix, other: Matrix, k: int, rows: int) -> None:
        self._rows = side[:: max(1, -(-len(side) // rows))]
        self._columns = other[evenly_spaced(len(other), min(TRIAL_COLUMNS, len(other)))]
        ranks = np.ceil(k / SEARCHED).astype(int)
        self._cosines, ids = _nearest(self._rows, other, max(ranks.max(), MAX_KEPT + 1))
        place = min(k, len(other)) - 1
        self._least, self._last = self._cosines[:, place], other[ids[:, place]]
        self._floors = self._cosines[:, np.minimum(ranks, len(other)) - 1]
        self.gap = float(self._floors.mean() - (self._rows @ self._columns.T).mean())

    def share_of_hits(self, precision: Precision, axes: Matrix | None) -> float:
        """Return the share of columns whose bounds exceed a row's floor."""
        left, right = encode_both(self._rows, self._columns, precision, axes=axes)
        products = numbers_of(left.numbers) @ numbers_of(right.numbers).T
        products *= left.scale[:, None] * right.scale
        bounds = products + left.slack * np.abs(products) + left.bias[:, None] + right.bias
        return 1 - float((bounds[:, None] <= self._floors[:, :, None]).mean())  # NaN is a hit

    def hidden(self, precision: Precision) -> IntArray:
        """Count the nearest rows whose bounds may exceed the k-th cosine, (R,)."""
        # Excesses are measured on nearest rows: with relative rounding, theirs are the largest.
        left, right = encode_both(self._rows, self._last, precision)
        codes = numbers_of(left.numbers), numbers_of(right.numbers)
        products = np.einsum("nd,nd->n", *codes) * left.scale * right.scale
        bounds = products + left.slack * np.abs(products) + left.bias + right.bias
        excess = float((bounds - np.einsum("nd,nd->n", self._rows, self._last)).mean())
        return np.asarray((self._cosines >= (self._least - excess)[:, None]).sum(axis=1))


def _nearest(queries: Matrix, base: Matrix, count: int) -> tuple[Matrix, IntArray]:
    def search(columns: slice) -> tuple[Matrix, IntArray]:
        cosines, places = _largest(queries @ base[columns].T, count)
        return cosines, places + columns.start

    found = map_in_threads(search, blocks(len(base), BLOCK_COLUMNS))
    cosines, ids = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    cosines, places = _largest(cosines, count)
    return cosines, np.take_along_axis(ids, places, axis=1)


def _largest(table: Matrix, count: int) -> tuple[Matrix, IntArray]:
    count = min(count, table.shape[1])
    places = np.argpartition(table, table.shape[1] - count, axis=1)[:, table.shape[1] - count :]
    order = np.argsort(-np.take_along_axis(table, places, axis=1), axis=1)
    places = np.take_along_axis(places, order, axis=1)
    return np.take_along_axis(table, places, axis=1), places
