"""Similarity search between vectors that should be translations.

Axes: ``N`` sources, ``M`` targets, ``D`` dim, ``K`` neighbours, ``Q`` queries.
"""

from collections.abc import Collection, Sequence

import numpy as np

from miner.arrays import NO_NEIGHBOUR, IntArray, Mask, Matrix, Neighbours
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows
from miner.margin import margin_scores

NEIGHBOURS = 4  # neighbours per margin in xSIM
CSLS_NEIGHBOURS = 10  # neighbours per mean similarity that CSLS subtracts
BLOCK_ROWS = 256  # rows per matrix product


def search_errors(source: Matrix, target: Matrix, *, margin: str = "absolute") -> tuple[Mask, Mask]:
    """Find the rows whose nearest neighbour is not their translation.

    Row i of ``source`` (N, D) translates row i of ``target`` (N, D). By ``absolute``, the cosine,
    this is the measure of Artetxe & Schwenk 2019, "Massively Multilingual Sentence Embeddings", on
    Tatoeba. By another of ``miner.margin.MARGINS``, among the 4 nearest by cosine, it is xSIM
    (Heffernan et al. 2022, section 4). The results are errors of source and of target rows, bool
    (N,). A zero row and its translation are errors. Of equal neighbours, the first row counts.

    Raises:
        ValueError: The shapes differ or have no rows, or ``margin`` is unknown.
    """
    if source.shape != target.shape or not len(source):
        raise ValueError(
            f"source and target have the shapes {source.shape} and {target.shape}; pass arrays of "
            "one shape with 1 or more rows"
        )
    forward, backward = find_nearest(source, target)
    best_targets = best_by_margin(forward, backward, margin=margin)
    return is_wrong(best_targets), is_wrong(best_by_margin(backward, forward, margin=margin))


def is_wrong(positions: IntArray) -> Mask:
    """Return a bool mask of positions (N,) that differ from their own index."""
    errors: Mask = positions != np.arange(len(positions))
    return errors


def find_nearest(
    source: Matrix, target: Matrix, *, k: int = NEIGHBOURS
) -> tuple[Neighbours, Neighbours]:
    """Find each source's ``k`` nearest targets by cosine, and vice versa.

    ``source`` is (N, D), and ``target`` (M, D), of any norm. Lists have fewer than ``k`` columns if
    the other side has fewer nonzero rows. A zero row has no neighbours (ids -1), and is in no list.
    The results are of sources, then of targets, best first. Ids are rows of the other side.
    """
    source_rows, target_rows = (np.flatnonzero(np.any(side, axis=1)) for side in (source, target))
    forward = Neighbours.empty(len(source), min(k, len(target_rows)))
    backward = Neighbours.empty(len(target), min(k, len(source_rows)))
    if len(source_rows) and len(target_rows):
        both = search_unit_rows(unit_rows(source[source_rows]), unit_rows(target[target_rows]), k=k)
        directions = (source_rows, target_rows), (target_rows, source_rows)
        for side, hits, (rows, others) in zip((forward, backward), both, directions, strict=True):
            side.ids[rows], side.cosines[rows] = others[hits.ids], hits.cosines
    return forward, backward


def best_by_margin(queries: Neighbours, others: Neighbours, *, margin: str) -> IntArray:
    """Choose each row's neighbour with the highest margin, ties to the first.

    The result is int64 (N,), -1 without neighbours. ``queries`` are neighbours of the rows, and
    ``others`` of the other side, from ``find_nearest``. An unknown ``margin`` raises ValueError.
    """
    best = np.full(len(queries), NO_NEIGHBOUR)
    rows = np.flatnonzero((queries.ids != NO_NEIGHBOUR).any(axis=1))
    if len(rows):
        neighbours = queries.take(rows)
        means = queries.means()[rows, None], others.means()[neighbours.ids]
        scores = margin_scores(neighbours.cosines, *means, margin=margin)
        best[rows] = neighbours.ids[np.arange(len(rows)), scores.argmax(axis=1)]
    return best


def translation_ranks(
    queries: Matrix, targets: Matrix, sources: Matrix, gold: Sequence[Collection[int]]
) -> dict[str, IntArray]:
    """Rank the best correct target of each query, by NN and by CSLS.

    Ranks by ``NN`` and ``CSLS`` are int64 (Q,), from 1. NN ranks by cosine, CSLS by twice the
    cosine less the target's ``mean_of_nearest`` among ``sources``, all source words (Conneau et al.
    2018, "Word Translation Without Parallel Data", section 2.3). Other targets with the same score
    rank before the correct one. Rows are unit vectors or zero, (Q, D), (M, D) and (N, D). ``gold``
    has the positions in ``targets`` of each query's correct targets, at least one.
    """
    means = mean_of_nearest(targets, sources)
    ranks = {method: np.empty(len(queries), dtype=np.int64) for method in ("NN", "CSLS")}
    for start in range(0, len(queries), BLOCK_ROWS):
        cosines = queries[start : start + BLOCK_ROWS] @ targets.T
        # The query's own mean would shift all its targets by the same number.
        for method, scores in (("NN", cosines), ("CSLS", 2 * cosines - means)):
            for row, row_scores in enumerate(scores, start):
                best = row_scores[list(gold[row])].max()
                ranks[method][row] = np.count_nonzero(row_scores >= best)
    return ranks


def mean_of_nearest(rows: Matrix, others: Matrix) -> Matrix:
    """Return each row's mean cosine to its 10 nearest ``others``, or to all.

    Rows (N, D) and ``others`` (M, D), M > 0, are unit or zero rows. The result is float32 (N,).
    """
    count = min(CSLS_NEIGHBOURS, len(others))
    means = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        cosines = rows[start : start + BLOCK_ROWS] @ others.T
        largest = np.partition(cosines, -count, axis=1)[:, -count:]
        means[start : start + BLOCK_ROWS] = largest.mean(axis=1)
    return means
