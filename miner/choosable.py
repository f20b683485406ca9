"""The candidate pairs that selection may choose, without making those that it never does.

Of all candidates, (N + M) K less the ones both sides propose, a retrieval looks at the best of each
list alone. These are found from the lists, a block at a time. Axes: ``N`` source rows, ``M`` target
rows, ``K`` neighbours, ``E`` edges, ``P`` pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import NO_NEIGHBOUR, Direction, Neighbours, Pairs
from miner.margin import margin_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_NUMBERS = 1 << 18  # ids compared at a time: 2 MiB of them


def choosable_pairs(
    forward: Neighbours,
    backward: Neighbours,
    *,
    source_ids: NDArray[np.int64],
    target_ids: NDArray[np.int64],
    margin: str = "ratio",
    means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> tuple[Pairs, int]:
    """Those candidates that ``select`` may choose, and how many candidates there are.

    They are the best, with ties, of each source's own list and of each target's. So ``select``
    gives the same of them as of all candidates, and but for ties there are at most N + M of them,
    not K (N + M). Arguments and order are those of ``miner.selection.candidate_pairs``; a pair's
    cosine must be the same in both lists, as exact ones are. ``means`` (N,) and (M,) are those of
    the neighbourhoods that margins compare with, where these are others than the lists.
    """
    means = means or (forward.means(), backward.means())
    ours, our_count, shared = _best_edges(
        forward, backward, means, (source_ids, target_ids), margin
    )
    theirs, their_count, _ = _best_edges(
        backward, forward, means[::-1], (target_ids, source_ids), margin
    )
    width = max(len(target_ids), 1)
    # A pair that is the best of both lists is there twice.
    keys = np.concatenate([ours.query, theirs.found]).astype(np.int64) * width
    keys += np.concatenate([ours.found, theirs.query])
    unique, first = np.unique(keys, return_index=True)
    source, target = unique // width, unique % width
    cosine = np.concatenate([ours.cosine, theirs.cosine])[first]
    # The rank is that in the source's list wherever that list holds the pair.
    rank = np.concatenate(
        [ours.rank, np.where(theirs.other_rank > 0, theirs.other_rank, theirs.rank)]
    )[first]
    direction = np.concatenate(
        [
            Direction.FORWARD + Direction.BACKWARD * (ours.other_rank > 0),
            Direction.BACKWARD + Direction.FORWARD * (theirs.other_rank > 0),
        ],
        dtype=np.int8,
    )[first]
    source_mean, target_mean = means[0][source], means[1][target]
    pairs = Pairs(
        source=source_ids[source],
        target=target_ids[target],
        score=margin_scores(cosine, source_mean, target_mean, margin=margin),
        cosine=cosine,
        source_mean=source_mean,
        target_mean=target_mean,
        rank=rank,
        direction=direction,
    )
    return pairs, our_count + their_count - shared


@dataclass(frozen=True, kw_only=True)
class _Edges:
    """The E best edges of one side's lists.

    ``query`` and ``found`` are int32 positions (E,), ``cosine`` float32; ``rank`` (int32, from 1)
    is the place in the query's list, ``other_rank`` that in the list of what was found, 0 if it is
    not there.
    """

    query: NDArray[np.int32]
    found: NDArray[np.int32]
    cosine: NDArray[np.float32]
    rank: NDArray[np.int32]
    other_rank: NDArray[np.int32]

    @classmethod
    def joined(cls, parts: Sequence[_Edges]) -> _Edges:
        """The edges of all parts."""
        names = [field.name for field in fields(cls)]
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )


def _best_edges(
    queries: Neighbours,
    others: Neighbours,
    means: Sequence[NDArray[np.float64]],
    ids: Sequence[NDArray[np.int64]],
    margin: str,
) -> tuple[_Edges, int, int]:
    """Each query's best edges by score; how many edges there are in all, and in both sides' lists.

    ``means`` and ``ids`` are those of the queries and of the others.
    """
    total = shared = 0
    size = max(1, BLOCK_NUMBERS // max(1, queries.ids.shape[1] * others.ids.shape[1]))
    none = np.empty(0, dtype=np.int32)
    parts = [
        _Edges(query=none, found=none, cosine=none.astype(np.float32), rank=none, other_rank=none)
    ]
    for start in range(0, len(queries) if others.ids.size else 0, size):
        block = slice(start, start + size)
        part = queries.part(block)
        there = part.ids != NO_NEIGHBOUR
        found = np.searchsorted(ids[1], np.where(there, part.ids, ids[1][0]))
        listed = others.ids[found] == ids[0][block, None, None]
        other_rank = np.where(there & listed.any(axis=2), listed.argmax(axis=2) + 1, 0)
        score = margin_scores(part.cosines, means[0][block, None], means[1][found], margin=margin)
        score[~there] = -np.inf
        query, place = np.nonzero(there & (score == score.max(axis=1, keepdims=True)))
        parts.append(
            _Edges(
                query=(query + start).astype(np.int32),
                found=found[query, place].astype(np.int32),
                cosine=part.cosines[query, place],
                rank=(place + 1).astype(np.int32),
                other_rank=other_rank[query, place].astype(np.int32),
            )
        )
        total += int(there.sum())
        shared += int((other_rank > 0).sum())
    return _Edges.joined(parts), total, shared
