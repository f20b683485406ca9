"""Selection at any size: the same pairs as ``miner.selection.select``, a range of scores at a time.

Of all candidates, (N + M) K less those in the lists of both sides, a retrieval looks at the best
of each list alone. These are found from the lists, some rows at a time, and kept on disk, sorted.
What is chosen among pairs that score alike depends on better pairs only by which sentences these
have taken. So they are chosen from in ranges, best first: memory holds one range, and a byte for
each row of both sides. Repeated matching of mutually best pairs comes to the same in many rounds
over all of them. Axes: ``N`` source rows, ``M`` target rows, ``K`` neighbours, ``Q`` rows of a
part, ``P`` pairs.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Direction, FloatArray, JudgedPairs, Neighbours, Pairs, evenly
from miner.choices import check_choice
from miner.margin import margin_scores
from miner.selection import RETRIEVALS, best_of_both, order_best_first, take_free
from miner.storage.artefacts import write_array
from miner.threads import in_threads, prefetch

ROW_BYTES = 64  # of a part for each neighbour of each row, at most, while the other side is read
# Pairs: fewer at a time cost more than they save, and more take memory; the next range is loaded
# while one is chosen from.
MIN_RANGE, MAX_RANGE = 1 << 16, 1 << 20
RANGE_BYTES = 500  # of a pair while its range is chosen from
SAMPLES = 1024  # scores of each file that the ranges are made even by

RECORD = [
    *(("source", "<i8"), ("target", "<i8"), ("score", "<f8"), ("cosine", "<f4")),
    *(("source_mean", "<f8"), ("target_mean", "<f8"), ("rank", "<i4"), ("direction", "i1")),
]
JUDGED_RECORD = [*RECORD, ("probability", "<f8"), ("margin", "<f8")]


@dataclass(frozen=True, kw_only=True)
class RowNeighbours:
    """Some rows of a side, and the neighbours of each.

    ``ids`` (Q,) ascend; ``means`` (Q,) are the mean cosines of the neighbourhoods that margins
    compare with.
    """

    ids: NDArray[np.int64]
    lists: Neighbours
    means: FloatArray


@dataclass(frozen=True, kw_only=True)
class BestPairs:
    """The best pairs, with ties, of the lists of some rows of a side.

    ``candidates`` is how many pairs these lists hold; those that the other side's lists hold, too,
    count for the targets.
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
    """Yield, for each part, the best pairs by score of each row's list, with ties; by row.

    The parts are of one ``side``: FORWARD for sources, BACKWARD for targets. ``others``, the whole
    other side, is gone through once for all of them, and one part of it held at a time.
    """
    from miner.compiled_pairs import fill_reverse_ranks  # loads Numba

    shapes = [part.lists.ids.shape for part in parts]
    # The mean of each neighbour, and the rows' ranks in their lists.
    known = [(np.zeros(shape), np.zeros(shape, dtype=np.int32)) for shape in shapes]

    def enter(place: int, other: RowNeighbours) -> None:
        own = parts[place]
        there = other.ids, other.lists.ids, other.means
        fill_reverse_ranks(own.ids, own.lists.ids, *there, *known[place])

    for other in others:
        if len(other.ids):
            in_threads(partial(enter, other=other), range(len(parts)))
    for part, (mean, rank_there) in zip(parts, known, strict=True):
        yield _best(part, mean, rank_there, side, margin)


def _best(
    part: RowNeighbours,
    mean: FloatArray,
    rank_there: NDArray[np.int32],
    side: Direction,
    margin: str,
) -> BestPairs:
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


def merge_directions(ours: Pairs, theirs: Pairs) -> tuple[Pairs, NDArray[np.int8]]:
    """Return the best pairs of sources and of targets, each once, in order of source, then target.

    Also whose best they are: int8 (P,), a ``Direction``.
    """
    columns = zip(vars(ours), vars(ours).values(), vars(theirs).values(), strict=True)
    both = Pairs(**{name: np.concatenate(halves) for name, *halves in columns})
    order = np.lexsort((both.target, both.source))
    source, target = both.source[order], both.target[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    whose = np.where(order < len(ours), Direction.FORWARD, Direction.BACKWARD)
    first = np.flatnonzero(new)
    best = np.bitwise_or.reduceat(whose, first) if len(first) else whose
    return both.take(order[first]), best.astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class SortedPairsFile:
    """Pairs sorted by score, ascending, in an ``.npy`` file: the best ones of rows of ``side``."""

    path: Path
    side: Direction

    def records(self) -> NDArray[np.void]:
        """Return all of them, mapped into memory."""
        return np.asarray(np.load(self.path, mmap_mode="r"))


def sort_pairs(path: Path, pairs: Pairs, side: Direction) -> SortedPairsFile:
    """Write the best pairs of some rows of a side, sorted."""
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
    """Yield what ``miner.selection.select`` chooses of the same pairs, in the same order, in parts.

    ``files`` are the best pairs of all rows of both sides; ids are rows, from 0. A range has about
    ``size`` pairs; those that score the same are in one. The rest is as in ``select``.
    """
    check_choice("retrieval", retrieval, RETRIEVALS)
    taken = [np.zeros(_largest(files, name) + 1, dtype=np.bool_) for name in ("source", "target")]
    directions = Direction.FORWARD, Direction.BACKWARD
    sides = [[file for file in files if file.side is direction] for direction in directions]

    def load(bounds: tuple[float, float]) -> tuple[Pairs, NDArray[np.int8]]:
        return merge_directions(*(_load(own, *bounds) for own in sides))

    for pairs, best in prefetch(load, _ranges(files, size, threshold)):
        # As the lists of a range see it, a pair's direction is whose best it is.
        seen = replace(pairs, direction=best)
        if retrieval == "max":
            ranked = best_of_both(seen)
            ranked = ranked[take_free(pairs.source[ranked], pairs.target[ranked], *taken)]
        else:
            chosen = RETRIEVALS[retrieval](seen)
            ranked = chosen[order_best_first(pairs.take(chosen))]
        yield pairs.take(ranked[pairs.score[ranked] > threshold])


def merge_in_ranges(
    files: Sequence[SortedPairsFile], *, size: int, threshold: float = -np.inf
) -> Iterator[Pairs]:
    """Yield all pairs that score above ``threshold``, in the order of ``select``, in such parts."""

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
    """Yield ranges of scores, above the first up to the second, best first, to the threshold."""
    total, samples = 0, []
    for scores in (file.records()["score"] for file in files):  # mapped one at a time
        total += len(scores)
        samples.append(scores[evenly(len(scores), min(SAMPLES, len(scores)))])
    count = max(1, -(-total // size))
    scores = np.sort(np.concatenate([*samples, [np.inf]]))
    bounds = np.unique(scores[np.arange(1, count) * len(scores) // count])
    edges = [-np.inf, *bounds[bounds < np.inf].tolist(), np.inf]
    for low, high in reversed(list(itertools.pairwise(edges))):
        if high > threshold:
            yield low, high


def _load(files: Sequence[SortedPairsFile], low: float, high: float) -> Pairs:
    """Return the pairs of the files that score above ``low`` and not above ``high``."""
    parts = []
    for file in files:
        records = file.records()
        first, last = np.searchsorted(records["score"], [low, high], side="right")
        parts.append(records[first:last])
    whole = np.concatenate(parts) if parts else np.empty(0, dtype=RECORD)
    kind = JudgedPairs if whole.dtype == JUDGED_RECORD else Pairs
    return kind(**{name: whole[name].copy() for name in whole.dtype.names or ()})
