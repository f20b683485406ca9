"""Similarity search: how often a sentence's nearest neighbour is not its translation.

The measure of Artetxe & Schwenk 2019, "Massively Multilingual Sentence Embeddings", on Tatoeba;
with a margin in the place of the cosine it is LASER's xSIM (Heffernan et al. 2022, "Bitext Mining
Using Distilled Sentence Representations for Low-Resource Languages", section 4).
Axes: ``N`` sources, ``M`` targets, ``D`` dim, ``K`` neighbours.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows
from miner.margin import margin_scores

Matrix = NDArray[np.float32]
Positions = NDArray[np.int64]

NEIGHBOURS = 4  # xSIM's neighbourhood, where a margin needs one


@dataclass(frozen=True, kw_only=True)
class SearchErrors:
    """Whose nearest neighbour is wrong, of N pairs, searching from each side in the other.

    ``forward`` and ``backward`` are bool (N,).
    """

    forward: NDArray[np.bool_]
    backward: NDArray[np.bool_]

    @property
    def sentences(self) -> int:
        """The number of pairs."""
        return len(self.forward)

    @property
    def forward_rate(self) -> float:
        """Error rate of the search from source to target, 0 to 1."""
        return int(self.forward.sum()) / self.sentences

    @property
    def backward_rate(self) -> float:
        """Error rate of the search from target to source, 0 to 1."""
        return int(self.backward.sum()) / self.sentences

    @property
    def rate(self) -> float:
        """Mean of the two, the figure usually reported."""
        return int(self.forward.sum() + self.backward.sum()) / (2 * self.sentences)


def search_errors(source: Matrix, target: Matrix, *, margin: str = "absolute") -> SearchErrors:
    """Search by margin, both ways, and compare; row i of one side translates row i of the other.

    A zero row (a sentence of which nothing was left to encode) is near to nothing: an error.

    Args:
        source: float32 (N, D), rows of any length.
        target: float32 (N, D).
        margin: one of ``miner.margin.MARGINS``; ``absolute`` is the cosine.

    Raises:
        ValueError: the shapes differ or there is no row.
    """
    if source.shape != target.shape or not len(source):
        raise ValueError(
            f"similarity search needs two arrays of one shape with at least one row, "
            f"not {source.shape} and {target.shape}"
        )
    forward, backward = nearest(source, target)
    return SearchErrors(
        forward=wrong(best_by_margin(forward, backward, margin=margin)),
        backward=wrong(best_by_margin(backward, forward, margin=margin)),
    )


def wrong(found: Positions) -> NDArray[np.bool_]:
    """Return which of N found positions are not their own: bool (N,)."""
    missed: NDArray[np.bool_] = found != np.arange(len(found))
    return missed


def nearest(
    source: Matrix, target: Matrix, *, k: int = NEIGHBOURS
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest on the other side by cosine, both ways: N and M rows; ids are positions.

    Zero rows have no neighbours (-1) and are nobody's.

    Args:
        source: float32 (N, D), rows of any length.
        target: float32 (M, D).
        k: neighbourhood size.
    """
    rows, columns = (np.flatnonzero(np.any(side, axis=1)) for side in (source, target))
    forward = Neighbours.none(len(source), min(k, len(columns)))
    backward = Neighbours.none(len(target), min(k, len(rows)))
    if len(rows) and len(columns):
        both = search_unit_rows(unit_rows(source[rows]), unit_rows(target[columns]), k=k)
        for whole, part, own, other in zip(
            (forward, backward), both, (rows, columns), (columns, rows), strict=True
        ):
            whole.ids[own], whole.cosines[own] = other[part.ids], part.cosines
    return forward, backward


def best_by_margin(queries: Neighbours, others: Neighbours, *, margin: str) -> Positions:
    """Choose each row's neighbour with the best margin: positions, int64 (N,), -1 for none.

    Of equally good ones the nearer counts, then the first.

    Args:
        queries: from ``nearest``: N rows, all of whose neighbours are there or none.
        others: the neighbours of the other side.
        margin: one of ``miner.margin.MARGINS``.
    """
    best = np.full(len(queries), NO_NEIGHBOUR)
    rows = np.flatnonzero((queries.ids != NO_NEIGHBOUR).any(axis=1))
    if len(rows):
        found = queries.part(rows)
        means = queries.means()[rows, None], others.means()[found.ids]
        scores = margin_scores(found.cosines, *means, margin=margin)
        best[rows] = found.ids[np.arange(len(rows)), scores.argmax(axis=1)]
    return best
