"""Pair the documents of two languages that are translations of each other.

As in the document alignment of WMT 2016 (Buck & Koehn 2016), vectors of documents and their names
select candidate pairs, which sentence vectors then score. Names of translated pages often differ
only in the language, as in ``/de/start.html`` (Resnik & Smith 2003, "The Web as a Parallel
Corpus"). Axes: ``P`` source and ``Q`` target documents, ``D`` dimensions.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from miner import languages
from miner.arrays import FloatArray, IntArray, Matrix
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both
from miner.selection import take_free

CANDIDATES = 20
# Correct pairs of Pro Git score 0.59 and more, wrong ones up to 0.31 (docs/results-documents.md).
THRESHOLD = 0.35
# How far equal names move a score towards 1. Alone, they do not reach the threshold.
SAME_NAME = 0.2
BLOCK_ROWS = 1 << 16  # sentences of candidates in memory

_PART = re.compile(r"[^/._?=&:-]+")
_NUMBER = re.compile(r"(?i)[\W\d_]*(\.[a-z]+)?")  # name of a counted document: 0017.txt
_QUERY = {"lang", "language", "locale", "hl", "l"}
# ISO 639-1, without the suffix "sh". Codes that are words, such as "is", are removed on both sides.
CODES = {code for code in languages.CODES if len(code) == 2} - {"sh"} | {"bh"}
_REGION = re.compile(r"[a-z]{2}|cyrl|hans|hant|latn")  # or script, after a code


def language_free(name: str) -> str:
    """Return the parts of a document's name without language codes.

    >>> language_free("https://a.org/de/start.html") == language_free("https://a.org/start.en.html")
    True

    Parts are in lower case, split at ``/._?=&:-`` and joined by ``/``. Codes are of two letters.
    Two letters or a script after a code, such as ``au`` or ``hant``, and query names such as
    ``lang`` are also removed. The result may be "".
    """
    parts, after_code = [], False
    for part in _PART.findall(name.lower()):
        is_code = part in CODES or bool(after_code and _REGION.fullmatch(part))
        if not is_code and part not in _QUERY:
            parts.append(part)
        after_code = is_code
    return "/".join(parts)


def same_names(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of documents with the same ``language_free`` name.

    A pair is the positions of a source and of a target name, in the order of ``source``. A name has
    no pair if it is a number, such as ``0017.txt``, or if ``language_free`` returns "", or the same
    text for another name of its side.
    """
    sides: list[dict[str, int]] = []
    for names in (source, target):
        keys = ["" if _NUMBER.fullmatch(name) else language_free(name) for name in names]
        counts = Counter(keys)
        sides.append({key: p for p, key in enumerate(keys) if key and counts[key] == 1})
    return [(position, sides[1][key]) for key, position in sides[0].items() if key in sides[1]]


@dataclass(frozen=True, kw_only=True)
class DocumentPairs:
    """R pairs of documents, best first, with each document in at most one.

    ``source`` and ``target``, (R,), are positions. ``scores``, (R,), are at most 1, ties by source.
    """

    source: IntArray
    target: IntArray
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.scores)


class Documents(Protocol):
    """The P documents of a side.

    ``names`` are P names, or empty if unknown. ``sizes``, (P,), are numbers of sentences, and
    ``sums``, (P, D), sums of the documents' unit sentence vectors.
    """

    names: Sequence[str]
    sizes: IntArray
    sums: FloatArray

    def sentences(self, documents: IntArray) -> list[Matrix]:
        """Return the unit or zero sentence vectors of documents at positions."""


class DocumentsInMemory:
    """The ``Documents`` of a side, from their sentence vectors of any scale.

    ``documents`` are one or more float32 arrays (sentences, D) of one or more rows, which are
    finite and may be zero. None of this is checked. ``names`` are their names (default: unknown).
    """

    def __init__(self, documents: Sequence[Matrix], names: Sequence[str] = ()) -> None:
        self.names = names
        self._documents = [np.zeros(rows.shape, dtype=np.float32) for rows in documents]
        for units, rows in zip(self._documents, documents, strict=True):
            filled = rows.any(axis=1)
            units[filled] = unit_rows(rows[filled])
        self.sizes = np.array([len(rows) for rows in documents], dtype=np.int64)
        self.sums = np.stack([rows.sum(axis=0, dtype=np.float64) for rows in self._documents])

    def sentences(self, documents: IntArray) -> list[Matrix]:
        """Return the sentence vectors of documents like ``Documents.sentences``."""
        return [self._documents[document] for document in documents]


def pair_documents(
    source: Sequence[Matrix],
    target: Sequence[Matrix],
    *,
    candidates: int = CANDIDATES,
    threshold: float = THRESHOLD,
) -> DocumentPairs:
    """Pair documents one to one by the vectors of their sentences.

    A pair's score, from -0.5 to 1, is the mean of its ``document_vectors``' cosine and
    ``mutual_share``. Pairs with scores from ``threshold`` (0.35) are chosen greedily, best first.
    ``source`` and ``target`` have an array (sentences, D) per document, finite and of any scale.
    Each document is compared with its ``candidates`` (default: 20) nearest of the other side.

    Raises:
        ValueError: A side or a document is empty, dimensions differ, or ``candidates`` is below 1.
    """
    if not len(source) or not len(target):
        raise ValueError("a side has no documents to pair; pass one or more per side")
    if not all(map(len, (*source, *target))):
        raise ValueError("a document has no sentences; pass one or more per document")
    if any(len({rows.shape[1] for rows in side}) > 1 for side in (source, target)):
        raise ValueError("vectors of a side differ in dimensions; encode all with one encoder")
    sides = DocumentsInMemory(source), DocumentsInMemory(target)
    return pair_sides(*sides, k=candidates, threshold=threshold)


def pair_sides(
    source: Documents, target: Documents, *, k: int = CANDIDATES, threshold: float = THRESHOLD
) -> DocumentPairs:
    """Pair documents like ``pair_documents``, and also by their names.

    Documents with ``same_names`` are also compared, and their score s becomes s + 0.2 (1 - s).
    ``k`` is ``candidates`` there. Neither side may be empty. Raises ValueError if dimensions
    differ, a document has no sentences, or ``k`` is below 1.
    """
    vectors = document_vectors(source), document_vectors(target)
    same_named = same_names(source.names, target.names)
    forward, backward = search_both(*vectors, k=k)
    nearest = np.concatenate([_edges(forward.ids), _edges(backward.ids)[:, ::-1]])
    candidates = np.concatenate([nearest, np.reshape(same_named, (-1, 2)).astype(np.int64)])
    distinct, place = np.unique(candidates, axis=0, return_inverse=True)
    rows, columns = distinct.T
    scores = np.empty(len(rows))
    # Blocks have about ``BLOCK_ROWS`` sentences, or one pair.
    number = np.cumsum(source.sizes[rows] + target.sizes[columns]) // BLOCK_ROWS
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(rows)]
    for start, stop in itertools.pairwise(edges):
        x, y = rows[start:stop], columns[start:stop]
        cosines = np.einsum("ed,ed->e", vectors[0][x], vectors[1][y], dtype=np.float64)
        scores[start:stop] = (cosines + _shares(source, target, x, y)) / 2
    named = place[len(nearest) :]
    scores[named] += SAME_NAME * (1 - scores[named])
    order = np.lexsort((columns, rows, -scores))[: np.count_nonzero(scores >= threshold)]
    rows, columns, scores = rows[order], columns[order], scores[order]
    kept = take_free(rows, columns, *(np.zeros(len(side), dtype=np.bool_) for side in vectors))
    return DocumentPairs(source=rows[kept], target=columns[kept], scores=scores[kept])


def document_vectors(documents: Documents) -> Matrix:
    """Return a unit vector per document, float32 (P, D).

    It is along the mean of the document's unit sentence vectors. With two or more documents, the
    mean of their means is subtracted first. Zero gives the first axis. A size of 0 makes all NaN.
    """
    means = documents.sums / documents.sizes[:, None]
    centred = means - means.mean(axis=0) if len(means) > 1 else means
    centred[~centred.any(axis=1), 0] = 1  # equal to the mean: any direction
    return unit_rows(centred)


def mutual_share(source: Matrix, target: Matrix) -> float:
    """Measure how many sentences of two documents match, from 0 to 1.

    It is the share of all sentences that have a mutual nearest neighbour, each weighted by the
    cosine to it, at least 0. Ties go to the first. ``source`` (N, D) and ``target`` (M, D) are unit
    vectors of the documents' sentences, N and M at least 1.
    """
    cosines = source.astype(np.float64) @ target.astype(np.float64).T
    nearest = cosines.argmax(axis=1)
    row = np.arange(len(source))
    is_mutual = cosines.argmax(axis=0)[nearest] == row
    best = cosines[row, nearest][is_mutual]
    return float(2 * np.clip(best, 0, 1).sum() / (len(source) + len(target)))


def _shares(source: Documents, target: Documents, rows: IntArray, columns: IntArray) -> FloatArray:
    source_rows, p = np.unique(rows, return_inverse=True)
    target_rows, q = np.unique(columns, return_inverse=True)
    sources, targets = source.sentences(source_rows), target.sentences(target_rows)
    return np.array([mutual_share(sources[i], targets[j]) for i, j in zip(p, q, strict=True)])


def _edges(ids: IntArray) -> IntArray:
    rows, columns = np.nonzero(ids >= 0)
    return np.stack([rows, ids[rows, columns]], axis=1)
