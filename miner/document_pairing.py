"""Pair the documents of two languages that are translations of each other.

After the document alignment of WMT 2016 (Buck & Koehn 2016), in two steps as there: candidates by
one vector for each document and by names, and a look at the sentences of those. All sums are exact
(``miner.knn.core.rescore``), so nothing depends on where the sentences lie. Axes: ``P`` source and
``Q`` target documents, ``E`` candidate pairs, ``D`` dimensions.

Of names, such as URLs and paths, translated pages often differ in the language alone:
``/de/start.html`` and ``/en/start.html``, ``start.fr.html`` and ``start.html?lang=en``. Resnik &
Smith 2003, "The Web as a Parallel Corpus".
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
# Set by the scores of Pro Git, whose right pairs have 0.59 and more and whose best wrong ones 0.31,
# with those of NTREX in view (docs/results-documents.md).
THRESHOLD = 0.35
# How far names that differ in the language alone move a score towards 1: not so far that documents
# which have nothing else in common were paired.
SAME_NAME = 0.2
BLOCK_ROWS = 1 << 16  # sentences of candidates in memory

_PART = re.compile(r"[^/._?=&:-]+")
_NUMBER = re.compile(r"[\W\d_]*(\.[a-z]+)?")  # of a document that was only counted: 0017.txt
_QUERY = {"lang", "language", "locale", "hl", "l"}
# ISO 639-1. Words of other languages among them, such as "is", are left out on both sides alike;
# "sh" is an ending of files.
CODES = {code for code in languages.CODES if len(code) == 2} - {"sh"} | {"bh"}
_REGIONS = frozenset("at be br ca ch cn gb hans hant hk ie latn mx nz tw us cyrl".split())


def language_free(name: str) -> str:
    """Return what is left of a name without codes of languages, in lower case.

    >>> language_free("https://a.org/de/start.html") == language_free("https://a.org/start.en.html")
    True
    """
    kept, after_code = [], False
    for part in _PART.findall(name.lower()):
        is_code = part in CODES or (after_code and part in _REGIONS)
        if not is_code and part not in _QUERY:
            kept.append(part)
        after_code = is_code
    return "/".join(kept)


def same_names(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of documents whose names differ in the language alone.

    A name that several documents of a side share then is no sign of anything, nor is a number.
    """
    sides: list[dict[str, int]] = []
    for names in (source, target):
        keys = ["" if _NUMBER.fullmatch(name) else language_free(name) for name in names]
        counts = Counter(keys)
        sides.append({key: p for p, key in enumerate(keys) if key and counts[key] == 1})
    return [(place, sides[1][key]) for key, place in sides[0].items() if key in sides[1]]


@dataclass(frozen=True, kw_only=True)
class DocumentPairs:
    """Pairs of positions, best first, and their scores; each document is in one."""

    source: IntArray
    target: IntArray
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.scores)


class Documents(Protocol):
    """The documents of a side, wherever their sentences lie.

    ``names`` are P names, or none; ``sizes`` (P,) their numbers of sentences; ``sums`` (P, D) the
    sums of their sentences' vectors.
    """

    names: Sequence[str]
    sizes: IntArray
    sums: FloatArray

    def sentences(self, documents: IntArray) -> list[Matrix]:
        """Return the vectors of some documents' sentences, unit rows (sentences, D)."""


class DocumentsInMemory:
    """Documents as arrays of their sentences' vectors, of any scale; those of zeros stay so."""

    def __init__(self, documents: Sequence[Matrix], names: Sequence[str] = ()) -> None:
        self.names = names
        self._documents = [np.zeros(rows.shape, dtype=np.float32) for rows in documents]
        for units, rows in zip(self._documents, documents, strict=True):
            filled = rows.any(axis=1)
            units[filled] = unit_rows(rows[filled])
        self.sizes = np.array([len(rows) for rows in documents], dtype=np.int64)
        self.sums = np.stack([rows.sum(axis=0, dtype=np.float64) for rows in self._documents])

    def sentences(self, documents: IntArray) -> list[Matrix]:
        """Return the vectors of some documents' sentences."""
        return [self._documents[document] for document in documents]


def pair_documents(
    source: Sequence[Matrix],
    target: Sequence[Matrix],
    *,
    candidates: int = CANDIDATES,
    threshold: float = THRESHOLD,
) -> DocumentPairs:
    """Pair documents one to one by what they say, best first.

    The score of a pair is from -0.5 to 1: half the cosine of both documents' vectors, which are the
    means of their sentences' without what all documents of a language share, and half the share
    of their sentences that are mutually nearest, each by its cosine. Costs a search among P and Q
    vectors and ``candidates`` products of sentences for each document.

    Args:
        source: vectors of each document's sentences, float32 (sentences, D); a ValueError says that
            a side has no documents.
        target: the same of the other language.
        candidates: how many documents of the other language each is compared with.
        threshold: pairs below it are left out.
    """
    if not len(source) or not len(target):
        raise ValueError("a side has no documents to pair")
    sides = DocumentsInMemory(source), DocumentsInMemory(target)
    return pair_sides(*sides, k=candidates, threshold=threshold)


def pair_sides(
    source: Documents, target: Documents, *, k: int = CANDIDATES, threshold: float = THRESHOLD
) -> DocumentPairs:
    """Pair documents as ``pair_documents`` does, and by names that differ in the language alone."""
    vectors = document_vectors(source), document_vectors(target)
    named = same_names(source.names, target.names)
    forward, backward = search_both(*vectors, k=k)
    nearest = [_edges(forward.ids), _edges(backward.ids)[:, ::-1]]
    found = np.concatenate([*nearest, np.reshape(named, (-1, 2))])
    rows, columns = np.unique(found.astype(np.int64), axis=0).T
    scores = np.empty(len(rows))
    # Blocks have about ``BLOCK_ROWS`` sentences, or one pair.
    number = np.cumsum(source.sizes[rows] + target.sizes[columns]) // BLOCK_ROWS
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(rows)]
    for start, stop in itertools.pairwise(edges):
        at, to = rows[start:stop], columns[start:stop]
        cosines = np.einsum("ed,ed->e", vectors[0][at], vectors[1][to], dtype=np.float64)
        scores[start:stop] = (cosines + _shares(source, target, at, to)) / 2
    alike, pairs = set(named), zip(rows.tolist(), columns.tolist(), strict=True)
    is_named = np.fromiter((pair in alike for pair in pairs), dtype=np.bool_, count=len(rows))
    scores[is_named] += SAME_NAME * (1 - scores[is_named])
    order = np.lexsort((columns, rows, -scores))[: np.count_nonzero(scores >= threshold)]
    rows, columns, scores = rows[order], columns[order], scores[order]
    kept = take_free(rows, columns, *(np.zeros(len(side), dtype=np.bool_) for side in vectors))
    return DocumentPairs(source=rows[kept], target=columns[kept], scores=scores[kept])


def document_vectors(documents: Documents) -> Matrix:
    """Return each document's mean vector minus the mean of all.

    Returns:
        float32 (P, D), unit rows.
    """
    means = documents.sums / documents.sizes[:, None]
    own = means - means.mean(axis=0) if len(means) > 1 else means
    own[~own.any(axis=1), 0] = 1  # nothing of its own: any direction is as good
    return unit_rows(own)


def mutual_share(source: Matrix, target: Matrix) -> float:
    """Return the share of sentences that are mutual nearest neighbours, by cosine."""
    cosines = source.astype(np.float64) @ target.astype(np.float64).T
    nearest = cosines.argmax(axis=1)
    row = np.arange(len(source))
    is_mutual = cosines.argmax(axis=0)[nearest] == row
    best = cosines[row, nearest][is_mutual]
    return float(2 * np.clip(best, 0, 1).sum() / (len(source) + len(target)))


def _shares(source: Documents, target: Documents, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return the mutual share of each of some pairs of documents, (E,)."""
    own_rows, p = np.unique(rows, return_inverse=True)
    other_rows, q = np.unique(columns, return_inverse=True)
    own, others = source.sentences(own_rows), target.sentences(other_rows)
    return np.array([mutual_share(own[i], others[j]) for i, j in zip(p, q, strict=True)])


def _edges(ids: IntArray) -> IntArray:
    """Return the pairs of a document and one of its nearest: (E, 2)."""
    rows, places = np.nonzero(ids >= 0)
    return np.stack([rows, ids[rows, places]], axis=1)
