"""Wrong pairs of a run's own: the best that is left for a sentence without its translation.

Leave out the target of a pair that is likely right: what its source would be paired with then is a
wrong pair, found as wrong pairs are found, on the same subject and among the same near-copies.
Their scores say how wrong pairs score in this run (``miner.judge.prior``). Axes: ``Q`` sentences of
such pairs, ``K`` neighbours of each.
"""

from typing import NamedTuple

import numpy as np

from miner.arrays import NO_NEIGHBOUR, FloatArray, IntArray, Neighbours
from miner.judge.prior import LIKELY
from miner.margin import margin_scores

MAX_PAIRS = 1000  # more would cost time and say little more


def likely_places(probabilities: FloatArray) -> IntArray:
    """Return places of at most ``MAX_PAIRS`` pairs that are likely right; they come best first."""
    count = int((probabilities >= LIKELY).sum())
    return np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)


class LeftPairs(NamedTuple):
    """What is mined for some of Q sentences: ``queries`` are these, ``rows`` what they find.

    All have one value for each pair, in order: the cosine, and the means of both neighbourhoods.
    """

    queries: IntArray
    rows: IntArray
    cosine: FloatArray
    own_mean: FloatArray
    other_mean: FloatArray


def best_left(
    partners: IntArray, lists: Neighbours, theirs: FloatArray, taken: FloatArray, *, margin: str
) -> LeftPairs:
    """Return what would be mined for each of Q sentences if its partner were not there.

    The neighbour that comes after the last of a list is not known; for the mean, it is taken to be
    as near as that one. The best pair is mined unless its row has a better one.

    Args:
        partners: (Q,), the row that each sentence is paired with.
        lists: the neighbours of the sentences, with their partners where these are among them.
        theirs: (Q, K), the mean cosine of each neighbour's own neighbourhood.
        taken: (Q, K), the margin of the mined pair that each neighbour has, -inf if none.
        margin: one of ``miner.margin.MARGINS``.
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
    best = np.arange(len(lists)), scores.argmax(axis=1)
    mined = np.flatnonzero(scores[best] > np.maximum(taken[best], -np.finfo(float).max))
    at = mined, best[1][mined]
    return LeftPairs(mined, lists.ids[at], cosines[at], means[mined], theirs[at])
