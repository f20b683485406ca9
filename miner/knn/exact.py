"""Exact k nearest neighbours in both directions from one product.

Forward and backward search need the same matrix of similarities; each tile of it is computed once
and its best columns and best rows are both taken. Axes: ``N`` source rows, ``M`` target rows,
``D`` dimensions, ``C`` candidates kept for rescoring.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.rescore import check_search, rescore
from miner.knn.running import RunningBest

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

logger = logging.getLogger(__name__)

TILE_ROWS, TILE_COLUMNS = 1024, 4096  # 8 or 16 MiB: selection still finds the tile in the cache


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What products are computed in to propose candidates.

    ``spare`` candidates are kept beyond k, to absorb what rounding may reorder.
    """

    dtype: str
    spare: int


FLOAT32 = Precision(dtype="float32", spare=4)
BFLOAT16 = Precision(dtype="bfloat16", spare=8)


# Rows of a trial search, and the share of them that may be open for bfloat16 to be worth while:
# an open row is searched again in float32, at about five times the price.
TRIAL_ROWS = 128
MOST_OPEN = 0.05


def fastest_precision(source: Matrix, target: Matrix, *, k: int) -> Precision:
    """What ``search_both`` will be done soonest in; the result is the same.

    bfloat16 where the processor multiplies it in hardware, unless neighbours lie closer together
    than its rounding, which a search of a few source rows tells.
    """
    import torch

    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return FLOAT32
    trial = _Rounded(source[:: max(1, len(source) // TRIAL_ROWS)], BFLOAT16)
    base = _Rounded(target, BFLOAT16)
    found = _propose(trial, base, k)
    open_rows = _open_rows(trial, base, found, rescore(trial.rows, target, found.ids.numpy(), k=k))
    precision = BFLOAT16 if len(open_rows) <= MOST_OPEN * len(trial.rows) else FLOAT32
    logger.debug("%d of %d trial rows open: %s", len(open_rows), len(trial.rows), precision.dtype)
    return precision


def search_both(
    source: Matrix,
    target: Matrix,
    *,
    k: int,
    precision: Precision | None = None,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """The k nearest targets of each source and the k nearest sources of each target.

    Exact: a product in low precision proposes candidates, their cosines are recomputed in float64,
    and a row whose candidates cannot be proven complete (many equal or nearly equal neighbours) is
    searched again in higher precision. So the result is that of a full sort by (cosine descending,
    position ascending), whatever the tiles and the precision. Costs 2 * N * M * D operations in the
    product; working memory is a few tiles plus O((N + M) * C).

    Args:
        source: rows as ``miner.knn.rescore.unit_rows`` makes them, float32 (N, D).
        target: rows as ``unit_rows`` makes them, float32 (M, D).
        k: neighbours of each row; clipped to the size of the other side.
        precision: of the product; the fastest here unless given.
        progress: called with the number of similarities computed after each tile.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions.

    Raises:
        ValueError: k below 1, or rows of different dimensions.
    """
    check_search(source, target, k=k)
    precision = precision or fastest_precision(source, target, k=k)
    left, right = _Rounded(source, precision), _Rounded(target, precision)
    forward = left.nothing_found(k, of=len(target))
    backward = right.nothing_found(k, of=len(source))
    for top, first, tile in _tiles(left, right):
        forward.add(top, first, tile)
        backward.add(first, top, tile.T)
        progress(tile.numel())
    return (
        _certified(left, right, forward, k=min(k, len(target))),
        _certified(right, left, backward, k=min(k, len(source))),
    )


class _Rounded:
    """Unit rows, and the same rounded to the precision of the product.

    ``error`` is float64 (N,): the length of each row's rounding error.
    """

    def __init__(self, rows: Matrix, precision: Precision) -> None:
        import torch

        self.rows = rows
        self.precision = precision
        exact = torch.from_numpy(rows)
        self.rounded = exact.to(getattr(torch, precision.dtype))
        self.error = np.zeros(len(rows))
        if precision.dtype != FLOAT32.dtype:
            for start in range(0, len(rows), TILE_ROWS):
                block = slice(start, start + TILE_ROWS)
                self.error[block] = (exact[block] - self.rounded[block]).norm(dim=1).numpy()

    def nothing_found(self, k: int, *, of: int) -> RunningBest:
        """Room for the candidates of each row among ``of`` others."""
        kept = min(k + self.precision.spare, of)
        return RunningBest(len(self.rows), kept, self.rounded.dtype)


def _tiles(left: _Rounded, right: _Rounded) -> Iterator[tuple[int, int, torch.Tensor]]:
    """The product of all rows in tiles: first row, first column, similarities."""
    x, y = left.rounded, right.rounded
    for top in range(0, len(x), TILE_ROWS):
        for first in range(0, len(y), TILE_COLUMNS):
            yield top, first, x[top : top + TILE_ROWS] @ y[first : first + TILE_COLUMNS].T


def _propose(queries: _Rounded, base: _Rounded, k: int) -> RunningBest:
    """Candidates in one direction."""
    found = queries.nothing_found(k, of=len(base.rows))
    for top, first, tile in _tiles(queries, base):
        found.add(top, first, tile)
    return found


def _certified(queries: _Rounded, base: _Rounded, found: RunningBest, *, k: int) -> Neighbours:
    """Rescore the candidates; search again for those rows whose candidates may be incomplete."""
    neighbours = rescore(queries.rows, base.rows, found.ids.numpy(), k=k)
    open_rows = _open_rows(queries, base, found, neighbours)
    for start in range(0, len(open_rows), TILE_ROWS):
        rows = open_rows[start : start + TILE_ROWS]
        again = _search_again(queries.rows[rows], base, k=k)
        neighbours.ids[rows], neighbours.cosines[rows] = again.ids, again.cosines
    return neighbours


def _open_rows(
    queries: _Rounded, base: _Rounded, found: RunningBest, neighbours: Neighbours
) -> NDArray[np.int64]:
    """The rows whose candidates may be incomplete.

    Whatever was left out has a product of at most the least kept one, so a cosine of at most that
    plus the rounding of products. A row is complete if its last neighbour is above.
    """
    if found.values.shape[1] == len(base.rows) or len(queries.rows) == 0:
        return np.empty(0, dtype=np.int64)
    least_kept = found.values[:, -1].double().numpy()
    left_out = least_kept + _rounding(queries, base, least_kept)
    return np.flatnonzero(neighbours.cosines[:, -1] <= left_out)


def _search_again(queries: Matrix, base: _Rounded, *, k: int) -> Neighbours:
    """One direction in the next higher precision: float32 after bfloat16, then float64."""
    if base.precision.dtype == FLOAT32.dtype:
        return _search_in_full(queries, base.rows, k=k)
    left, right = _Rounded(queries, FLOAT32), _Rounded(base.rows, FLOAT32)
    return _certified(left, right, _propose(left, right, k), k=k)


def _rounding(
    queries: _Rounded, base: _Rounded, product: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far a product (N,) of rounded rows may lie below the cosine that ``rescore`` gives.

    By Cauchy and Schwarz, rounding x and y moves their dot product by at most |dx| |y| + |x| |dy|;
    then come the summation in float32 and, in bfloat16, the rounding of the result.
    """
    inputs = queries.error + (1 + queries.error) * base.error.max(initial=0.0)
    result = 0.0 if base.precision.dtype == FLOAT32.dtype else 2.0**-8
    bound: NDArray[np.float64] = 1.01 * inputs + result * np.abs(product)
    return bound + _product_rounding(queries.rows.shape[1])


def _product_rounding(dim: int) -> float:
    """How far a float32 product may lie below the cosine that ``rescore`` gives, at most.

    A dot product of unit vectors errs by at most D * u / (1 - D * u) with u = 2**-24 (Higham 2002,
    section 3.1), rounding the cosine to float32 by u more. One per cent covers the denominator for
    D up to 160,000, one more u that unit rows are not quite unit.
    """
    return 1.01 * (dim + 2) * 2.0**-24


def _search_in_full(queries: Matrix, base: Matrix, *, k: int) -> Neighbours:
    """The k nearest rows of ``base``, by all cosines in float64.

    They are exact for unit rows, so equal to those of ``rescore``. Four or more times the price
    of the float32 search, but no ties or duplicates make it any higher.
    """
    import torch

    x, y = torch.from_numpy(queries).double(), torch.from_numpy(base)
    cosines = torch.empty((len(x), 0))
    ids = torch.empty((len(x), 0), dtype=torch.int64)
    for left in range(0, len(y), TILE_COLUMNS):
        tile = (x @ y[left : left + TILE_COLUMNS].double().T).float()
        columns = torch.arange(left, left + tile.shape[1]).expand(tile.shape)
        # Ids ascend from left to right, so a stable sort leaves ties in their order.
        cosines, order = torch.cat([cosines, tile], dim=1).sort(dim=1, descending=True, stable=True)
        cosines = cosines[:, :k]
        ids = torch.cat([ids, columns], dim=1).gather(1, order[:, :k])
    return Neighbours(ids=ids.numpy(), cosines=cosines.numpy())
