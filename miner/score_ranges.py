"""Selection at any size: the same pairs as ``miner.selection.select``, a range of scores at a time.

What is chosen among pairs that score alike depends on better pairs only by which sentences these
have taken. So the best pairs of all rows are kept on disk, sorted, and chosen from in ranges, best
first: memory holds one range, and a byte for each row of both sides. Repeated matching of mutually
best pairs comes to the same in many rounds over all of them.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Direction, JudgedPairs, Pairs, evenly
from miner.best_pairs import joined
from miner.choices import check_choice
from miner.selection import RETRIEVALS, best_of_both, order_best_first, take_free
from miner.storage.artefacts import write_array
from miner.threads import ahead

SIDES = (Direction.FORWARD, Direction.BACKWARD)
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
class Sorted:
    """Pairs sorted by score, ascending, in an ``.npy`` file: the best ones of rows of ``side``."""

    path: Path
    side: Direction

    def records(self) -> NDArray[np.void]:
        """Return all of them, mapped into memory."""
        records: NDArray[np.void] = np.load(self.path, mmap_mode="r")
        return records


def sort_pairs(path: Path, pairs: Pairs, side: Direction) -> Sorted:
    """Write the best pairs of some rows of a side, sorted."""
    record = JUDGED_RECORD if isinstance(pairs, JudgedPairs) else RECORD
    records = np.empty(len(pairs), dtype=record)
    order = np.argsort(pairs.score, kind="stable")
    for name, _ in record:
        records[name] = getattr(pairs, name)[order]
    write_array(path, records)
    return Sorted(path=path, side=side)


def select_in_ranges(
    files: Sequence[Sorted], *, size: int, retrieval: str = "max", threshold: float = -np.inf
) -> Iterator[Pairs]:
    """Yield what ``miner.selection.select`` chooses of the same pairs, in the same order, in parts.

    Args:
        files: the best pairs of all rows of both sides; ids are rows, from 0.
        size: pairs of a range, about; pairs that score the same are in one.
        retrieval: one of ``miner.selection.RETRIEVALS``.
        threshold: only pairs that score strictly above it are returned.

    Raises:
        ValueError: unknown retrieval.
    """
    check_choice("retrieval", retrieval, RETRIEVALS)
    taken = [np.zeros(_largest(files, name) + 1, dtype=np.bool_) for name in ("source", "target")]
    sides = [[file for file in files if file.side is side] for side in SIDES]

    def load(bounds: tuple[float, float]) -> tuple[Pairs, NDArray[np.int8]]:
        return joined(*(_load(own, *bounds) for own in sides))

    for pairs, best in ahead(load, _ranges(files, size, threshold)):
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
    files: Sequence[Sorted], *, size: int, threshold: float = -np.inf
) -> Iterator[Pairs]:
    """Yield all pairs that score above ``threshold``, in the order of ``select``, in parts.

    Arguments are those of ``select_in_ranges``; whose best the pairs are does not matter.
    """

    def load(bounds: tuple[float, float]) -> Pairs:
        pairs = _load(files, *bounds)
        ranked = order_best_first(pairs)
        return pairs.take(ranked[pairs.score[ranked] > threshold])

    if files:
        yield from ahead(load, _ranges(files, size, threshold))


def _largest(files: Sequence[Sorted], name: str) -> int:
    return max((int(file.records()[name].max(initial=0)) for file in files), default=0)


def _ranges(files: Sequence[Sorted], size: int, threshold: float) -> Iterator[tuple[float, float]]:
    """Yield ranges of scores, above the first up to the second, best first, to the threshold."""
    total, samples = 0, []
    for file in files:
        scores = file.records()["score"]
        some = min(SAMPLES, len(scores))
        total += len(scores)
        samples.append(scores[evenly(len(scores), some)])
    count = max(1, -(-total // size))
    scores = np.sort(np.concatenate([*samples, [np.inf]]))
    bounds = np.unique(scores[np.arange(1, count) * len(scores) // count])
    edges = [-np.inf, *bounds[bounds < np.inf].tolist(), np.inf]
    for low, high in reversed(list(itertools.pairwise(edges))):
        if high > threshold:
            yield low, high


def _load(files: Sequence[Sorted], low: float, high: float) -> Pairs:
    """Return the pairs of the files that score above ``low`` and not above ``high``."""
    parts = []
    for file in files:
        records = file.records()
        first, last = np.searchsorted(records["score"], [low, high], side="right")
        parts.append(records[first:last])
    whole = np.concatenate(parts) if parts else np.empty(0, dtype=RECORD)
    judged = whole.dtype == JUDGED_RECORD
    kind, record = (JudgedPairs, JUDGED_RECORD) if judged else (Pairs, RECORD)
    return kind(**{name: whole[name].copy() for name, _ in record})
