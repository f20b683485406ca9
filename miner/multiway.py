"""Clusters of sentences that translate each other in many languages, from the pairs of two each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import IntArray

MAX_LANGUAGES = 64  # bits of a number


@dataclass(frozen=True)
class Clusters:
    """Sentences by cluster: ``members`` is (C, L), -1 where a cluster lacks a language.

    ``last`` (C,) is the place of the pair that completed a cluster, the worst that joined it, and
    ``links`` (C,) counts all pairs within it.
    """

    members: IntArray
    last: IntArray
    links: IntArray


def cluster_pairs(one: IntArray, other: IntArray, starts: IntArray) -> Clusters:
    """Cluster the sentences of pairs, best first, such that each language is once in a cluster.

    A pair joins the clusters of its sentences unless both have a sentence of one language: then
    the better pairs that made them have decided. Connected components would chain wrong pairs to
    clusters of any size.

    Args:
        one: a sentence of each pair, counted through all languages, (P,).
        other: the other one, (P,).
        starts: where each language begins in that count, and the end of all, (L + 1,); a ValueError
            says that there are more than ``MAX_LANGUAGES``.

    Returns:
        The clusters of two and more, those of most languages first, then by their ``last``.
    """
    from miner.compiling import compiled  # loads Numba

    count = len(starts) - 1
    if count > MAX_LANGUAGES:
        raise ValueError(f"{count} languages: at most {MAX_LANGUAGES} can be clustered at once")
    of_language = np.repeat(np.arange(count), np.diff(starts))
    parents = np.arange(starts[-1])
    languages = np.uint64(1) << of_language.astype(np.uint64)
    last = np.full(starts[-1], -1)
    compiled()(_join)(one, other, parents, languages, last)
    roots = np.flatnonzero(last >= 0)
    size = np.array([int(mask).bit_count() for mask in languages[roots]], dtype=np.int64)
    roots = roots[np.lexsort((last[roots], -size))]
    number = np.full(starts[-1], -1)
    number[roots] = np.arange(len(roots))
    cluster = number[parents]
    members = np.full((len(roots), count), -1)
    inside = np.flatnonzero(cluster >= 0)
    members[cluster[inside], of_language[inside]] = inside
    within = cluster[one][cluster[one] == cluster[other]]
    links = np.bincount(within, minlength=len(roots)).astype(np.int64)
    return Clusters(members=members, last=last[roots], links=links)


def _join(
    one: IntArray, other: IntArray, parents: IntArray, languages: NDArray[np.uint64], last: IntArray
) -> None:
    """Join clusters pair by pair; ``parents`` become the roots, which alone have a ``last``."""
    for place in range(len(one)):
        a, b = one[place], other[place]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        if a != b and languages[a] & languages[b] == 0:
            parents[b] = a
            languages[a] |= languages[b]
            last[a] = place
            last[b] = -1
    for place in range(len(parents)):
        while parents[parents[place]] != parents[place]:
            parents[place] = parents[parents[place]]
