"""Choose the fastest precision, which changes no result of a search."""

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
    largest_code,
    low_precision_pays,
    numbers_of,
    seconds_of,
    torch_is_loaded,
)
from miner.threads import blocks, on_one_thread, run_in_threads

logger = logging.getLogger(__name__)

TRIAL_ROWS, TRIAL_COLUMNS = 64, 8192  # rows per side of a trial, columns per block
PART_TRIAL_ROWS = 32  # per side, if the search is one of many parts
# Seconds of an exact cosine per dimension (65,536 rows, 1,024 dimensions, AVX2).
COSINE = 2e-10
# Candidates per row on devices, and the share of rows for which they are enough.
MAX_KEPT, SPARE, SHARE = 64, 4, 0.98
SEARCHED: tuple[Precision, ...] = ("int8", "int16", "bfloat16", "float32")


def product_rates() -> dict[Precision, float]:
    """Return the operations per second of one thread, by precision.

    A multiply-add is two operations. Products are also compared with floors that none exceeds.
    Rates are measured once, in about 50 milliseconds, and again after torch is loaded. Omitted are
    precisions that fail on this machine, bfloat16 without torch, and int16 if int8 products of full
    codes are exact.
    """
    return _rates(torch_is_loaded())


@cache
def _rates(with_torch: bool) -> dict[Precision, float]:
    return on_one_thread(partial(_measure_products, with_torch))


def _measure_products(with_torch: bool) -> dict[Precision, float]:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, DIM), dtype=np.float32) for rows in (ROWS, COLUMNS))
    floors = (np.full(ROWS, LARGE, np.float32), np.full(COLUMNS, LARGE, np.float32))
    rates: dict[Precision, float] = {}

    for precision in SEARCHED:
        if precision == "bfloat16" and not with_torch:
            continue
        if precision == "int16" and largest_code() == INT8_MAX:
            continue
        try:
            work = partial(find_hits, *encode_both(x, y, precision), *floors)
            rates[precision] = 2 * x.size * len(y) / seconds_of(work)
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
    """Return ``precision``, or the fastest one if it is None.

    ``source`` and ``target`` are unit rows (N, D) and (M, D), and ``k`` is the number of
    neighbours. ``tried`` rows of each side are searched in float32. The more a precision rounds,
    the more bounds exceed the k-th cosine, and exact cosines take time. With an empty side, it is
    float32.
    """
    if precision or len(source) == 0 or len(target) == 0:
        return precision or "float32"
    operations = 2 * source.size * len(target)
    rates = product_rates() if low_precision_pays(operations) else {}
    if not rates:
        return "float32"
    trials = [_Trial(*sides, k, tried, k) for sides in ((source, target), (target, source))]
    seconds: dict[Precision, float] = {}
    for candidate in SEARCHED:
        integers = candidate in ("int8", "int16")
        if candidate not in rates or (integers and source.shape[1] >= INT8_DIMENSIONS):
            continue
        hits = len(source) * trials[0].hits(candidate) + len(target) * trials[1].hits(candidate)
        seconds[candidate] = operations / rates[candidate] + hits * source.shape[1] * COSINE
        logger.debug("%s: %.3g exact cosines", candidate, hits)
    return min(seconds, key=lambda candidate: seconds[candidate])


def candidates_per_row(source: Matrix, target: Matrix, *, k: int, precision: Precision) -> int:
    """Return how many products of a row contain its k nearest, for most rows.

    ``source`` (N, D) and ``target`` (M, D) are unit rows, which are not empty. The number is from k
    + 4 to the larger of 64 and that.
    """
    counts = [
        _Trial(*sides, k, TRIAL_ROWS, MAX_KEPT + 1).hidden(precision)
        for sides in ((source, target), (target, source))
    ]
    least = k + SPARE
    return int(np.clip(np.quantile(np.concatenate(counts), SHARE) + 2, least, max(MAX_KEPT, least)))


class _Trial:
    """A search in float32 for the ``count`` nearest of some rows of a side."""

    def __init__(self, side: Matrix, other: Matrix, k: int, rows: int, count: int) -> None:
        self._rows, self._other = side[:: max(1, -(-len(side) // rows))], other
        self._cosines, ids = _nearest(self._rows, other, max(count, k))
        place = min(k, len(other)) - 1
        self._least, self._last = self._cosines[:, place], other[ids[:, place]]

    def hits(self, precision: Precision) -> float:
        """Return the estimated number of a row's bounds above its k-th cosine."""
        return float((self._sampled >= self._lowest(precision)).mean()) * len(self._other)

    def hidden(self, precision: Precision) -> IntArray:
        """Count the nearest rows whose bounds may exceed the k-th cosine, (R,)."""
        return np.asarray((self._cosines >= self._lowest(precision)).sum(axis=1))

    @cached_property
    def _sampled(self) -> Matrix:
        # Cosines with evenly spaced columns, the same for all precisions.
        columns = min(TRIAL_COLUMNS, len(self._other))
        cosines: Matrix = self._rows @ self._other[evenly_spaced(len(self._other), columns)].T
        return cosines

    def _lowest(self, precision: Precision) -> Matrix:
        # Each row's least cosine whose bound may exceed the k-th cosine, (R, 1). Measured on
        # nearest rows: with relative rounding, their bounds exceed cosines by most.
        left, right = encode_both(self._rows, self._last, precision)
        codes = numbers_of(left.numbers), numbers_of(right.numbers)
        products = np.einsum("nd,nd->n", *codes) * left.scale * right.scale
        bounds = products + left.slack * np.abs(products) + left.bias + right.bias
        excess = float((bounds - np.einsum("nd,nd->n", self._rows, self._last)).mean())
        return (self._least - excess)[:, None]


def _nearest(queries: Matrix, base: Matrix, count: int) -> tuple[Matrix, IntArray]:
    parts: list[tuple[Matrix, IntArray]] = []

    def search(columns: slice) -> None:
        cosines, places = _largest(queries @ base[columns].T, count)
        parts.append((cosines, places + columns.start))

    run_in_threads(search, blocks(len(base), TRIAL_COLUMNS))
    cosines, ids = (
        np.concatenate(columns_of_parts, axis=1) for columns_of_parts in zip(*parts, strict=True)
    )
    cosines, places = _largest(cosines, count)
    return cosines, np.take_along_axis(ids, places, axis=1)


def _largest(table: Matrix, count: int) -> tuple[Matrix, IntArray]:
    count = min(count, table.shape[1])
    places = np.argpartition(table, table.shape[1] - count, axis=1)[:, table.shape[1] - count :]
    order = np.argsort(-np.take_along_axis(table, places, axis=1), axis=1)
    places = np.take_along_axis(places, order, axis=1)
    return np.take_along_axis(table, places, axis=1), places
