"""The select stage: all neighbours to the chosen pairs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from miner.arrays import Direction
from miner.score_ranges import (
    MAX_RANGE,
    MIN_RANGE,
    RANGE_BYTES,
    ROW_BYTES,
    BestPairs,
    Part,
    Sorted,
    best_pairs,
    merge_in_ranges,
    select_in_ranges,
    sort_pairs,
)
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, ROWS
from miner.storage.pair_tables import numbers_schema, table_of
from miner.threads import ahead, all_threads, in_threads
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.options import MiningOptions
from pipelines.references import ChosenPairs, ShardNeighbours, whole_sides


def select_pairs(run: RunContext, shards: Sequence[ShardNeighbours]) -> ChosenPairs:
    """Score all candidates and choose among them; seals ``pairs``."""
    options = run.options
    sources, targets = whole_sides(shards).values()
    key = content_key(
        "select",
        neighbours=[found.content for found in (*sources, *targets)],
        rows=[found.embedded.vectors.files[ROWS] for found in (*sources, *targets)],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.margin_threshold),
    )
    pairs = produce(run.folder.pairs, key=key, write=partial(_select, run, sources, targets))
    return ChosenPairs(pairs=pairs, shards=[*sources, *targets])


def range_pairs(options: MiningOptions) -> int:
    """Return how many pairs a range of scores may have."""
    return max(MIN_RANGE, min(MAX_RANGE, spare_bytes(options) // RANGE_BYTES))


def write_sorted(
    draft: Draft, files: Sequence[Sorted], options: MiningOptions, *, threshold: float
) -> int:
    """Write all pairs above a threshold, best first, as they are; return how many."""
    kept = 0
    with draft.file(PAIRS) as path, pq.ParquetWriter(path, numbers_schema()) as writer:
        for part in merge_in_ranges(files, size=range_pairs(options), threshold=threshold):
            writer.write_table(table_of(part))
            kept += len(part)
    return kept


def _select(
    run: RunContext,
    sources: Sequence[ShardNeighbours],
    targets: Sequence[ShardNeighbours],
    draft: Draft,
) -> Mapping[str, Any]:
    options = run.options
    files: list[Sorted] = []
    candidates = pairs = 0
    with (
        all_threads(),
        run.monitor.stage("select", None, "candidates") as meter,
        draft.scratch() as scratch,
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, numbers_schema()) as writer,
    ):

        def counted() -> Iterator[tuple[Path, BestPairs]]:
            nonlocal candidates
            for number, best in enumerate(_best_pairs(options, sources, targets)):
                candidates += best.candidates
                meter.advance(best.candidates)
                yield scratch / f"{number:05d}.npy", best

        def sort(numbered: tuple[Path, BestPairs]) -> None:
            path, best = numbered
            files.append(sort_pairs(path, best.pairs, best.side))

        in_threads(sort, counted())
        for chosen in select_in_ranges(
            files,  # in any order: pairs are sorted
            size=range_pairs(options),
            retrieval=options.retrieval,
            threshold=options.margin_threshold,
        ):
            writer.write_table(table_of(chosen))
            pairs += len(chosen)
    return {"candidates": candidates, "pairs": pairs}


def _best_pairs(
    options: MiningOptions, sources: Sequence[ShardNeighbours], targets: Sequence[ShardNeighbours]
) -> Iterator[BestPairs]:
    """Yield the best pairs of each shard's rows.

    The other side is read once for as many shards as memory has room for, one shard at a time.
    """
    for side, own, others in (
        (Direction.FORWARD, sources, targets),
        (Direction.BACKWARD, targets, sources),
    ):
        waiting = ROW_BYTES * options.k * max(1, *(len(found.embedded) for found in own))
        count = 1 + spare_bytes(options) // (2 * waiting)
        for start in range(0, len(own), count):
            parts = [_part(options, found) for found in own[start : start + count]]
            rest = ahead(partial(_part, options), others)
            yield from best_pairs(parts, rest, side=side, margin=options.margin)


def _part(options: MiningOptions, found: ShardNeighbours) -> Part:
    candidates, means = options.scopes[0], options.scopes[-1]
    return Part(
        ids=found.embedded.row_ids(), lists=found.load(candidates), means=found.load(means).means()
    )
