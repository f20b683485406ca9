"""The candidate pairs that selection may choose, without making those that it never does.

Of all candidates, (N + M) K less those in the lists of both sides, a retrieval looks at the best
of each list alone. These are found from the lists, some rows at a time. Axes: ``N`` source rows,
``M`` target rows, ``K`` neighbours, ``Q`` rows of a part, ``P`` pairs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Direction, Neighbours, Pairs
from miner.margin import margin_scores
from miner.threads import in_threads

ROW_BYTES = 64  # of a part for each neighbour of each row, at most, while the other side is read


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some rows of a side, and the neighbours of each.

    ``ids`` are int64 (Q,), ascending; ``means`` are float64 (Q,), the mean cosines of the
    neighbourhoods that margins compare with.
    """

    ids: NDArray[np.int64]
    lists: Neighbours
    means: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BestPairs:
    """The best pairs, with ties, of the lists of some rows of a side.

    ``candidates`` is how many pairs these lists hold; those that the other side's lists hold, too,
    count for the targets.
    """

    pairs: Pairs
    side: Direction
    candidates: int


class _Lookup:
    """A part with the ``mean`` of each of its neighbours, and its rows' ranks in their lists."""

    def __init__(self, part: Part) -> None:
        self.part = part
        found = part.lists.ids
        self.mean, self.rank_there = np.zeros(found.shape), np.zeros(found.shape, dtype=np.int32)

    def enter(self, other: Part) -> None:
        """Look up those found that are in ``other``."""
        from miner.compiled_pairs import look_up  # loads Numba

        if len(other.ids):
            known = other.ids, other.lists.ids, other.means
            look_up(self.part.ids, self.part.lists.ids, *known, self.mean, self.rank_there)


def best_pairs(
    parts: Sequence[Part], others: Iterable[Part], *, side: Direction, margin: str = "ratio"
) -> Iterator[BestPairs]:
    """Yield, for each part, the best pairs by score of each row's list, with ties; by row.

    Args:
        parts: rows of one side. The other side is gone through once for all of them.
        others: the whole other side in parts, of which one is held at a time.
        side: whose rows these are: FORWARD for sources, BACKWARD for targets.
        margin: one of ``miner.margin.MARGINS``.
    """
    lookups = [_Lookup(part) for part in parts]
    for other in others:
        in_threads(partial(_Lookup.enter, other=other), lookups)
    for lookup in lookups:
        yield _best(lookup, side, margin)


def _best(lookup: _Lookup, side: Direction, margin: str) -> BestPairs:
    part, mean, rank_there = lookup.part, lookup.mean, lookup.rank_there
    found = part.lists.ids
    there = found != NO_NEIGHBOUR
    score = margin_scores(part.lists.cosines, part.means[:, None], mean, margin=margin)
    score[~there] = -np.inf
    row, place = np.nonzero(there & (score == score.max(axis=1, keepdims=True, initial=-np.inf)))
    rank, other_rank = (place + 1).astype(np.int32), rank_there[row, place]
    ends = part.ids[row], found[row, place]
    means = part.means[row], mean[row, place]
    if side is Direction.BACKWARD:  # a rank is that in the source's list wherever that has the pair
        ends, means, rank = ends[::-1], means[::-1], np.where(other_rank > 0, other_rank, rank)
    pairs = Pairs(
        source=ends[0],
        target=ends[1],
        score=score[row, place],
        cosine=part.lists.cosines[row, place],
        source_mean=means[0],
        target_mean=means[1],
        rank=rank,
        direction=np.where(other_rank > 0, Direction.BOTH, side).astype(np.int8),
    )
    shared = int((rank_there > 0).sum()) if side is Direction.FORWARD else 0
    return BestPairs(pairs=pairs, side=side, candidates=int(there.sum()) - shared)


def joined(ours: Pairs, theirs: Pairs) -> tuple[Pairs, NDArray[np.int8]]:
    """Return the best pairs of sources and of targets, each once, in order of source, then target.

    Also whose best they are: int8 (P,), a ``Direction``.
    """
    both = Pairs(
        **{
            field.name: np.concatenate([getattr(ours, field.name), getattr(theirs, field.name)])
            for field in fields(Pairs)
        }
    )
    order = np.lexsort((both.target, both.source))
    source, target = both.source[order], both.target[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    whose = np.where(order < len(ours), Direction.FORWARD, Direction.BACKWARD)
    first = np.flatnonzero(new)
    best = np.bitwise_or.reduceat(whose, first) if len(first) else whose
    return both.take(order[first]), best.astype(np.int8)
