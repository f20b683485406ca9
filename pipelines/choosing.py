"""The select stage: all neighbours to the chosen pairs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from pipelines import progress
from pipelines.embedding import ROWS
from pipelines.memory import spare_bytes
from pipelines.options import SOURCE, TARGET, MiningOptions
from pipelines.reading import whole_side
from pipelines.searching import ShardNeighbours

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.arrays import Pairs
    from miner.bands import Sorted
    from miner.choosable import BestPairs, Part

PAIRS, BANDS = "pairs.parquet", "bands"
REJECTED = "rejected.parquet"  # only where guards are asked for


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
    key = content_key(
        "select",
        neighbours=[
            [sorted(artefact.files.items()) for artefact in found.neighbours.values()]
            for found in (*sources, *targets)
        ],
        rows=[found.embedded.vectors.files[ROWS] for found in (*sources, *targets)],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        bands = options.work_dir / "pairs" / BANDS
        shutil.rmtree(bands, ignore_errors=True)
        bands.mkdir()
        facts = _select(options, sources, targets, bands, draft)
        shutil.rmtree(bands)
        return facts

    pairs = produce(options.work_dir / "pairs", key=key, write=write)
    return Choice(pairs=pairs, shards=[*sources, *targets])


def _select(
    options: MiningOptions,
    sources: Sequence[ShardNeighbours],
    targets: Sequence[ShardNeighbours],
    bands: Path,
    draft: Draft,
) -> Mapping[str, Any]:
    import pyarrow.parquet as pq

    from miner.bands import BAND_BYTES, LEAST_BAND, select_in_bands, sort_pairs

    files: list[Sorted] = []
    candidates = pairs = 0
    with (
        progress.stage("select", None, "candidates") as meter,
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, _numbers_schema()) as writer,
    ):
        for best in _best_pairs(options, sources, targets):
            files.append(sort_pairs(bands / f"{len(files):05d}.npy", best))
            candidates += best.candidates
            meter.advance(best.candidates)
        size = max(LEAST_BAND, spare_bytes(options) // BAND_BYTES)
        for chosen in select_in_bands(
            files, size=size, retrieval=options.retrieval, threshold=options.threshold
        ):
            writer.write_table(_numbers(chosen))
            pairs += len(chosen)
    return {"candidates": candidates, "pairs": pairs}


def _best_pairs(
    options: MiningOptions, sources: Sequence[ShardNeighbours], targets: Sequence[ShardNeighbours]
) -> Iterator[BestPairs]:
    """The best pairs of each shard's rows; two shards are in memory at a time."""
    from miner.arrays import Direction
    from miner.choosable import best_pairs

    for side, own, others in (
        (Direction.FORWARD, sources, targets),
        (Direction.BACKWARD, targets, sources),
    ):
        for found in own:
            rest = (_part(options, other) for other in others)
            yield best_pairs(_part(options, found), rest, side=side, margin=options.margin)


def _part(options: MiningOptions, found: ShardNeighbours) -> Part:
    from miner.choosable import Part

    candidates, means = options.scopes[0], options.scopes[-1]
    return Part(
        ids=found.embedded.row_ids(),
        lists=found.load(candidates),
        means=found.load(means).means(),
    )


def _numbers_schema() -> pa.Schema:
    """The Arrow schema of what the output says of pairs but for their sentences."""
    import pyarrow as pa

    return pa.schema(
        {
            "score": pa.float64(),
            "source_row": pa.int64(),
            "target_row": pa.int64(),
            "cosine": pa.float32(),
            "source_mean": pa.float64(),
            "target_mean": pa.float64(),
            "rank": pa.int32(),
            "direction": pa.string(),
        }
    )


def _numbers(pairs: Pairs) -> pa.Table:
    """Pairs, of ``_numbers_schema``."""
    import pyarrow as pa

    from miner.arrays import Direction

    names = pa.array(["", *(direction.name.lower() for direction in Direction)])
    columns = [
        *(pairs.score, pairs.source, pairs.target, pairs.cosine),
        *(pairs.source_mean, pairs.target_mean, pairs.rank),
        names.take(pa.array(pairs.direction)),
    ]
    return pa.table(columns, schema=_numbers_schema())
