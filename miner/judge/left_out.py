"""Wrong pairs of a run's own: the best that is left for a sentence without its translation.

What would be mined for a sentence whose translation is not in the corpus? Take a pair that is
likely right, leave its target out, and see what its source would be paired with then: a wrong
pair, found as wrong pairs are found, on the same subject and among the same near-copies. Their
scores say how wrong pairs score in this run (``miner.judge.prior``).

Axes: ``Q`` sentences of such pairs, ``K`` neighbours of each.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, FloatArray, Neighbours
from miner.judge.prior import LIKELY
from miner.margin import margin_scores

MAX_PAIRS = 1000  # more would cost time and say little more


def likely_places(probabilities: FloatArray) -> NDArray[np.int64]:
    """Return the places of at most ``MAX_PAIRS`` pairs that are likely right, at a stride.

    ``probabilities`` come best first.
    """
    count = int((probabilities >= LIKELY).sum())
    places: NDArray[np.int64] = np.linspace(0, count - 1, min(count, MAX_PAIRS)).astype(np.int64)
    return places


@dataclass(frozen=True, kw_only=True)
class LeftPairs:
    """What is mined for some of Q sentences: ``queries`` are these, ``rows`` what they find.

    All fields have one value for each pair: the cosine, and the means of both neighbourhoods.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    cosine: FloatArray
    own_mean: FloatArray
    other_mean: FloatArray


def best_left(
    partners: NDArray[np.int64],
    lists: Neighbours,
    theirs: FloatArray,
    taken: FloatArray,
    *,
    margin: str = "ratio",
) -> LeftPairs:
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
        One pair for each sentence that is mined, in their order.
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
    return LeftPairs(
        queries=mined,
        rows=lists.ids[found][mined],
        cosine=cosines[found][mined],
        own_mean=means[mined],
        other_mean=theirs[found][mined],
    )
