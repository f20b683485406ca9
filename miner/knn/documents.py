"""The two-way search within pairs of documents, such as articles on one subject.

A row's neighbours are those in the documents paired with its own: the local mining of Schwenk et
al. 2021, "WikiMatrix: Mining 135M Parallel Sentences in 1620 Language Pairs from Wikipedia".
"""

from collections.abc import Callable, Iterable

from miner.arrays import IntArray, Matrix, Neighbours
from miner.knn.core.rescore import check_search, merge_some
from miner.knn.exact import search_unit_rows


def search_documents(
    source: Matrix,
    target: Matrix,
    documents: Iterable[tuple[IntArray, IntArray]],
    *,
    k: int,
    progress: Callable[[int], None] = lambda similarities: None,
) -> tuple[Neighbours, Neighbours]:
    """Return the k nearest of the rows of the paired documents, for both sides.

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
        ahead, back = search_unit_rows(source[rows], target[columns], k=k)
        for neighbours, own, others, found in (
            (forward, rows, columns, ahead),
            (backward, columns, rows, back),
        ):
            named = Neighbours(ids=others[found.ids], cosines=found.cosines)
            merge_some(neighbours, own, named)
        progress(len(rows) * len(columns))
    return forward, backward
