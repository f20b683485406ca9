"""The select stage: all neighbours to the chosen pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import SOURCE, TARGET
from pipelines import progress
from pipelines.options import MiningOptions
from pipelines.references import whole_side
from pipelines.resources.memory import spare_bytes
from pipelines.stages.encode import ROWS
from pipelines.stages.merge import ShardNeighbours

if TYPE_CHECKING:
    from miner.best_pairs import BestPairs, Part
    from miner.score_ranges import Sorted

PAIRS = "pairs.parquet"
REJECTED = "rejected.parquet"  # only where filters are asked for


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The chosen pairs, sealed as rows and scores, best first, and what they were chosen from."""

    pairs: Artefact
    shards: Sequence[ShardNeighbours]


def select_pairs(options: MiningOptions, shards: Sequence[ShardNeighbours]) -> Choice:
    """Score all candidates and choose among them; seals ``pairs``."""
    sources, targets = (
        whole_side(shards, side, lambda found: found.embedded.shard) for side in (SOURCE, TARGET)
    )
    folder = options.work_dir / "pairs"
    key = content_key(
        "select",
        neighbours=[
            [sorted(artefact.files.items()) for artefact in found.neighbours.values()]
            for found in (*sources, *targets)
        ],
        rows=[found.embedded.vectors.files[ROWS] for found in (*sources, *targets)],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.margin_threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            return _select(options, sources, targets, scratch, draft)

    pairs = produce(folder, key=key, write=write)
    return Choice(pairs=pairs, shards=[*sources, *targets])


def range_pairs(options: MiningOptions) -> int:
    """Return how many pairs a range of scores may have."""
    from miner.score_ranges import MIN_RANGE, RANGE_BYTES

    return max(MIN_RANGE, spare_bytes(options) // RANGE_BYTES)


def _select(
    options: MiningOptions,
    sources: Sequence[ShardNeighbours],
    targets: Sequence[ShardNeighbours],
    scratch: Path,
    draft: Draft,
) -> Mapping[str, Any]:
    import pyarrow.parquet as pq

    from miner.score_ranges import select_in_ranges, sort_pairs
    from miner.storage.pair_numbers import numbers_schema, table_of

    files: list[Sorted] = []
    candidates = pairs = 0
    with (
        progress.stage("select", None, "candidates") as meter,
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, numbers_schema()) as writer,
    ):
        for best in _best_pairs(options, sources, targets):
            files.append(sort_pairs(scratch / f"{len(files):05d}.npy", best.pairs, best.side))
            candidates += best.candidates
            meter.advance(best.candidates)
        for chosen in select_in_ranges(
            files,
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
    """The best pairs of each shard's rows; two shards are in memory at a time."""
    from miner.arrays import Direction
    from miner.best_pairs import best_pairs

    for side, own, others in (
        (Direction.FORWARD, sources, targets),
        (Direction.BACKWARD, targets, sources),
    ):
        for found in own:
            rest = (_part(options, other) for other in others)
            yield best_pairs(_part(options, found), rest, side=side, margin=options.margin)


def _part(options: MiningOptions, found: ShardNeighbours) -> Part:
    from miner.best_pairs import Part

    candidates, means = options.scopes[0], options.scopes[-1]
    return Part(
        ids=found.embedded.row_ids(),
        lists=found.load(candidates),
        means=found.load(means).means(),
    )
