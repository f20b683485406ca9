"""Select pairs at any size, by ranges of scores.

The result is that of ``miner.selection.select``. The best pairs of each neighbour list are computed
from blocks of lists, sorted on disk, and selected range by range, best first. Memory contains two
ranges, and a byte per row. Axes: ``K`` neighbours, ``Q`` rows of a part of a side, ``P`` pairs.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miner.arrays import (
    NO_NEIGHBOUR,
    Direction,
    FloatArray,
    IntArray,
    JudgedPairs,
    Neighbours,
    Pairs,
    evenly_spaced,
    load_array,
)
from miner.choices import check_choice
from miner.margin import margin_scores
from miner.selection import RETRIEVALS, best_of_both, order_best_first, take_free
from miner.storage.artefacts import write_array
from miner.threads import prefetch, run_in_threads

ROW_BYTES = 64  # at most, per row and neighbour of a part, while the other side is read
# Pairs per range. The next range is loaded while pairs are selected from one.
MIN_RANGE, MAX_RANGE = 1 << 16, 1 << 20
RANGE_BYTES = 500  # per pair of a range
SAMPLES = 1024  # scores per file that decide even ranges

RECORD = [
    *(("source", "<i8"), ("target", "<i8"), ("score", "<f8"), ("cosine", "<f4")),
    *(("source_mean", "<f8"), ("target_mean", "<f8"), ("rank", "<i4"), ("direction", "i1")),
]
JUDGED_RECORD = [*RECORD, ("probability", "<f8"), ("margin", "<f8")]


@dataclass(frozen=True, kw_only=True)
class RowNeighbours:
    """The neighbour lists of Q rows of a side.

    ``ids`` (Q,) are the ascending rows, ``lists`` (Q, K) theirs, and ``means`` (Q,) mean cosines.
    """

    ids: IntArray
    lists: Neighbours
    means: FloatArray


@dataclass(frozen=True, kw_only=True)
class BestPairs:
    """The best pairs of rows of a side, with ties.

    ``side`` is FORWARD if the rows are sources, or else BACKWARD. ``candidates`` is the number of
    pairs in the rows' neighbour lists. A pair in lists of both sides counts for the targets only.
    """

    pairs: Pairs
    side: Direction
    candidates: int


def best_pairs(
    parts: Sequence[RowNeighbours],
    others: Iterable[RowNeighbours],
    *,
    side: Direction,
    margin: str = "ratio",
) -> Iterator[BestPairs]:
    """Yield the best pairs of each part of a side, by row, with ties.

    A row's pairs are all that have its highest margin, none without neighbours. A ``BestPairs`` is
    yielded per part, in order. ``side`` is FORWARD if ``parts`` are sources, or else BACKWARD.
    ``others`` are all rows of the other side, in parts with disjoint ranges of ids, and are read
    once. Raises ValueError if ``margin`` is not one of ``miner.margin.MARGINS``.
    """
    from miner.compiling import compiled  # loads Numba

    fill = compiled()(_fill_reverse_ranks)
    shapes = [part.lists.ids.shape for part in parts]
    # Mean cosines of the neighbours, and the rows' ranks in the neighbours' lists.
    reverse = [(np.zeros(shape), np.zeros(shape, dtype=np.int32)) for shape in shapes]

    def enter(other: RowNeighbours, place: int) -> None:
        ids, lists = parts[place].ids, parts[place].lists.ids
        fill(ids, lists, other.ids, other.lists.ids, other.means, *reverse[place])

    for other in others:
        if len(other.ids):
            run_in_threads(partial(enter, other), range(len(parts)))
    for part, (mean, ranks) in zip(parts, reverse, strict=True):
        yield _best(part, mean, ranks, side, margin)


def _fill_reverse_ranks(
    rows: IntArray,
    neighbours: IntArray,
    ids: IntArray,
    lists: IntArray,
    means: FloatArray,
    mean: FloatArray,
    rank: NDArray[np.int32],
) -> None:
    """Fill in each neighbour's ``mean`` cosine, and the row's ``rank`` there."""
    first, last = ids[0], ids[-1]
    for row in range(len(rows)):
        for column in range(neighbours.shape[1]):
            neighbour = neighbours[row, column]
            if neighbour < first or neighbour > last:
                continue
            place = np.searchsorted(ids, neighbour)
            mean[row, column] = means[place]
            for position in range(lists.shape[1]):
                if lists[place, position] == rows[row]:
                    rank[row, column] = position + 1
                    break


def _best(
    part: RowNeighbours, mean: FloatArray, ranks: NDArray[np.int32], side: Direction, margin: str
) -> BestPairs:
    neighbours = part.lists.ids
    is_neighbour = neighbours != NO_NEIGHBOUR
    score = margin_scores(part.lists.cosines, part.means[:, None], mean, margin=margin)
    score[~is_neighbour] = -np.inf
    highest = score.max(axis=1, keepdims=True, initial=-np.inf)
    row, column = np.nonzero(is_neighbour & (score == highest))
    rank, reverse_rank = (column + 1).astype(np.int32), ranks[row, column]
    ends = part.ids[row], neighbours[row, column]
    means = part.means[row], mean[row, column]
    if side is Direction.BACKWARD:  # ranks of the source's list come first
        ends, means, rank = ends[::-1], means[::-1], np.where(reverse_rank > 0, reverse_rank, rank)
    pairs = Pairs(
        source=ends[0],
        target=ends[1],
        score=score[row, column],
        cosine=part.lists.cosines[row, column],
        source_mean=means[0],
        target_mean=means[1],
        rank=rank,
        direction=np.where(reverse_rank > 0, Direction.BOTH, side).astype(np.int8),
    )
    shared = int((ranks > 0).sum()) if side is Direction.FORWARD else 0
    return BestPairs(pairs=pairs, side=side, candidates=int(is_neighbour.sum()) - shared)


def merge_directions(forward: Pairs, backward: Pairs) -> tuple[Pairs, NDArray[np.int8]]:
    """Merge the best pairs of sources and the best pairs of targets.

    Neither is judged, and either may be empty. A pair in both has its numbers from ``forward``.
    Returns the distinct pairs, by source, then target, and the ``Direction`` of each, int8 (P,). It
    is FORWARD for a pair in ``forward``, BACKWARD for a pair in ``backward``, or BOTH.
    """
    columns = zip(vars(forward), vars(forward).values(), vars(backward).values(), strict=True)
    both = Pairs(**{name: np.concatenate(halves) for name, *halves in columns})
    order = np.lexsort((both.target, both.source))
    source, target = both.source[order], both.target[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    directions = np.where(order < len(forward), Direction.FORWARD, Direction.BACKWARD)
    first = np.flatnonzero(is_new)
    best = np.bitwise_or.reduceat(directions, first) if len(first) else directions
    return both.take(order[first]), best.astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class SortedPairsFile:
    """An ``.npy`` file of pairs by ascending score, the best of ``side``."""

    path: Path
    side: Direction

    def records(self) -> NDArray[np.void]:
        """Map the file, read-only, as ``RECORD`` or ``JUDGED_RECORD``, (P,)."""
        return np.asarray(load_array(self.path, mmap_mode="r"))


def sort_pairs(path: Path, pairs: Pairs, side: Direction) -> SortedPairsFile:
    """Write ``pairs``, maybe judged, to an ``.npy`` file by ascending score.

    Ties keep their order. An existing file is replaced. Raises OSError if it cannot be written.
    """
    record = JUDGED_RECORD if isinstance(pairs, JudgedPairs) else RECORD
    records = np.empty(len(pairs), dtype=record)
    order = np.argsort(pairs.score, kind="stable")
    for name, _ in record:
        records[name] = getattr(pairs, name)[order]
    write_array(path, records)
    return SortedPairsFile(path=path, side=side)


def select_in_ranges(
    files: Sequence[SortedPairsFile],
    *,
    size: int,
    retrieval: str = "max",
    threshold: float = -np.inf,
) -> Iterator[Pairs]:
    """Yield the pairs that ``miner.selection.select`` returns, in its order.

    They are yielded in blocks, which may be empty. ``files`` have the best pairs of all rows of
    both sides, not judged, with row numbers from 0. Two ranges of scores are in memory, of about
    ``size`` pairs each, or more of equal scores. Raises ValueError if ``retrieval`` is not one of
    ``miner.selection.RETRIEVALS``.
    """
    check_choice("retrieval", retrieval, RETRIEVALS)
    taken = [np.zeros(_largest(files, name) + 1, dtype=np.bool_) for name in ("source", "target")]
    directions = Direction.FORWARD, Direction.BACKWARD
    sides = [[file for file in files if file.side is direction] for direction in directions]

    def load(bounds: tuple[float, float]) -> tuple[Pairs, NDArray[np.int8]]:
        return merge_directions(*(_load(side, *bounds) for side in sides))

    for pairs, best in prefetch(load, _ranges(files, size, threshold)):
        directed = replace(pairs, direction=best)
        if retrieval == "max":
            ranked = best_of_both(directed)
            ranked = ranked[take_free(pairs.source[ranked], pairs.target[ranked], *taken)]
        else:
            chosen = RETRIEVALS[retrieval](directed)
            ranked = chosen[order_best_first(pairs.take(chosen))]
        yield pairs.take(ranked[pairs.score[ranked] > threshold])


def merge_in_ranges(
    files: Sequence[SortedPairsFile], *, size: int, threshold: float = -np.inf
) -> Iterator[Pairs]:
    """Yield all pairs that score above ``threshold``, best first, in blocks.

    They are ``JudgedPairs`` if the files' are. Ties are ordered by source, then target. A block
    comes from about ``size`` pairs, or more of equal scores, and may be empty. Two are in memory.
    """

    def load(bounds: tuple[float, float]) -> Pairs:
        pairs = _load(files, *bounds)
        ranked = order_best_first(pairs)
        return pairs.take(ranked[pairs.score[ranked] > threshold])

    if files:
        yield from prefetch(load, _ranges(files, size, threshold))


def _largest(files: Sequence[SortedPairsFile], name: str) -> int:
    return max((int(file.records()[name].max(initial=0)) for file in files), default=0)


def _ranges(
    files: Sequence[SortedPairsFile], size: int, threshold: float
) -> Iterator[tuple[float, float]]:
    """Yield ranges of scores (low, high], best first, down to the threshold."""
    total, samples = 0, []
    for scores in (file.records()["score"] for file in files):  # mapped one at a time
        total += len(scores)
        samples.append(scores[evenly_spaced(len(scores), min(SAMPLES, len(scores)))])
    count = max(1, -(-total // size))
    scores = np.sort(np.concatenate([*samples, [np.inf]]))
    bounds = np.unique(scores[np.arange(1, count) * len(scores) // count])
    edges = [-np.inf, *bounds[bounds < np.inf].tolist(), np.inf]
    for low, high in reversed(list(itertools.pairwise(edges))):
        if high > threshold:
            yield low, high


def _load(files: Sequence[SortedPairsFile], low: float, high: float) -> Pairs:
    parts = []
    for file in files:
        records = file.records()
        first, last = np.searchsorted(records["score"], [low, high], side="right")
        parts.append(records[first:last])
    whole = np.concatenate(parts) if parts else np.empty(0, dtype=RECORD)
    kind = JudgedPairs if whole.dtype == JUDGED_RECORD else Pairs
    return kind(**{name: whole[name].copy() for name in whole.dtype.names or ()})
