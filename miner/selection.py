"""Select pairs among the candidates in neighbour lists.

Axes: ``N`` source rows, ``M`` target rows, ``K`` neighbours, ``P`` candidate pairs. Ids are any
int64. ``source_ids`` (N,) and ``target_ids`` (M,), ascending, are of the neighbour arrays' rows.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Direction, IntArray, Mask, Neighbours, Pairs
from miner.choices import check_choice
from miner.margin import margin_scores

MIN_SIZE_TO_COMPILE = 1 << 16  # pairs; for fewer, loading Numba takes longer than it saves


def candidate_pairs(
    forward: Neighbours,
    backward: Neighbours,
    *,
    source_ids: IntArray,
    target_ids: IntArray,
    margin: str = "ratio",
) -> Pairs:
    """Return the distinct pairs in neighbour lists, scored by their margins.

    ``forward`` has the N sources' neighbours with ids from ``target_ids``, and ``backward`` the M
    targets' with ids from ``source_ids``. Pairs are in the order of source ids, then target ids.
    Raises ValueError if ``margin`` is not one of ``miner.margin.MARGINS``.
    """
    source, target, forward_cosine, forward_rank = _edges(forward, target_ids)
    target_b, source_b, backward_cosine, backward_rank = _edges(backward, source_ids)
    width = max(len(target_ids), 1)
    keys = np.concatenate([source * width + target, source_b * width + target_b])
    # The forward edges come first, so an edge that both lists hold keeps its forward rank.
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    direction = np.zeros(len(unique), dtype=np.int8)
    direction[inverse[: len(source)]] |= Direction.FORWARD
    direction[inverse[len(source) :]] |= Direction.BACKWARD
    source, target = unique // width, unique % width
    cosine = np.concatenate([forward_cosine, backward_cosine])[first]
    source_mean, target_mean = forward.means()[source], backward.means()[target]
    return Pairs(
        source=source_ids[source],
        target=target_ids[target],
        score=margin_scores(cosine, source_mean, target_mean, margin=margin),
        cosine=cosine,
        source_mean=source_mean,
        target_mean=target_mean,
        rank=np.concatenate([forward_rank, backward_rank])[first],
        direction=direction,
    )


def _edges(
    neighbours: Neighbours, ids: IntArray
) -> tuple[IntArray, IntArray, NDArray[np.float32], NDArray[np.int32]]:
    is_neighbour = query, column = np.nonzero(neighbours.ids != NO_NEIGHBOUR)
    positions = np.searchsorted(ids, neighbours.ids[is_neighbour])
    return query, positions, neighbours.cosines[is_neighbour], (column + 1).astype(np.int32)


def order_best_first(pairs: Pairs) -> IntArray:
    """Return positions, int64 (P,), by descending score, then source, target."""
    same, source = np.diff(pairs.target) >= 0, np.diff(pairs.source)
    if ((source > 0) | ((source == 0) & same)).all():  # the common case
        return np.argsort(-pairs.score, kind="stable")
    return np.lexsort((pairs.target, pairs.source, -pairs.score))


def _best_of_each(pairs: Pairs, ranked: IntArray, side: Direction) -> tuple[IntArray, IntArray]:
    """Return each source's (FORWARD) or target's first, and all, best pairs."""
    listed = ranked[(pairs.direction[ranked] & side) != 0]
    rows = (pairs.source if side is Direction.FORWARD else pairs.target)[listed]
    _, first, row = np.unique(rows, return_index=True, return_inverse=True)
    scores = pairs.score[listed]
    return listed[first], listed[scores == scores[first][row]]


def _own_best(pairs: Pairs, side: Direction) -> IntArray:
    return _best_of_each(pairs, order_best_first(pairs), side)[0]


def _retrieve_max(pairs: Pairs) -> IntArray:
    ranked = best_of_both(pairs)
    sources, source = np.unique(pairs.source[ranked], return_inverse=True)
    targets, target = np.unique(pairs.target[ranked], return_inverse=True)
    used = (np.zeros(len(rows), dtype=np.bool_) for rows in (sources, targets))
    return ranked[take_free(source, target, *used)]


def best_of_both(pairs: Pairs) -> IntArray:
    """Return the positions of pairs among which ``max`` selects, best first.

    They are the best pair of each source's and of each target's list, and the pairs with the same
    score as the best of both their lists. So each copy of a duplicate pair gets a partner.
    """
    ranked = order_best_first(pairs)
    forward, forward_ties = _best_of_each(pairs, ranked, Direction.FORWARD)
    backward, backward_ties = _best_of_each(pairs, ranked, Direction.BACKWARD)
    ties = np.intersect1d(forward_ties, backward_ties, assume_unique=True)
    chosen = np.zeros(len(ranked), dtype=np.bool_)
    chosen[np.concatenate([forward, backward, ties])] = True
    return ranked[chosen[ranked]]


def take_free(source: IntArray, target: IntArray, taken_sources: Mask, taken_targets: Mask) -> Mask:
    """Select pairs greedily, in order, with each row in at most one pair.

    ``source`` and ``target`` (P,) are the rows of each pair. The masks ``taken_sources`` (N,) and
    ``taken_targets`` (M,) are of rows already in a pair, and updated in place. Returns a mask (P,).
    """
    kept = np.zeros(len(source), dtype=np.bool_)
    find = _find_free
    if len(source) >= MIN_SIZE_TO_COMPILE:
        from miner.compiling import compiled  # loads Numba

        find = compiled()(_find_free)
    find(source, target, taken_sources, taken_targets, kept)
    return kept


def _find_free(
    source: IntArray, target: IntArray, taken_sources: Mask, taken_targets: Mask, kept: Mask
) -> None:
    for pair in range(len(source)):
        x, y = source[pair], target[pair]
        if not (taken_sources[x] or taken_targets[y]):
            taken_sources[x] = taken_targets[y] = kept[pair] = True


RETRIEVALS: dict[str, Callable[[Pairs], IntArray]] = {
    "max": _retrieve_max,
    "intersect": lambda pairs: np.intersect1d(
        _own_best(pairs, Direction.FORWARD), _own_best(pairs, Direction.BACKWARD)
    ),
    "forward": lambda pairs: _own_best(pairs, Direction.FORWARD),
    "backward": lambda pairs: _own_best(pairs, Direction.BACKWARD),
}


def select(pairs: Pairs, *, retrieval: str = "max", threshold: float = -np.inf) -> Pairs:
    """Select among candidate pairs, best first, ties by source, then target.

    The retrieval ``forward`` selects the best pair of each source's list, ``backward`` of each
    target's, and ``intersect`` the pairs that both select. ``max`` matches the pairs of
    ``best_of_both`` one to one, best first (Artetxe & Schwenk 2019, section 3.2). Another name
    raises ValueError. Selected ``pairs``, of ``candidate_pairs``, score above ``threshold``.
    """
    check_choice("retrieval", retrieval, RETRIEVALS)
    chosen = RETRIEVALS[retrieval](pairs)
    kept = pairs.take(chosen[pairs.score[chosen] > threshold])
    return kept.take(order_best_first(kept))
