"""Clusters of translations in many languages, from pairs of two each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import IntArray

MAX_LANGUAGES = 64  # bits of the uint64 masks


@dataclass(frozen=True)
class Clusters:
    """C clusters of sentences, with at most one sentence per language.

    ``members`` (C, L) are sentences of each of L languages, numbered through all, or -1. ``last``
    (C,) is the position of the last pair merging two into it. ``links`` (C,) counts all its pairs.
    """

    members: IntArray
    last: IntArray
    links: IntArray


def cluster_pairs(one: IntArray, other: IntArray, starts: IntArray) -> Clusters:
    """Cluster the sentences of L languages by P pairs, best pairs first.

    A pair merges the clusters of its sentences, unless both clusters have a sentence of the same
    language. Clusters have at least two sentences, and are by descending number of languages, then
    by ``last``. ``one`` and ``other`` (P,) are the sentences of each pair, numbered through all
    languages. ``starts`` (L + 1,) has each language's first, and the number of all.

    Raises:
        ValueError: There are more than 64 languages.
    """
    from miner.compiling import compiled  # loads Numba

    count = len(starts) - 1
    if count > MAX_LANGUAGES:
        raise ValueError(
            f"--multiway: {count} languages, but at most {MAX_LANGUAGES} can be clustered; pass "
            "fewer languages, or omit it"
        )
    of_language = np.repeat(np.arange(count), np.diff(starts))
    parents = np.arange(starts[-1])
    languages = np.uint64(1) << of_language.astype(np.uint64)
    last = np.full(starts[-1], -1)
    compiled()(_join)(one, other, parents, languages, last)
    roots = np.flatnonzero(last >= 0)
    size = np.bincount(parents, minlength=len(parents))  # a member per language
    roots = roots[np.lexsort((last[roots], -size[roots]))]
    number = np.full(starts[-1], -1)
    number[roots] = np.arange(len(roots))
    cluster = number[parents]
    members = np.full((len(roots), count), -1)
    inside = np.flatnonzero(cluster >= 0)
    members[cluster[inside], of_language[inside]] = inside
    within = cluster[one][cluster[one] == cluster[other]]
    links = np.bincount(within[within >= 0], minlength=len(roots)).astype(np.int64)
    return Clusters(members=members, last=last[roots], links=links)


def _join(
    one: IntArray, other: IntArray, parents: IntArray, languages: NDArray[np.uint64], last: IntArray
) -> None:
    for position in range(len(one)):
        a, b = one[position], other[position]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        if a != b and languages[a] & languages[b] == 0:
            parents[b] = a
            languages[a] |= languages[b]
            last[a] = position
            last[b] = -1
    for position in range(len(parents)):
        while parents[parents[position]] != parents[position]:
            parents[position] = parents[parents[position]]
