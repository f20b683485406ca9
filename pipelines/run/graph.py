"""The mining graph.

    sides -> read -> encode -> train, fill indexes -> all tiles -> search -> merge
          -> select -> align -> filter -> summary -> export

Elements are small references to sealed artefacts, never sentences or vectors, so a runner moves
next to nothing. Only Create, ParDo and GroupByKey are used, in one line without side inputs or
second outputs: every runner has them. References that a runner lost all the same are missed by the
next stage that gathers (``pipelines.stages.read.whole_side``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.metrics.metric import Metrics

from miner.storage.layout import SOURCE, TARGET
from pipelines.options import MiningOptions
from pipelines.references import Shard
from pipelines.resources.memory import peak_bytes, release
from pipelines.run.failures import note_failure
from pipelines.run.ledger import note_done
from pipelines.stages.align import align_pairs
from pipelines.stages.encode import EmbeddedShard, embed_shard
from pipelines.stages.export import export_pairs
from pipelines.stages.filter import filter_pairs
from pipelines.stages.index import fill_index, plan_sides, train_side
from pipelines.stages.merge import find_neighbours
from pipelines.stages.read import read_side
from pipelines.stages.search import plan_tiles, search_tile
from pipelines.stages.select import select_pairs
from pipelines.stages.summary import write_summary

STAGES = [
    *(read_side, embed_shard, plan_sides, train_side, fill_index, plan_tiles, search_tile),
    *(find_neighbours, select_pairs, align_pairs, filter_pairs, write_summary, export_pairs),
]

Account = Callable[[Any], Mapping[str, int]]


class Stage(beam.DoFn):
    """Applies a stage's function to each element; where it returns a list, emits its items.

    Beam's counters ``stages`` are the elements done, ``sentences`` what became of those read. Its
    distributions are the ``milliseconds`` of each element and the ``peak bytes`` of a worker.
    """

    def __init__(
        self, function: Callable[..., Any], options: MiningOptions, account: Account | None = None
    ) -> None:
        self._function = function
        self._options = options
        self._account = account
        self._done = Metrics.counter("stages", function.__name__)
        self._milliseconds = Metrics.distribution("milliseconds", function.__name__)
        self._peak = Metrics.distribution("memory", "peak bytes")

    def process(self, element: object) -> Iterator[object]:
        """Run the stage on one reference, or on all those of a group."""
        start = time.perf_counter()
        try:
            result = self._function(self._options, element)
        except BaseException as error:
            note_failure(self._options, error)
            raise
        self._done.inc()
        seconds = time.perf_counter() - start
        self._milliseconds.update(round(1000 * seconds))
        self._peak.update(peak_bytes())
        results = result if isinstance(result, list) else [result]
        note_done(
            self._options.work_dir, self._function.__name__, made=len(results), seconds=seconds
        )
        for name, count in (self._account(result) if self._account else {}).items():
            Metrics.counter("sentences", name).inc(count)
        release()
        yield from results


def build(
    pipeline: beam.Pipeline, options: MiningOptions, hints: Mapping[str, str] | None = None
) -> None:
    """Add a whole mining run to ``pipeline``; its result is ``options.output``.

    ``hints`` are Beam's resource hints for the workers that encode; the others need no accelerator.
    """

    def stage(function: Callable[..., Any], account: Account | None = None) -> beam.PTransform:
        return function.__name__ >> beam.ParDo(Stage(function, options, account))

    encode = beam.ParDo(Stage(embed_shard, options, _account_of_encoding))
    tiles = (
        pipeline
        | beam.Create([SOURCE, TARGET])
        | stage(read_side, _account_of_reading)
        | "spread shards" >> _Spread(lambda shard: shard.name)
        | "embed_shard" >> encode.with_resource_hints(**(hints or {}))
        | "all shards" >> _Gather(lambda embedded: "")
        | stage(plan_sides)
        | stage(train_side)
        | "spread sides" >> _Spread(lambda shard: shard.embedded.shard.name)
        | stage(fill_index)
        | "all indexes" >> _Gather(lambda searchable: "")
        | stage(plan_tiles)
    )
    neighbours = (
        tiles
        | "spread tiles" >> _Spread(lambda tile: tile.name)
        | stage(search_tile)
        | "by shard" >> _Gather(lambda part: part.embedded.shard.name)
        | stage(find_neighbours)
    )
    _ = (
        neighbours
        | "all neighbours" >> _Gather(lambda found: "")
        | stage(select_pairs)
        | stage(align_pairs)
        | stage(filter_pairs)
        | stage(write_summary)
        | stage(export_pairs)
    )


def _account_of_reading(shards: list[Shard]) -> Mapping[str, int]:
    facts = shards[0].corpus.facts
    kept = {name: facts[name] for name in ("read", "unique", "duplicates")}
    return kept | {f"rejected: {why}": count for why, count in facts["rejected"].items()}


def _account_of_encoding(embedded: EmbeddedShard) -> Mapping[str, int]:
    counts = embedded.vectors.facts["dropped"]
    return {f"rejected: {why}": count for why, count in counts.items()}


class _Gather(beam.PTransform):
    """Groups references by a key into lists."""

    def __init__(self, key: Callable[[Any], str]) -> None:
        super().__init__()
        self._key = key

    def expand(self, references: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        key = self._key
        return (
            references
            | beam.Map(lambda reference: (key(reference), reference))
            | beam.GroupByKey()
            | beam.Map(lambda group: list(group[1]))
        )


class _Spread(beam.PTransform):
    """Hands each reference to any worker: without it, one stage's worker does the next one's."""

    def __init__(self, name: Callable[[Any], str]) -> None:
        super().__init__()
        self._name = name

    def expand(self, references: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        return references | _Gather(self._name) | beam.FlatMap(lambda group: group)
