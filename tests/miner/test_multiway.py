"""Clusters of pairs against sets of sentences that are joined one by one."""

from __future__ import annotations

import numpy as np
import pytest

from miner.multiway import cluster_pairs


def oracle(
    pairs: list[tuple[int, int]], language: list[int]
) -> list[tuple[frozenset[int], int, int]]:
    """The sentences of each cluster, the place of the pair that completed it, its pairs."""
    clusters: dict[int, tuple[set[int], int]] = {
        sentence: ({sentence}, -1) for pair in pairs for sentence in pair
    }
    for place, (one, other) in enumerate(pairs):
        left, right = clusters[one][0], clusters[other][0]
        if not {language[own] for own in left} & {language[own] for own in right}:
            joined = left | right, place
            for sentence in joined[0]:
                clusters[sentence] = joined
    found = {(frozenset(members), last) for members, last in clusters.values() if last >= 0}
    counted = [
        (members, last, sum(one in members and other in members for one, other in pairs))
        for members, last in found
    ]
    return sorted(counted, key=lambda cluster: (-len(cluster[0]), cluster[1]))


@pytest.mark.parametrize("seed", range(6))
def test_against_sets(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 12, 5)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    language = np.repeat(np.arange(5), sizes)
    pairs = random.integers(0, starts[-1], (60, 2))
    found = cluster_pairs(pairs[:, 0], pairs[:, 1], starts)
    expected = oracle([(int(one), int(other)) for one, other in pairs], language.tolist())
    assert expected
    clusters = [
        (frozenset(members[members >= 0].tolist()), int(last), int(links))
        for members, last, links in zip(found.members, found.last, found.links, strict=True)
    ]
    assert clusters == expected
    for members in found.members:
        present = np.flatnonzero(members >= 0)
        assert (language[members[present]] == present).all()


def test_no_pairs_and_too_many_languages() -> None:
    none = np.empty(0, np.int64)
    assert cluster_pairs(none, none, np.array([0, 3, 5])).members.shape == (0, 2)
    with pytest.raises(
        ValueError, match="--multiway: 65 languages, but at most 64 can be clustered"
    ):
        cluster_pairs(none, none, np.arange(66))
