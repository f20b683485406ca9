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

from miner.knn.core.codes import INT8_MOST_DIMENSIONS, PRECISIONS, Precision, encode_both, product
from miner.threads import on_one_thread

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
class Tuning:
    """The way to generate candidates: the precision of the product, and how many a row keeps."""

    precision: Precision
    kept: int


@cache
def product_rates() -> dict[Precision, float]:
    """Operations a second (a multiplication and an addition are two) of one thread's products.

    Measured once in a process, in some 50 milliseconds. Precisions that fail here are left out.
    """
    return on_one_thread(_measure_products)


def _measure_products() -> dict[Precision, float]:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, DIM), dtype=np.float32) for rows in (ROWS, COLUMNS))
    rates: dict[Precision, float] = {}
    for precision in PRECISIONS:
        try:
            left, right = encode_both(x, y, precision)
            seconds = min(_seconds(left.numbers, right.numbers) for _ in range(REPEATS))
        except (RuntimeError, AttributeError, ValueError) as error:  # of other builds of torch
            logger.debug("no %s products here: %s", precision, error)
            continue
        rates[precision] = 2 * ROWS * COLUMNS * DIM / seconds
    told = ", ".join(f"{precision} {rate / 1e9:.0f}" for precision, rate in rates.items())
    logger.debug("products of one thread, 10^9 operations a second: %s", told)
    return rates


def _seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    start = time.perf_counter()
    product(left, right)
    return time.perf_counter() - start


def choose(source: Matrix, target: Matrix, *, k: int, precision: Precision | None) -> Tuning:
    """The precision (unless given) and the number of candidates that make a search soonest done.

    A few rows of each side are searched in float32. A precision whose rounding could hide more of
    the others' rows than are kept leaves those rows to a second search. Costs TRIAL_ROWS (N + M)
    products.
    """
    if len(source) == 0 or len(target) == 0:
        return Tuning(precision=precision or "float32", kept=k)
    samples = [_Sample.of(source, target, k), _Sample.of(target, source, k)]
    rates = product_rates()
    chosen, least = Tuning(precision="float32", kept=k + SPARE), np.inf
    for candidate in (precision,) if precision else rates:
        if candidate == "int8" and source.shape[1] >= INT8_MOST_DIMENSIONS and not precision:
            continue
        hidden = np.concatenate([sample.hidden(candidate) for sample in samples])
        kept = int(np.clip(np.quantile(hidden, SHARE) + 2, k + SPARE, max(MOST_KEPT, k + SPARE)))
        again = float((hidden >= kept).mean())
        cost = (1 + SECOND_SEARCH * again) / rates.get(candidate, 1.0)
        logger.debug("%s: %d candidates, %.0f %% again", candidate, kept, 100 * again)
        if cost < least:
            chosen, least = Tuning(precision=candidate, kept=kept), cost
    return chosen


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """Some rows of a side, (Q, D), and the other side's k-th nearest of each, (Q, D).

    ``gaps`` (Q, any) says how far below the k-th cosine those of the nearest lie.
    """

    rows: Matrix
    last: Matrix
    gaps: NDArray[np.float32]

    @classmethod
    def of(cls, side: Matrix, other: Matrix, k: int) -> _Sample:
        rows = side[:: max(1, -(-len(side) // TRIAL_ROWS))]
        cosines, ids = _nearest(rows, other, max(MOST_KEPT, k) + 1)
        last = min(k, len(other)) - 1
        return cls(rows=rows, last=other[ids[:, last]], gaps=cosines[:, last, None] - cosines)

    def hidden(self, precision: Precision) -> NDArray[np.int64]:
        """Of how many of the other side's rows the bounds reach the k-th cosine, about: (Q,).

        Bounds of near rows exceed their cosines by more than others, where rounding is relative.
        """
        left, right = encode_both(self.rows, self.last, precision)
        products = product(left.numbers, right.numbers).diagonal().float().numpy()
        products *= left.scale * right.scale
        bounds = products + left.slack * np.abs(products) + left.bias + right.bias
        excess = (bounds - np.einsum("nd,nd->n", self.rows, self.last)).mean()
        reached: NDArray[np.int64] = (self.gaps <= excess).sum(axis=1)
        return reached


def _nearest(
    queries: Matrix, base: Matrix, count: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The cosines and positions of each query's ``count`` nearest, or of all: in float32."""
    import torch

    x = torch.from_numpy(queries)
    cosines, ids = torch.empty((len(x), 0)), torch.empty((len(x), 0), dtype=torch.int64)
    for start in range(0, len(base), TRIAL_COLUMNS):
        tile = x @ torch.from_numpy(base[start : start + TRIAL_COLUMNS]).T
        found = tile.topk(min(count, tile.shape[1]), dim=1)
        cosines, ids = (
            torch.cat([cosines, found.values], 1),
            torch.cat([ids, found.indices + start], 1),
        )
        cosines, places = cosines.topk(min(count, cosines.shape[1]), dim=1)
        ids = ids.gather(1, places)
    return cosines.numpy(), ids.numpy()
