"""What this machine computes products in soonest, and how many candidates the vectors ask for.

Neither changes a result: candidates are rescored and proven complete in any precision.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from miner.knn.codes import INT8_MOST_DIMENSIONS, PRECISIONS, Precision, encode_both, product

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

logger = logging.getLogger(__name__)

# A trial product: it takes some milliseconds in each precision.
ROWS, COLUMNS, DIM = 256, 1024, 512
REPEATS = 5

# Rows of each side whose neighbours are looked at; the most candidates that are kept of a row; and
# the share of rows for which they shall do. The others are searched again.
TRIAL_ROWS = 128
TRIAL_COLUMNS = 8192
MOST_KEPT = 64
SHARE = 0.98
SPARE = 4
# Products that a row's second search comes to, in one direction: the product, and exact cosines of
# all that lies as near, which may be many more than are looked at here.
SECOND_SEARCH = 4


@dataclass(frozen=True, kw_only=True)
class Proposing:
    """How candidates are proposed: the precision of the product, and how many a row keeps."""

    precision: Precision
    kept: int


@cache
def product_rates() -> dict[Precision, float]:
    """Operations a second (a multiplication and an addition are two) of one thread's products.

    Measured once in a process, in some 50 milliseconds. Precisions that fail here are left out.
    """
    import torch

    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, DIM), dtype=np.float32) for rows in (ROWS, COLUMNS))
    rates: dict[Precision, float] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for precision in PRECISIONS:
            try:
                left, right = encode_both(x, y, precision)
                seconds = min(_seconds(left.numbers, right.numbers) for _ in range(REPEATS))
            except (RuntimeError, AttributeError, ValueError) as error:  # of other builds of torch
                logger.debug("no %s products here: %s", precision, error)
                continue
            rates[precision] = 2 * ROWS * COLUMNS * DIM / seconds
    finally:
        torch.set_num_threads(threads)
    told = ", ".join(f"{precision} {rate / 1e9:.0f}" for precision, rate in rates.items())
    logger.debug("products of one thread, 10^9 operations a second: %s", told)
    return rates


def _seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    start = time.perf_counter()
    product(left, right)
    return time.perf_counter() - start


def choose(source: Matrix, target: Matrix, *, k: int, precision: Precision | None) -> Proposing:
    """The precision (unless given) and the number of candidates that make a search soonest done.

    A few rows of each side are searched in float32. A precision whose rounding could hide more of
    the others' rows than are kept leaves those rows to a second search. Costs TRIAL_ROWS (N + M)
    products.
    """
    sample = source[_evenly(len(source))], target[_evenly(len(target))]
    gaps = np.concatenate([_gaps(sample[0], target, k), _gaps(sample[1], source, k)])
    if len(gaps) == 0:
        return Proposing(precision=precision or "float32", kept=k)
    rates = product_rates()
    chosen, least = Proposing(precision="float32", kept=k + SPARE), np.inf
    for candidate in (precision,) if precision else rates:
        if candidate == "int8" and source.shape[1] >= INT8_MOST_DIMENSIONS and not precision:
            continue
        hidden = (gaps <= _rounding(*sample, candidate)).sum(axis=1)
        kept = int(np.clip(np.quantile(hidden, SHARE) + 2, k + SPARE, max(MOST_KEPT, k + SPARE)))
        again = float((hidden >= kept).mean())
        cost = (1 + SECOND_SEARCH * again) / rates.get(candidate, 1.0)
        logger.debug("%s: %d candidates, %.0f %% again", candidate, kept, 100 * again)
        if cost < least:
            chosen, least = Proposing(precision=candidate, kept=kept), cost
    return chosen


def _evenly(rows: int) -> slice:
    return slice(None, None, max(1, -(-rows // TRIAL_ROWS)))


def _gaps(queries: Matrix, base: Matrix, k: int) -> NDArray[np.float32]:
    """How far below the k-th cosine of each query those of its next neighbours lie, (Q, any)."""
    import torch

    x, best = torch.from_numpy(queries), torch.empty((len(queries), 0))
    for start in range(0, len(base), TRIAL_COLUMNS):
        tile = x @ torch.from_numpy(base[start : start + TRIAL_COLUMNS]).T
        best = torch.cat([best, tile], dim=1)
        best = best.topk(min(best.shape[1], max(MOST_KEPT, k) + 1), dim=1).values
    gaps = np.full((len(queries), max(MOST_KEPT, k) + 1), np.inf, dtype=np.float32)
    last = best[:, min(k, best.shape[1]) - 1, None] if best.shape[1] else best
    gaps[:, : best.shape[1]] = (last - best).numpy()
    return gaps


def _rounding(source: Matrix, target: Matrix, precision: Precision) -> float:
    """By how much the bounds on cosines exceed them, about."""
    left, right = encode_both(source, target, precision)
    if len(left) == 0 or len(right) == 0:
        return 0.0
    exact = source @ target.T
    products = product(left.numbers, right.numbers).float().numpy()
    products *= left.scale[:, None] * right.scale
    products += left.slack * np.abs(products) + left.bias[:, None] + right.bias
    return float((products - exact).mean())
