"""Score all candidate pairs, and select pairs among them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from miner import score_ranges
from miner.arrays import Direction, Pairs
from miner.score_ranges import BestPairs, RowNeighbours, best_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, ROWS
from miner.storage.pair_tables import numbers_schema, table_of
from miner.threads import prefetch, run_in_threads, use_all_threads
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.options import MiningOptions
from pipelines.references import ChosenPairs, ShardNeighbours, collect_sides

Side: TypeAlias = Sequence[ShardNeighbours]


def select_pairs(run: RunContext, shards: Sequence[ShardNeighbours]) -> ChosenPairs:
    """Select and save pairs by margin, with errors of ``collect_sides``."""
    options = run.options
    sources, targets = collect_sides(shards).values()
    both_sides = [*sources, *targets]
    key = content_key(
        "select",
        neighbours=[shard.content for shard in both_sides],
        rows=[shard.embedded.vectors.files[ROWS] for shard in both_sides],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.margin_threshold),
    )
    pairs = produce(run.folder.pairs, key=key, write=partial(_select, run, sources, targets))
    return ChosenPairs(pairs=pairs, shards=both_sides)


def range_pairs(options: MiningOptions) -> int:
    """Return how many pairs fit into memory at a time, 65,536 to 1,048,576."""
    minimum, maximum = score_ranges.MIN_RANGE, score_ranges.MAX_RANGE
    return max(minimum, min(maximum, spare_bytes(options) // score_ranges.RANGE_BYTES))


def write_sorted(draft: Draft, parts: Iterable[Pairs], options: MiningOptions) -> int:
    """Write all pairs above the margin threshold to a draft, best first.

    The file is ``pairs.parquet``. The number of written pairs is returned.
    """
    with draft.scratch() as scratch:
        files = [
            score_ranges.sort_pairs(scratch / f"{number:05d}.npy", pairs, Direction.BOTH)
            for number, pairs in enumerate(parts)
        ]
        size, threshold = range_pairs(options), options.margin_threshold
        ordered = score_ranges.merge_in_ranges(files, size=size, threshold=threshold)
        return write_in_order(draft, PAIRS, ordered)


def write_in_order(draft: Draft, name: str, parts: Iterable[Pairs], *, judged: bool = False) -> int:
    """Write ``Pairs``, or ``JudgedPairs`` if ``judged``, and return how many."""
    count = 0
    with draft.file(name) as path, pq.ParquetWriter(path, numbers_schema(judged=judged)) as writer:
        for part in parts:
            writer.write_table(table_of(part))
            count += len(part)
    return count


def _select(run: RunContext, sources: Side, targets: Side, draft: Draft) -> Mapping[str, Any]:
    options = run.options
    files: list[score_ranges.SortedPairsFile] = []
    candidates = 0
    with (
        use_all_threads(),
        run.monitor.stage("select", None, "candidates") as meter,
        draft.scratch() as scratch,
    ):

        def numbered_parts() -> Iterator[tuple[Path, BestPairs]]:
            nonlocal candidates
            for number, best in enumerate(_best_pairs(options, sources, targets)):
                candidates += best.candidates
                meter.advance(best.candidates)
                yield scratch / f"{number:05d}.npy", best

        def sort(numbered: tuple[Path, BestPairs]) -> None:
            path, best = numbered
            files.append(score_ranges.sort_pairs(path, best.pairs, best.side))

        run_in_threads(sort, numbered_parts())
        chosen = score_ranges.select_in_ranges(
            files,  # in any order: pairs are sorted
            size=range_pairs(options),
            retrieval=options.retrieval,
            threshold=options.margin_threshold,
        )
        pairs = write_in_order(draft, PAIRS, chosen)
    return {"candidates": candidates, "pairs": pairs}


def _best_pairs(options: MiningOptions, sources: Side, targets: Side) -> Iterator[BestPairs]:
    def load(shard: ShardNeighbours) -> RowNeighbours:
        lists, means = shard.load(options.scopes[0]), shard.load(options.scopes[-1]).means()
        return RowNeighbours(ids=shard.embedded.row_ids(), lists=lists, means=means)

    directions = (Direction.FORWARD, sources, targets), (Direction.BACKWARD, targets, sources)
    for side, shards, others in directions:
        most = max(1, *(len(shard.embedded) for shard in shards))
        waiting = score_ranges.ROW_BYTES * options.k * most
        count = 1 + spare_bytes(options) // (2 * waiting)
        for start in range(0, len(shards), count):
            parts = list(map(load, shards[start : start + count]))
            yield from best_pairs(parts, prefetch(load, others), side=side, margin=options.margin)
