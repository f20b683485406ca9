"""The recall of an approximate search: measured on some rows that are searched exactly, too."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from miner.arrays import IntArray, Neighbours, evenly
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
    parts_of,
    save_row_neighbours,
)

# Rows of a side, evenly spread; each is compared with the whole other side. A prime: strides of a
# power of two would meet the very rows that cells are made of, whose neighbours are found.
SAMPLE = 1021


def recall_samples(
    source: Sequence[EmbeddedShard], target: Sequence[EmbeddedShard]
) -> list[RecallSample]:
    """Return the samples of both sides."""
    both = (source, target), (target, source)
    return [RecallSample(shards=own, others=other) for own, other in both]


def sampled_positions(side: SideVectors) -> IntArray:
    """Return the positions of the sample in a side, ascending."""
    return evenly(len(side), min(SAMPLE, len(side)))


def search_sample(run: RunContext, sample: RecallSample) -> list[SampledNeighbours]:
    """Search some rows of a side in the whole other side, exactly; seals ``tiles/recall-SIDE``.

    Neither the rows nor what is found depends on shards: their ids are positions in the side.
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
        own, base = SideVectors(sample.shards), SideVectors(sample.others)
        positions = sampled_positions(own)
        rows, start, tuned = own.take(positions), 0, None
        exact = Neighbours.none(len(rows), 0)
        blocks = itertools.chain.from_iterable(other.unit_blocks() for other in sample.others)
        with run.monitor.stage("recall", len(rows) * len(base), "similarities", side) as meter:
            for others in blocks:
                tuned = tuned or choose(rows, others, k=k, precision=None, tried=PART_TRIAL_ROWS)
                near = search_one_way(rows, others, k=k, tuned=tuned, progress=meter.advance)
                near.ids[:] += start
                exact = merge([exact, near], k=k)
                start += len(others)
        return {"starts": {side: save_row_neighbours(draft, own, side, positions, exact)}}

    artefact = produce(run.folder.recall(side), key=key, write=write)
    return [
        SampledNeighbours(embedded=embedded, part=part, artefact=lists)
        for embedded, part, lists in parts_of(artefact, sample.shards)
    ]


def measure_recall(sampled: SampledNeighbours, found: Neighbours) -> Mapping[str, int]:
    """Count the true neighbours of a shard's sampled rows, and those of them that were found.

    A found neighbour counts if it is as near as the last true one: which of equally near ones is
    taken makes no difference to a margin.
    """
    places, exact = sampled.load()
    wanted = exact.cosines.size
    kept = (found.cosines[places] >= exact.cosines[:, -1:]).sum() if wanted else 0
    return {"recall_wanted": wanted, "recall_found": int(kept)}
