"""Measure the recall of an approximate search on exactly searched rows."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from miner.arrays import IntArray, Neighbours, evenly_spaced
from miner.knn.core.rescore import merge
from miner.knn.core.tuning import PART_TRIAL_ROWS, choose
from miner.knn.tiled import search_one_way
from miner.storage.artefacts import Draft, content_key, produce
from pipelines.context import RunContext
from pipelines.references import (
    EmbeddedShard,
    RecallSample,
    SampledNeighbours,
    SideVectors,
    save_row_neighbours,
    shard_parts,
)

# Evenly spaced rows per side that are compared with the whole other side. A prime, because a stride
# of a power of two would sample the rows that cells are made of, whose neighbours are always found.
SAMPLE = 1021


def recall_samples(
    source: Sequence[EmbeddedShard], target: Sequence[EmbeddedShard]
) -> list[RecallSample]:
    """Return the recall samples of the source and of the target side."""
    sides = (source, target), (target, source)
    return [RecallSample(shards=shards, others=others) for shards, others in sides]


def sampled_positions(side: SideVectors) -> IntArray:
    """Return up to 1,021 evenly spaced positions in a side, int64, ascending."""
    return evenly_spaced(len(side), min(SAMPLE, len(side)))


def search_sample(run: RunContext, sample: RecallSample) -> list[SampledNeighbours]:
    """Search a sample exactly in the other side, and save its neighbours.

    A reference per shard is returned, in order. Ids are positions in the whole other side.
    """
    side = sample.shards[0].shard.side
    k = min(run.options.k, len(SideVectors(sample.others)))
    key = content_key(
        "recall",
        vectors=[embedded.content for embedded in sample.shards],
        others=[embedded.content for embedded in sample.others],
        k=k,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        queries, base = SideVectors(sample.shards), SideVectors(sample.others)
        positions = sampled_positions(queries)
        rows, start, chosen = queries.take(positions), 0, None
        exact = Neighbours.empty(len(rows), 0)
        blocks = itertools.chain.from_iterable(shard.unit_blocks() for shard in sample.others)
        with run.monitor.stage("recall", len(rows) * len(base), "similarities", side) as meter:
            for block in blocks:
                chosen = chosen or choose(rows, block, k=k, precision=None, tried=PART_TRIAL_ROWS)
                neighbours = search_one_way(
                    rows, block, k=k, precision=chosen, progress=meter.advance
                )
                neighbours.ids[:] += start
                exact = merge([exact, neighbours], k=k)
                start += len(block)
        return {"starts": {side: save_row_neighbours(draft, queries, side, positions, exact)}}

    artefact = produce(run.folder.recall(side), key=key, write=write)
    return [
        SampledNeighbours(embedded=embedded, part=part, artefact=lists)
        for embedded, part, lists in shard_parts(artefact, sample.shards)
    ]


def measure_recall(sampled: SampledNeighbours, neighbours: Neighbours) -> Mapping[str, int]:
    """Count how many true neighbours of a sample an approximate search found.

    ``neighbours`` are the approximate ones of all vectors of the shard. "recall_wanted" counts true
    neighbours, "recall_found" approximate cosines that are at least the last true neighbour's.
    """
    places, exact = sampled.load()
    total = exact.cosines.size
    hits = (neighbours.cosines[places] >= exact.cosines[:, -1:]).sum() if total else 0
    return {"recall_wanted": total, "recall_found": int(hits)}
