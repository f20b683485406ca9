"""Score given pairs against the neighbourhoods of both sentences.

This is mode ``score`` of LASER's mine_bitexts. Axes: ``N`` lines, ``P`` pairs, ``K`` neighbours.
"""

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Direction, IntArray, Neighbours, Pairs
from miner.margin import margin_scores

NO_SENTENCE = -1  # row of a line without a usable sentence


def distinct_pairs(source: IntArray, target: IntArray) -> tuple[IntArray, int]:
    """Return the distinct pairs of sentences that are on the same lines.

    ``source`` and ``target`` are the rows of each line's sentences, int64 (N,), -1 without one. The
    array, int64 (3, P), has source row, target row and first line (from 0) of each pair, ascending
    by source, then target. The integer is the number of lines with both sentences.
    """
    complete = np.flatnonzero((source != NO_SENTENCE) & (target != NO_SENTENCE))
    width = int(target.max(initial=0)) + 1
    keys, first = np.unique(source[complete] * width + target[complete], return_index=True)
    return np.stack([keys // width, keys % width, complete[first]]), len(complete)


def lines_of(pairs: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """Return the first lines, int64 (Q,), of Q pairs of rows.

    ``source`` and ``target`` (Q,) are rows of some of ``pairs``, from ``distinct_pairs``.
    """
    sources, targets, lines = pairs
    width = int(targets.max(initial=0)) + 1
    return np.take(lines, np.searchsorted(sources * width + targets, source * width + target))


def given_pairs(
    source: IntArray,
    target: IntArray,
    cosine: NDArray[np.float32],
    forward: Neighbours,
    backward: Neighbours,
    *,
    margin: str,
) -> Pairs:
    """Score P given pairs by the neighbourhoods of their sentences, in order.

    ``source`` and ``target`` are rows, and ``cosine`` the cosines of the pairs, (P,) each.
    ``forward`` has the nearest targets of each pair's source, ``backward`` the nearest sources of
    its target, (P, K) each. Raises ValueError if ``margin`` is not one of ``miner.margin.MARGINS``.
    """
    source_mean, target_mean = forward.means(), backward.means()
    rank, direction = np.zeros(len(source), dtype=np.int32), np.zeros(len(source), dtype=np.int8)
    for lists, partner, bit in (
        (backward, source, Direction.BACKWARD),
        (forward, target, Direction.FORWARD),  # last: ranks of the forward list count
    ):
        pair, column = np.nonzero(lists.ids == partner[:, None])
        rank[pair] = column + 1
        direction[pair] |= bit
    return Pairs(
        source=source,
        target=target,
        score=margin_scores(cosine, source_mean, target_mean, margin=margin),
        cosine=cosine,
        source_mean=source_mean,
        target_mean=target_mean,
        rank=rank,
        direction=direction,
    )
