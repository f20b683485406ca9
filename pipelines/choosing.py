"""The select stage: all neighbours to the chosen pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from pipelines import progress
from pipelines.embedding import ROWS
from pipelines.options import SOURCE, TARGET, MiningOptions
from pipelines.searching import ShardNeighbours

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from miner.arrays import Neighbours, Pairs

PAIRS = "pairs.parquet"
REJECTED = "rejected.parquet"  # only where guards are asked for


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The chosen pairs, sealed as rows and scores, best first, and what they were chosen from."""

    pairs: Artefact
    shards: Sequence[ShardNeighbours]


def select_pairs(options: MiningOptions, shards: Sequence[ShardNeighbours]) -> Choice:
    """Score all candidates and choose among them; seals ``pairs``."""
    from miner.choosable import choosable_pairs
    from miner.selection import select

    ordered = sorted(shards, key=lambda found: found.embedded.shard.index)
    sources = [found for found in ordered if found.embedded.shard.side == SOURCE]
    targets = [found for found in ordered if found.embedded.shard.side == TARGET]
    key = content_key(
        "select",
        neighbours=[sorted(found.neighbours.files.items()) for found in (*sources, *targets)],
        rows=[found.embedded.vectors.files[ROWS] for found in (*sources, *targets)],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        import pyarrow.parquet as pq

        with progress.stage("select", None, "candidates") as meter:
            (source_ids, forward), (target_ids, backward) = _whole(sources), _whole(targets)
            some, candidates = choosable_pairs(
                forward,
                backward,
                source_ids=source_ids,
                target_ids=target_ids,
                margin=options.margin,
            )
            del forward, backward
            chosen = select(some, retrieval=options.retrieval, threshold=options.threshold)
            meter.advance(candidates)
            with draft.file(PAIRS) as path:
                pq.write_table(_numbers(chosen), path)
        return {"candidates": candidates, "pairs": len(chosen)}

    pairs = produce(options.work_dir / "pairs", key=key, write=write)
    return Choice(pairs=pairs, shards=ordered)


def _whole(shards: Sequence[ShardNeighbours]) -> tuple[NDArray[np.int64], Neighbours]:
    """One side's rows and their neighbours, ascending by row."""
    import numpy as np

    from miner.arrays import Neighbours

    rows = np.concatenate([found.embedded.row_ids() for found in shards])
    whole: Neighbours | None = None
    start = 0
    for found in shards:  # into their place: joining them at the end would hold all of them twice
        part = found.load()
        if whole is None:
            shape = len(rows), part.ids.shape[1]
            whole = Neighbours(
                ids=np.empty(shape, dtype=np.int64), cosines=np.empty(shape, dtype=np.float32)
            )
        block = slice(start, start + len(part))
        whole.ids[block], whole.cosines[block] = part.ids, part.cosines
        start += len(part)
    assert whole is not None  # a side has at least one shard
    return rows, whole


def _numbers(pairs: Pairs) -> pa.Table:
    """What the output says of pairs but for their sentences."""
    import pyarrow as pa

    from miner.arrays import Direction

    names = pa.array(["", *(direction.name.lower() for direction in Direction)])
    return pa.table(
        {
            "score": pairs.score,
            "source_row": pairs.source,
            "target_row": pairs.target,
            "cosine": pairs.cosine,
            "source_mean": pairs.source_mean,
            "target_mean": pairs.target_mean,
            "rank": pairs.rank,
            "direction": names.take(pa.array(pairs.direction)),
        }
    )
