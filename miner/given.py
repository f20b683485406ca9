"""Pairs that are given, not mined: their scores against the neighbourhoods of both sentences.

It is the mode ``score`` of LASER's mine_bitexts. Axes: ``P`` pairs, ``K`` neighbours of each.
"""

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Direction, IntArray, Neighbours, Pairs
from miner.margin import margin_scores

NO_SENTENCE = -1  # of lines without a usable sentence


def distinct_pairs(source: IntArray, target: IntArray) -> tuple[IntArray, int]:
    """Return the different pairs of lines, int64 (3, P), and how many lines have one.

    They are sources, targets and the first line of each, ascending. Of each side, given are the
    rows (N,) that stand for the lines' sentences, or ``NO_SENTENCE``.
    """
    whole = np.flatnonzero((source != NO_SENTENCE) & (target != NO_SENTENCE))
    width = int(target.max(initial=0)) + 1
    found, first = np.unique(source[whole] * width + target[whole], return_index=True)
    return np.stack([found // width, found % width, whole[first]]), len(whole)


def lines_of(pairs: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """Return the first line (P,) of pairs that ``distinct_pairs`` returned."""
    sources, targets, lines = pairs
    width = int(targets.max(initial=0)) + 1
    places = np.searchsorted(sources * width + targets, source * width + target)
    first_lines: IntArray = lines[places]
    return first_lines


def given_pairs(
    source: IntArray,
    target: IntArray,
    cosine: NDArray[np.float32],
    forward: Neighbours,
    backward: Neighbours,
    *,
    margin: str,
) -> Pairs:
    """Score pairs, in their order, by the neighbours of their sources and of their targets, (P, K).

    ``rank`` and ``direction`` say where the neighbours have them, and are 0 where these do not.
    """
    own, other = forward.means(), backward.means()
    rank, direction = np.zeros(len(source), dtype=np.int32), np.zeros(len(source), dtype=np.int8)
    for lists, partner, bit in (
        (backward, source, Direction.BACKWARD),
        (forward, target, Direction.FORWARD),  # last: its ranks count
    ):
        pair, place = np.nonzero(lists.ids == partner[:, None])
        rank[pair] = place + 1
        direction[pair] |= bit
    return Pairs(
        source=source,
        target=target,
        score=margin_scores(cosine, own, other, margin=margin),
        cosine=cosine,
        source_mean=own,
        target_mean=other,
        rank=rank,
        direction=direction,
    )
