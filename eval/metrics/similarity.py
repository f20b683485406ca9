"""Nearest vectors that should be translations: search errors, ranks of translations of words.

Axes: ``N`` sources, ``M`` targets, ``D`` dim, ``K`` neighbours, ``Q`` queries.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows
from miner.margin import margin_scores

Matrix = NDArray[np.float32]
Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]

NEIGHBOURS = 4  # xSIM's neighbourhood, where a margin needs one
CSLS_NEIGHBOURS = 10  # of the mean similarities that CSLS subtracts
BLOCK = 256  # rows of a product held at once


def search_errors(
    source: Matrix, target: Matrix, *, margin: str = "absolute"
) -> tuple[Flags, Flags]:
    """Return whose nearest neighbour is wrong, bool (N,), of sources among targets and back.

    Row i of one side (N, D) translates row i of the other.

    The measure of Artetxe & Schwenk 2019, "Massively Multilingual Sentence Embeddings", on Tatoeba;
    with a margin in the place of the cosine (``absolute``) it is LASER's xSIM (Heffernan et al.
    2022, "Bitext Mining Using Distilled Sentence Representations for Low-Resource Languages",
    section 4). A zero row (a sentence of which nothing was left to encode) is near to nothing: an
    error. A ValueError says that shapes differ or that there is no row.
    """
    if source.shape != target.shape or not len(source):
        raise ValueError(
            f"similarity search needs two arrays of one shape with at least one row, "
            f"not {source.shape} and {target.shape}"
        )
    forward, backward = nearest(source, target)
    both = (forward, backward), (backward, forward)
    there, back = (wrong(best_by_margin(*ends, margin=margin)) for ends in both)
    return there, back


def wrong(found: Positions) -> Flags:
    """Return which of N found positions are not their own: bool (N,)."""
    missed: Flags = found != np.arange(len(found))
    return missed


def nearest(
    source: Matrix, target: Matrix, *, k: int = NEIGHBOURS
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest of N sources and M targets (D) by cosine, both ways; ids are positions.

    Rows may have any length; zero rows have no neighbours (-1) and are nobody's.
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

    Of equally good ones the nearer counts, then the first. ``others`` are the neighbours of the
    other side; both are from ``nearest``, so that all of a row's neighbours are there, or none.
    """
    best = np.full(len(queries), NO_NEIGHBOUR)
    rows = np.flatnonzero((queries.ids != NO_NEIGHBOUR).any(axis=1))
    if len(rows):
        found = queries.part(rows)
        means = queries.means()[rows, None], others.means()[found.ids]
        scores = margin_scores(found.cosines, *means, margin=margin)
        best[rows] = found.ids[np.arange(len(rows)), scores.argmax(axis=1)]
    return best


def translation_ranks(
    queries: Matrix, targets: Matrix, sources: Matrix, gold: Sequence[Collection[int]]
) -> dict[str, Positions]:
    """Return the rank, from 1, of the best right target of each query, int64 (Q,), by method.

    Methods are NN, by cosine, and CSLS (Conneau et al. 2018, "Word Translation Without Parallel
    Data", section 2.3). Targets that score as high as the right one count as before it. Rows are
    unit vectors or zero; ``sources``, all source words, are for the neighbourhoods of targets.
    ``gold`` has the rows of the right targets of each query.
    """
    back = mean_of_nearest(targets, sources)
    ranks = {method: np.empty(len(queries), dtype=np.int64) for method in ("NN", "CSLS")}
    for start in range(0, len(queries), BLOCK):
        cosines = queries[start : start + BLOCK] @ targets.T
        # A query's own neighbourhood shifts all its targets alike, and so changes no rank.
        for method, scores in (("NN", cosines), ("CSLS", 2 * cosines - back)):
            for row, line in enumerate(scores, start):
                best = line[list(gold[row])].max()
                ranks[method][row] = np.count_nonzero(line >= best)
    return ranks


def mean_of_nearest(rows: Matrix, others: Matrix) -> Matrix:
    """Return the mean cosine of each row to its nearest rows among others: float32 (N,)."""
    count = min(CSLS_NEIGHBOURS, len(others))
    found = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        cosines = rows[start : start + BLOCK] @ others.T
        largest = np.partition(cosines, -count, axis=1)[:, -count:]
        found[start : start + BLOCK] = largest.mean(axis=1)
    return found
