"""The cell join: the two-way search among rows that share a cell, for corpora past exact search.

Cells are Voronoi cells of k-means centroids, the same for both sides. Each row lies in its ``p``
nearest cells, and a pair is compared if it shares one. That is an inverted file written as a join:
both directions at once, one product for each pair and cell. With C even cells it costs p * p / C
of the exact search. What is found is the k best of all that share a cell with a row, so parts of a
side, searched with the same centroids, merge to what the whole finds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from miner.knn import passes
from miner.knn.calibration import choose
from miner.knn.candidates import Candidates
from miner.knn.codes import Codes, Precision, encode_both
from miner.knn.exact import search_both
from miner.knn.passes import Tile, blocks, loops_for, propose, search_on, settle
from miner.knn.rescore import check_search, unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from miner.arrays import Neighbours

    Matrix = NDArray[np.float32]

# Points for each cell that k-means is trained on, and its rounds; more move recall by less than the
# choice of seed does.
POINTS, ROUNDS = 20, 5
# A cell with this many times the mean load is split; even cells are the cheapest for their number.
CROWDED = 2.0
PROBES = 6


def default_cells(rows: int) -> int:
    """How many cells suit a larger side of so many rows: a power of two near 4 sqrt(rows).

    Assignment costs cells * (N + M) products and the join p * p * N * M / cells: equal at
    p * sqrt(rows / 2).
    """
    return 1 << max(0, round(math.log2(max(1.0, 4 * math.sqrt(rows)))))


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """``cells[COUNT][:probes=P]``: so many cells, None for the default, and P of them a row."""

    count: int | None
    probes: int


def names_cells(text: str) -> bool:
    """Whether this asks for a cell join, rightly or not."""
    return text.startswith("cells")


def parse_cells(text: str) -> CellSpec:
    """What ``cells``, ``cells4096`` or ``cells4096:probes=8`` asks for.

    Raises:
        ValueError: none of these.
    """
    match = re.fullmatch(r"cells([1-9]\d{0,8})?(?::probes=([1-9]\d{0,4}))?", text)
    if not match:
        raise ValueError(
            f"index {text!r} is no cell join; write 'cells', 'cells4096' or 'cells4096:probes=8'"
        )
    count, probes = match.groups()
    return CellSpec(count=int(count) if count else None, probes=int(probes or PROBES))


def train_cells(sample: Matrix, count: int) -> Matrix:
    """About ``count`` centroids, unit rows (C, D), of a sample of both sides (S, D), unit rows.

    Raises:
        ValueError: fewer rows than cells.
    """
    if not 1 <= count <= len(sample):
        raise ValueError(
            f"{count} cells cannot be made of {len(sample)} sentences; choose fewer, or 'exact'"
        )
    centroids = _centroids(sample, count)
    nearest = nearest_cells(sample, centroids, probes=1)[:, 0]
    loads = np.bincount(nearest, minlength=count)
    mean = len(sample) / count
    split = [
        _centroids(sample[nearest == cell], math.ceil(loads[cell] / mean))
        if loads[cell] > CROWDED * mean
        else centroids[cell : cell + 1]
        for cell in range(count)
    ]
    return np.concatenate(split)


def _centroids(sample: Matrix, count: int) -> Matrix:
    import faiss

    trainer = faiss.Kmeans(
        sample.shape[1],
        count,
        niter=ROUNDS,
        spherical=True,
        seed=1,
        min_points_per_centroid=1,
        max_points_per_centroid=len(sample),
    )
    trainer.train(sample)
    centroids = np.asarray(trainer.centroids)
    vanished = ~centroids.any(axis=1)  # the mean of rows that cancel out
    centroids[vanished] = sample[: vanished.sum()]
    return unit_rows(centroids)


def nearest_cells(rows: Matrix, centroids: Matrix, *, probes: int) -> NDArray[np.int64]:
    """The cells of each row, (N, p), by exact cosine: the same whatever else is asked."""
    return search_both(rows, centroids, k=min(probes, len(centroids)))[0].ids


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """The rows of one side by cell: those of cell c are ``rows[start[c]:start[c + 1]]``."""

    rows: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, cells: NDArray[np.int64], count: int) -> _Cells:
        order = np.argsort(cells, axis=None, kind="stable")
        loads = np.bincount(cells.ravel(), minlength=count)
        return cls(rows=order // cells.shape[1], start=np.concatenate([[0], np.cumsum(loads)]))

    def members(self, cell: int) -> NDArray[np.int64]:
        return self.rows[self.start[cell] : self.start[cell + 1]]

    def loads(self) -> NDArray[np.int64]:
        return np.diff(self.start)


def search_cells(
    source: Matrix,
    target: Matrix,
    centroids: Matrix,
    *,
    k: int,
    probes: int = PROBES,
    precision: Precision | None = None,
    progress: Callable[[int], None] = lambda products: None,
) -> tuple[Neighbours, Neighbours]:
    """The k nearest of the rows of the other side that share a cell, for both sides.

    Args:
        source: rows as ``miner.knn.rescore.unit_rows`` makes them, float32 (N, D).
        target: rows as ``unit_rows`` makes them, float32 (M, D).
        centroids: from ``train_cells``, (C, D).
        k: neighbours of each row; clipped to the size of the other side.
        probes: cells that each row lies in, p; clipped to the number of cells.
        precision: of the product; what is soonest done here unless given.
        progress: called with the similarities that a step stands for; they sum to about N * M.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions, -1 where fewer rows share a cell. Cosines are exact.

    Raises:
        ValueError: k or probes below 1, rows of different dimensions, or an unknown precision.
    """
    check_search(source, target, k=k)
    if probes < 1:
        raise ValueError(f"probes is {probes}; a sentence lies in at least 1 cell")
    nearest = [nearest_cells(rows, centroids, probes=probes) for rows in (source, target)]
    left_cells, right_cells = (_Cells.of(cells, len(centroids)) for cells in nearest)
    # Each row's very nearest cell first: it has most of its neighbours, and what comes after meets
    # high floors. Those pairs are computed twice, 1 / p**2 of all.
    first = [_Cells.of(cells[:, :1], len(centroids)) for cells in nearest]
    in_order = ((first[0], first[1]), (left_cells, right_cells))
    pairs = sum(int(one.loads() @ other.loads()) for one, other in in_order)
    share = len(source) * len(target) / max(1, pairs)
    proposing = choose(source, target, k=k, precision=precision)
    left, right = encode_both(source, target, proposing.precision)
    loops = loops_for(pairs)
    lock = Lock()
    forward, backward = propose(
        *(loops, left, right, chain(*(_tiles(*sides, lock) for sides in in_order))),
        kept=proposing.kept,
        repeated=True,
        progress=lambda products: progress(round(products * share)),
    )
    sources, targets = (source, left, left_cells), (target, right, right_cells)
    return (
        _complete(loops, sources, targets, forward, k=min(k, len(target))),
        _complete(loops, targets, sources, backward, k=min(k, len(source))),
    )


def _complete(
    loops: ModuleType,
    queries: tuple[Matrix, Codes, _Cells],
    base: tuple[Matrix, Codes, _Cells],
    candidates: Candidates,
    *,
    k: int,
) -> Neighbours:
    """Rescore the candidates; search on, in their cells, for rows that may miss some."""
    (rows, codes, cells), (others, other_codes, other_cells) = queries, base
    neighbours, unsettled = settle(loops, rows, others, candidates, k=k)
    tiles = _tiles(cells, other_cells, Lock(), only=unsettled)
    search_on(loops, (rows, codes), (others, other_codes), neighbours, tiles)
    return neighbours


def _tiles(
    left: _Cells, right: _Cells, lock: Lock, *, only: NDArray[np.int64] | None = None
) -> Iterator[Tile]:
    """The rows and columns of each cell; rows lie in several, so all tiles share the ``lock``."""
    wanted = np.ones(int(left.rows.max(initial=-1)) + 1, dtype=np.bool_)
    if only is not None:
        wanted[:] = False
        wanted[only] = True
    for cell in range(len(left.start) - 1):
        rows, columns = left.members(cell), right.members(cell)
        rows = rows[wanted[rows]]
        for top, side in product(
            blocks(len(rows), passes.TILE_ROWS), blocks(len(columns), passes.TILE_COLUMNS)
        ):
            yield Tile(rows=rows[top], columns=columns[side], locks=(lock,))
