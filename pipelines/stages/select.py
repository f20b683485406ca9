"""The select stage: all neighbours to the chosen pairs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from miner import score_ranges
from miner.arrays import Direction
from miner.score_ranges import BestPairs, RowNeighbours, best_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, ROWS
from miner.storage.pair_tables import numbers_schema, table_of
from miner.threads import in_threads, prefetch, use_all_threads
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.options import MiningOptions
from pipelines.references import ChosenPairs, ShardNeighbours, collect_sides

Side: TypeAlias = Sequence[ShardNeighbours]


def select_pairs(run: RunContext, shards: Sequence[ShardNeighbours]) -> ChosenPairs:
    """Score all candidates and choose among them; seals ``pairs``."""
    options = run.options
    sources, targets = collect_sides(shards).values()
    both = [*sources, *targets]
    key = content_key(
        "select",
        neighbours=[found.content for found in both],
        rows=[found.embedded.vectors.files[ROWS] for found in both],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.margin_threshold),
    )
    pairs = produce(run.folder.pairs, key=key, write=partial(_select, run, sources, targets))
    return ChosenPairs(pairs=pairs, shards=both)


def range_pairs(options: MiningOptions) -> int:
    """Return how many pairs a range of scores may have."""
    least, most = score_ranges.MIN_RANGE, score_ranges.MAX_RANGE
    return max(least, min(most, spare_bytes(options) // score_ranges.RANGE_BYTES))


def write_sorted(
    draft: Draft, files: Sequence[score_ranges.SortedPairsFile], options: MiningOptions
) -> int:
    """Write all pairs above the threshold of margins, best first, as they are; return how many."""
    kept, size, threshold = 0, range_pairs(options), options.margin_threshold
    with draft.file(PAIRS) as path, pq.ParquetWriter(path, numbers_schema()) as writer:
        for part in score_ranges.merge_in_ranges(files, size=size, threshold=threshold):
            writer.write_table(table_of(part))
            kept += len(part)
    return kept


def _select(run: RunContext, sources: Side, targets: Side, draft: Draft) -> Mapping[str, Any]:
    options = run.options
    files: list[score_ranges.SortedPairsFile] = []
    candidates = pairs = 0
    with (
        use_all_threads(),
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
            files.append(score_ranges.sort_pairs(path, best.pairs, best.side))

        in_threads(sort, counted())
        for chosen in score_ranges.select_in_ranges(
            files,  # in any order: pairs are sorted
            size=range_pairs(options),
            retrieval=options.retrieval,
            threshold=options.margin_threshold,
        ):
            writer.write_table(table_of(chosen))
            pairs += len(chosen)
    return {"candidates": candidates, "pairs": pairs}


def _best_pairs(options: MiningOptions, sources: Side, targets: Side) -> Iterator[BestPairs]:
    """Yield the best pairs of each shard's rows.

    The other side is read once for as many shards as memory has room for, one shard at a time.
    """

    def part(found: ShardNeighbours) -> RowNeighbours:
        lists, means = found.load(options.scopes[0]), found.load(options.scopes[-1]).means()
        return RowNeighbours(ids=found.embedded.row_ids(), lists=lists, means=means)

    both = (Direction.FORWARD, sources, targets), (Direction.BACKWARD, targets, sources)
    for side, own, others in both:
        most = max(1, *(len(found.embedded) for found in own))
        waiting = score_ranges.ROW_BYTES * options.k * most
        count = 1 + spare_bytes(options) // (2 * waiting)
        for start in range(0, len(own), count):
            parts = list(map(part, own[start : start + count]))
            yield from best_pairs(parts, prefetch(part, others), side=side, margin=options.margin)
