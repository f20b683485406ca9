"""Pair the documents of two languages that are translations of each other, by what they say.

After the document alignment of WMT 2016 (Buck & Koehn 2016), in two steps as there: candidates by
one vector for each document, and a look at the sentences of those. Axes: ``P`` source and ``Q``
target documents, ``D`` dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both
from miner.selection import take_free

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

CANDIDATES = 20
# Set by the scores of Pro Git, whose right pairs have 0.59 and more and whose best wrong ones 0.31,
# with those of NTREX in view (docs/documents.md).
THRESHOLD = 0.35


@dataclass(frozen=True, kw_only=True)
class DocumentPairs:
    """Pairs of positions, int64, best first, and their scores, float64; each document is in one."""

    source: IntArray
    target: IntArray
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.scores)


def pair_documents(
    source: Sequence[Matrix],
    target: Sequence[Matrix],
    *,
    candidates: int = CANDIDATES,
    threshold: float = THRESHOLD,
) -> DocumentPairs:
    """Pair documents one to one, best first.

    The score of a pair is from -0.5 to 1: half the cosine of both documents' vectors, which are the
    means of their sentences' without what all documents of a language share, and half the share
    of their sentences that are mutually nearest, each by its cosine. Costs a search among P and Q
    vectors and ``candidates`` products of sentences for each document.

    Args:
        source: vectors of each document's sentences, unit rows, float32 (sentences, D).
        target: the same of the other language.
        candidates: how many documents of the other language each is compared with.
        threshold: pairs below it are left out.

    Raises:
        ValueError: a side has no documents.
    """
    if not len(source) or not len(target):
        raise ValueError("a side without documents cannot be paired")
    vectors = document_vectors(source), document_vectors(target)
    rows, columns = _candidates(*vectors, candidates)
    cosines = np.einsum("pd,pd->p", vectors[0][rows], vectors[1][columns], dtype=np.float64)
    shares = [mutual_share(source[p], target[q]) for p, q in zip(rows, columns, strict=True)]
    scores = (cosines + shares) / 2
    order = np.lexsort((columns, rows, -scores))[: np.count_nonzero(scores >= threshold)]
    rows, columns, scores = rows[order], columns[order], scores[order]
    kept = take_free(rows, columns, bytearray(len(source)), bytearray(len(target)))
    return DocumentPairs(source=rows[kept], target=columns[kept], scores=scores[kept])


def document_vectors(documents: Sequence[Matrix]) -> Matrix:
    """The mean of each document's sentences, less the mean of all documents: unit rows, (P, D)."""
    means = np.stack([rows.mean(axis=0) for rows in documents])
    own = means - means.mean(axis=0) if len(means) > 1 else means
    own[~own.any(axis=1), 0] = 1  # nothing of its own: any direction is as good
    return unit_rows(own)


def mutual_share(source: Matrix, target: Matrix) -> float:
    """The share of sentences in pairs that are nearest to each other, by cosine: 0 to 1."""
    cosines = source @ target.T
    nearest = cosines.argmax(axis=1)
    row = np.arange(len(source))
    is_mutual = cosines.argmax(axis=0)[nearest] == row
    best = cosines[row, nearest][is_mutual]
    return float(2 * np.clip(best, 0, 1).sum() / (len(source) + len(target)))


def _candidates(source: Matrix, target: Matrix, count: int) -> tuple[IntArray, IntArray]:
    """The different pairs of a document and one of its nearest, sorted."""
    forward, backward = search_both(source, target, k=count)
    pairs = np.concatenate([_edges(forward.ids), _edges(backward.ids)[:, ::-1]])
    rows, columns = np.unique(pairs, axis=0).T
    return rows, columns


def _edges(ids: IntArray) -> IntArray:
    """Each row with each of its neighbours, (R, 2)."""
    rows = np.repeat(np.arange(len(ids)), ids.shape[1])
    edges = np.stack([rows, ids.ravel()], axis=1)
    return edges[edges[:, 1] >= 0]
