"""Choose the fastest precision, and the number of candidates per row.

Neither changes a result: candidates of any precision are rescored and proven complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from miner.arrays import IntArray, Matrix
from miner.knn.core.codes import Precision, encode_both
from miner.knn.core.passes import find_hits
from miner.knn.core.products import (
    COLUMNS,
    DIM,
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

TRIAL_ROWS, TRIAL_COLUMNS = 128, 8192  # rows per side of a trial, columns per block
PART_TRIAL_ROWS = 32  # per side, if the search is one of many parts
MAX_KEPT = 64  # candidates per row
SPARE = 4  # candidates per row beyond k
SHARE = 0.98  # of rows with enough candidates; the others are searched again
# Cost of a row's second search, in products: the product, and exact cosines of all rows as similar,
# which may be many more than a trial finds.
SECOND_SEARCH = 4
CANDIDATE = 1e-6  # seconds until it is rescored (20,000 lines per side, 256 dimensions)
SEARCHED: tuple[Precision, ...] = ("int8", "int16", "bfloat16", "float32")
FLOAT32_MAX_DIMENSIONS = 1040  # 127 * 127 * D stays below 2**24: float32 sums it exactly


class Tuning(NamedTuple):
    """The precision of products, and the number of candidates per row."""

    precision: Precision
    kept: int


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
) -> Tuning:
    """Choose the number of candidates, and the ``precision`` if it is None.

    ``source`` and ``target`` are unit rows (N, D) and (M, D), and ``k`` is the number of
    neighbours. ``tried`` rows of each side are searched in float32. Rows are searched again if a
    precision's rounding could hide more rows than candidates are kept, which counts as its cost.
    With an empty side, nothing is checked, and the default precision is float32.

    Raises:
        ValueError: The precision is unknown, overflows, or is inexact on this CPU.
        ModuleNotFoundError: int8 products need torch, which is not installed.
    """
    if len(source) == 0 or len(target) == 0:
        return Tuning(precision=precision or "float32", kept=k)
    trials = _trial(source, target, k, tried), _trial(target, source, k, tried)
    pays = low_precision_pays(2 * source.size * len(target))
    rates = product_rates() if pays else {"float32": 1.0}
    chosen, least = Tuning(precision="float32", kept=k + SPARE), np.inf
    for candidate in (precision,) if precision else SEARCHED:
        if not (precision or candidate in rates):
            continue
        integers = candidate in ("int8", "int16")
        if integers and source.shape[1] >= INT8_DIMENSIONS and not precision:
            continue
        hidden = np.concatenate([trial(candidate) for trial in trials])
        kept = int(np.clip(np.quantile(hidden, SHARE) + 2, k + SPARE, max(MAX_KEPT, k + SPARE)))
        again = float((hidden >= kept).mean())
        cost = 2 * source.shape[1] * (1 + SECOND_SEARCH * again) / rates.get(candidate, 1.0)
        cost += CANDIDATE * kept * (1 / len(source) + 1 / len(target))
        logger.debug(
            "%s: %d candidates per row, %.0f%% of rows searched again",
            candidate,
            kept,
            100 * again,
        )
        if cost < least:
            chosen, least = Tuning(precision=candidate, kept=kept), cost
    return chosen


def _trial(side: Matrix, other: Matrix, k: int, count: int) -> Callable[[Precision], IntArray]:
    """Return a count of each row's bounds above its k-th cosine, by precision."""
    rows = side[:: max(1, -(-len(side) // count))]
    cosines, ids = _nearest(rows, other, max(MAX_KEPT, k) + 1)
    place = min(k, len(other)) - 1
    last, gaps = other[ids[:, place]], cosines[:, place, None] - cosines

    def hidden(precision: Precision) -> IntArray:
        left, right = encode_both(rows, last, precision)
        codes = numbers_of(left.numbers), numbers_of(right.numbers)
        products = np.einsum("nd,nd->n", *codes) * left.scale * right.scale
        bounds = products + left.slack * np.abs(products) + left.bias + right.bias
        # Of nearest rows: with relative rounding, their bounds exceed cosines by most.
        excess = (bounds - np.einsum("nd,nd->n", rows, last)).mean()
        return np.asarray((gaps <= excess).sum(axis=1))

    return hidden


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
