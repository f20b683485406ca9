"""The fastest precision of products here, and how many candidates the vectors ask for.

Neither changes a result: candidates are rescored and proven complete in any precision.
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
    product,
    seconds_of,
    torch_is_loaded,
)
from miner.threads import blocks, on_one_thread, run_in_threads

logger = logging.getLogger(__name__)

# Rows of each side whose neighbours are looked at; the most candidates that are kept of a row; and
# the share of rows for which they shall do. The others are searched again.
TRIAL_ROWS, TRIAL_COLUMNS = 128, 8192
PART_TRIAL_ROWS = 32  # of a search that is one of many parts
MAX_KEPT, SPARE, SHARE = 64, 4, 0.98
# Products that a row's second search comes to, in one direction: the product, and exact cosines of
# all that lies as near, which may be many more than are looked at here.
SECOND_SEARCH = 4
# Seconds that a candidate costs until it is rescored (20,000 lines a side, 256 dimensions).
CANDIDATE = 1e-6
SEARCHED: tuple[Precision, ...] = ("int8", "int16", "bfloat16", "float32")
FLOAT32_MAX_DIMENSIONS = 1040  # 127 * 127 * D stays below 2**24: float32 sums it exactly


class Tuning(NamedTuple):
    """The way to generate candidates: the precision of the product, and how many a row keeps."""

    precision: Precision
    kept: int


def product_rates() -> dict[Precision, float]:
    """Return operations a second (a multiply-add is two) of one thread, by type of codes.

    They are those of tiles whose products are all compared with floors. Measured once, in about 50
    milliseconds, and again when torch was loaded. Types that fail here are left out; int16 holds
    int8 codes that the int8 product would sum with an error.
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
            logger.debug("no %s products here: %s", precision, error)
    shown = ", ".join(f"{name} {rate / 1e9:.0f}" for name, rate in rates.items())
    logger.debug("products of one thread, 10^9 operations a second: %s", shown)
    return rates


def type_of_integers(dim: int, operations: float) -> type[np.number]:
    """Return the fastest type in which products of int8 codes up to 127 are exact: D of them.

    The others are half as fast at the most: float64 has half as many lanes as float32.
    """
    narrow = dim <= FLOAT32_MAX_DIMENSIONS
    floats = np.float32 if narrow else np.float64
    integers = np.int8 if largest_code() == INT8_MAX else np.int16
    if dim >= INT8_DIMENSIONS or not low_precision_pays(operations):
        return floats
    rates = product_rates()
    rate = rates.get("int8" if integers is np.int8 else "int16", 0.0)
    faster = rate > rates["float32"] * (1 if narrow else 0.5)
    return integers if faster else floats


def choose(
    source: Matrix, target: Matrix, *, k: int, precision: Precision | None, tried: int = TRIAL_ROWS
) -> Tuning:
    """Return the precision (unless given) and the candidates a row with the shortest search.

    So many rows of each side are tried, by a search in float32. A precision whose rounding could
    hide more of the others' rows than are kept leaves those rows to a second search.
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
        logger.debug("%s: %d candidates, %.0f %% again", candidate, kept, 100 * again)
        if cost < least:
            chosen, least = Tuning(precision=candidate, kept=kept), cost
    return chosen


def _trial(side: Matrix, other: Matrix, k: int, count: int) -> Callable[[Precision], IntArray]:
    """Search ``count`` rows, and return what says how many bounds of each reach its k-th cosine."""
    rows = side[:: max(1, -(-len(side) // count))]
    cosines, ids = _nearest(rows, other, max(MAX_KEPT, k) + 1)
    place = min(k, len(other)) - 1
    last, gaps = other[ids[:, place]], cosines[:, place, None] - cosines

    def hidden(precision: Precision) -> IntArray:
        left, right = encode_both(rows, last, precision)
        products = numbers_of(product(left.numbers, right.numbers).diagonal())
        products *= left.scale * right.scale
        bounds = products + left.slack * np.abs(products) + left.bias + right.bias
        # Of near rows, which exceed cosines by more than others, where rounding is relative.
        excess = (bounds - np.einsum("nd,nd->n", rows, last)).mean()
        return np.asarray((gaps <= excess).sum(axis=1))

    return hidden


def _nearest(queries: Matrix, base: Matrix, count: int) -> tuple[Matrix, IntArray]:
    """Return cosines and positions of each query's ``count`` nearest, or of all: in float32."""
    found: list[tuple[Matrix, IntArray]] = []

    def search(columns: slice) -> None:
        cosines, places = _largest(queries @ base[columns].T, count)
        found.append((cosines, places + columns.start))

    run_in_threads(search, blocks(len(base), TRIAL_COLUMNS))
    cosines, ids = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    cosines, places = _largest(cosines, count)
    return cosines, np.take_along_axis(ids, places, axis=1)


def _largest(table: Matrix, count: int) -> tuple[Matrix, IntArray]:
    """Return the ``count`` largest numbers of each row, or all, largest first, and their places."""
    count = min(count, table.shape[1])
    places = np.argpartition(table, table.shape[1] - count, axis=1)[:, table.shape[1] - count :]
    order = np.argsort(-np.take_along_axis(table, places, axis=1), axis=1)
    places = np.take_along_axis(places, order, axis=1)
    return np.take_along_axis(table, places, axis=1), places
