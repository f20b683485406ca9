"""The two-way search within pairs of documents, such as articles on one subject.

A row's neighbours are those in the documents paired with its own: the local mining of Schwenk et
al. 2021, "WikiMatrix: Mining 135M Parallel Sentences in 1620 Language Pairs from Wikipedia".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.core.rescore import best, check_search, merge
from miner.knn.exact import search_both

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Positions = NDArray[np.int64]

# Up to so many similarities a table of all of them is sooner sorted than searched.
TABLE = 1 << 16


def search_documents(
    source: Matrix,
    target: Matrix,
    documents: Iterable[tuple[Positions, Positions]],
    *,
    k: int,
    progress: Callable[[int], None] = lambda similarities: None,
) -> tuple[Neighbours, Neighbours]:
    """The k nearest of the rows of the paired documents, for both sides.

    Args:
        source: rows as ``miner.knn.core.rescore.unit_rows`` makes them, float32 (N, D).
        target: rows as ``unit_rows`` makes them, float32 (M, D).
        documents: for each pair of documents, the rows of the one and of the other by ascending
            position. A document may be in many pairs, a pair of rows in one alone.
        k: neighbours of each row; clipped to the size of the other side.
        progress: called with the number of similarities computed after each pair.

    Returns:
        Forward neighbours, (N, min(k, M)), and backward neighbours, (M, min(k, N)); ids are
        positions, -1 where the paired documents have fewer rows. Cosines are exact.

    Raises:
        ValueError: k below 1, or rows of different dimensions.
    """
    check_search(source, target, k=k)
    forward = Neighbours.none(len(source), min(k, len(target)))
    backward = Neighbours.none(len(target), min(k, len(source)))
    for rows, columns in documents:
        ahead, back = _search(source[rows], target[columns], k)
        _enter(forward, rows, columns, ahead)
        _enter(backward, columns, rows, back)
        progress(len(rows) * len(columns))
    return forward, backward


def _search(source: Matrix, target: Matrix, k: int) -> tuple[Neighbours, Neighbours]:
    if len(source) * len(target) > TABLE:
        return search_both(source, target, k=k)
    # Exact: see miner.knn.core.rescore.
    table = (source.astype(np.float64) @ target.astype(np.float64).T).astype(np.float32)
    return _best_of_rows(table, k), _best_of_rows(table.T, k)


def _best_of_rows(table: Matrix, k: int) -> Neighbours:
    ids = np.broadcast_to(np.arange(table.shape[1]), table.shape)
    return best(Neighbours(ids=ids, cosines=table), k=k)


def _enter(
    neighbours: Neighbours, queries: Positions, others: Positions, found: Neighbours
) -> None:
    """Keep the best of what the queries' neighbours were and what was found in other rows."""
    named = Neighbours(ids=others[found.ids], cosines=found.cosines)
    kept = merge([neighbours.part(queries), named], k=neighbours.ids.shape[1])
    neighbours.ids[queries], neighbours.cosines[queries] = kept.ids, kept.cosines
