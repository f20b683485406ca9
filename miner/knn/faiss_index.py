"""Approximate neighbours through a FAISS index, rescored exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.rescore import rescore

if TYPE_CHECKING:
    import faiss
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

CANDIDATES_PER_NEIGHBOUR = 4  # what an index with compressed codes returns must be sorted again
PROBED_CELLS = 1 / 16  # of an inverted file's cells; recall against time
HNSW_BREADTH = 128


def check_factory(factory: str) -> None:
    """Refuse what FAISS does not understand.

    Raises:
        ValueError: not a FAISS factory string.
    """
    import faiss

    try:
        faiss.index_factory(64, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise ValueError(
            f"index {factory!r} is neither 'exact' nor 'auto' nor a FAISS factory string such as "
            "'IVF1024,Flat' or 'HNSW32'"
        ) from error


def build_index(base: Matrix, factory: str) -> faiss.Index:
    """Train an index on ``base`` (M, D) and add it.

    Raises:
        ValueError: the index needs more rows than there are.
    """
    import faiss

    index = faiss.index_factory(base.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    try:
        index.train(base)
    except RuntimeError as error:
        raise ValueError(
            f"index {factory!r} cannot be trained on {len(base)} sentences; "
            "choose fewer cells, or 'exact'"
        ) from error
    index.add(base)
    inverted = faiss.try_extract_index_ivf(index)
    if inverted is not None:
        inverted.nprobe = max(1, round(inverted.nlist * PROBED_CELLS))
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = HNSW_BREADTH
    return index


def search_index(queries: Matrix, base: Matrix, *, factory: str, k: int) -> Neighbours:
    """The k nearest rows of ``base`` (M, D) that the index finds for each query (N, D).

    Ids are positions, -1 where the index found too few; cosines are exact.
    """
    index = build_index(base, factory)
    count = min(len(base), k * CANDIDATES_PER_NEIGHBOUR)
    _, ids = index.search(queries, count)
    return rescore(queries, base, ids.astype(np.int64), k=min(k, len(base)))


def search_index_both(
    source: Matrix, target: Matrix, *, factory: str, k: int
) -> tuple[Neighbours, Neighbours]:
    """Forward and backward neighbours as ``miner.knn.exact.search_both`` gives them, approximate."""
    return (
        search_index(source, target, factory=factory, k=k),
        search_index(target, source, factory=factory, k=k),
    )
