"""Decoys from a run's own pairs: the best that is left for a sentence without its translation.

What would be mined for a sentence whose translation is not in the corpus? Take a pair that is as
good as certain, leave its target out, and see what its source would be paired with then: a wrong
pair, found as wrong pairs are found, on the same subject and among the same near-copies. Its score
is a draw from the scores of wrong pairs, as those of given decoys are (``miner.fdr``).

Axes: ``Q`` sentences of such pairs, ``K`` neighbours of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.fdr import AddedPairs
from miner.margin import margin_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

CERTAIN = 0.9  # the probability of being right that a pair needs
MAX_PAIRS = 2000  # more would cost time and say little more
MAX_EQUAL = 0.5  # the share of certain pairs that may be the same text twice


def certain_places(probabilities: FloatArray) -> NDArray[np.int64]:
    """Return the places of at most ``MAX_PAIRS`` pairs that are as good as certain, at a stride.

    ``probabilities`` come best first.
    """
    count = int((probabilities >= CERTAIN).sum())
    places: NDArray[np.int64] = np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)
    return places


def check_translated(source: Sequence[str], target: Sequence[str]) -> None:
    """See that certain pairs are translations, not copies.

    Raises:
        ValueError: over ``MAX_EQUAL`` of them have the same text on both sides.
    """
    equal = sum(own == other for own, other in zip(source, target, strict=True))
    if equal > MAX_EQUAL * len(source):
        raise ValueError(
            "how many of the pairs are wrong cannot be estimated: the corpora hold the same "
            f"sentences ({equal:,} of {len(source):,} good pairs are the same text twice)"
        )


def best_left(
    partners: NDArray[np.int64],
    lists: Neighbours,
    theirs: FloatArray,
    taken: FloatArray,
    *,
    margin: str = "ratio",
) -> AddedPairs:
    """Return what would be mined for each of Q sentences if its partner were not there.

    The neighbour that comes after the last of a list is not known; for the mean, it is taken to be
    as near as that one. The best pair is mined unless its row has a better one.

    Args:
        partners: int64 (Q,), the row that each sentence is paired with.
        lists: the neighbours of the sentences, with their partners where these are among them.
        theirs: float64 (Q, K), the mean cosine of each neighbour's own neighbourhood.
        taken: float64 (Q, K), the margin of the mined pair that each neighbour has, -inf if none.
        margin: one of ``miner.margin.MARGINS``.

    Returns:
        One pair for each sentence that is mined, in their order; scores are margins.
    """
    there = lists.ids != NO_NEIGHBOUR
    left = there & (lists.ids != partners[:, None])
    cosines = np.where(there, lists.cosines, 0).astype(np.float64)
    last = cosines[np.arange(len(lists)), np.maximum(there.sum(axis=1) - 1, 0)]
    gone = there.sum(axis=1) - left.sum(axis=1)
    means = ((cosines * left).sum(axis=1) + gone * last) / np.maximum(there.sum(axis=1), 1)
    scores = np.full(left.shape, -np.inf)
    owners = np.broadcast_to(means[:, None], left.shape)
    scores[left] = margin_scores(lists.cosines[left], owners[left], theirs[left], margin=margin)
    best = scores.argmax(axis=1)
    found = np.arange(len(lists)), best
    mined = np.flatnonzero(scores[found] > np.maximum(taken[found], -np.finfo(float).max))
    return AddedPairs(queries=mined, rows=lists.ids[found][mined], scores=scores[found][mined])
