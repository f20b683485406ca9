"""Approximate neighbours through a FAISS index, rescored exactly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.rescore import check_search, rescore

if TYPE_CHECKING:
    import faiss
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

CANDIDATES_PER_NEIGHBOUR = 4  # what an index with compressed codes returns must be sorted again
PROBED_CELLS = 1 / 16  # of an inverted file's cells; recall against time
HNSW_BREADTH = 128
ANY_DIM = 1024 * 75  # divisible by the subvectors of most product quantisers


def check_factory(factory: str) -> None:
    """Refuse what FAISS does not understand.

    Raises:
        ValueError: not a FAISS factory string.
    """
    import faiss

    refusal = (
        f"index {factory!r} is neither 'exact' nor 'auto' nor a FAISS factory string such as "
        "'IVF1024,Flat' or 'HNSW32'"
    )
    if re.search(r"[A-Za-z]0+(?!\d)", factory):
        raise ValueError(refusal)  # FAISS takes 'HNSW0' and 'IVF0', and aborts when it uses them
    try:
        faiss.index_factory(ANY_DIM, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise ValueError(refusal) from error


def build_index(base: Matrix, factory: str) -> faiss.Index:
    """Train an index on ``base`` (M, D) and add it.

    Raises:
        ValueError: the index needs more rows than there are, or other dimensions.
    """
    import faiss

    try:
        index = faiss.index_factory(base.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(base)
        index.add(base)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2]
        raise ValueError(
            f"index {factory!r} cannot be trained on {len(base)} sentences of {base.shape[1]} "
            f"dimensions ({reason}); choose fewer cells, or 'exact'"
        ) from error
    inverted = faiss.try_extract_index_ivf(index)
    if inverted is not None:
        inverted.nprobe = max(1, round(inverted.nlist * PROBED_CELLS))
    inner = (
        faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index
    )
    if hasattr(inner, "hnsw"):
        inner.hnsw.efSearch = HNSW_BREADTH
    return index


def search_index(queries: Matrix, base: Matrix, *, factory: str, k: int) -> Neighbours:
    """The k nearest rows of ``base`` (M, D) that the index finds for each query (N, D).

    Ids are positions, -1 where the index found too few; cosines are exact.

    Raises:
        ValueError: as ``build_index``; k below 1, or rows of different dimensions.
    """
    check_search(queries, base, k=k)
    count = min(len(base), k * CANDIDATES_PER_NEIGHBOUR)
    if count:
        _, ids = build_index(base, factory).search(queries, count)
    else:
        ids = np.empty((len(queries), 0), dtype=np.int64)
    return rescore(queries, base, ids.astype(np.int64), k=min(k, len(base)))


def search_index_both(
    source: Matrix, target: Matrix, *, factory: str, k: int
) -> tuple[Neighbours, Neighbours]:
    """What ``miner.knn.exact.search_both`` finds, approximately: forward and backward."""
    return (
        search_index(source, target, factory=factory, k=k),
        search_index(target, source, factory=factory, k=k),
    )
