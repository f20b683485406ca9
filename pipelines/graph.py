"""The mining graph.

    sides -> read -> encode -> train, fill indexes -> all tiles -> search -> merge
          -> select -> guard -> summary -> export

Elements are small references to sealed artefacts, never sentences or vectors, so a runner moves
next to nothing. Only Create, ParDo and GroupByKey are used: every runner has them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.metrics.metric import Metrics

from pipelines.choosing import select_pairs
from pipelines.embedding import embed_shard
from pipelines.exporting import export_pairs
from pipelines.guarding import guard_pairs
from pipelines.indexing import fill_index, plan_sides, train_side
from pipelines.memory import release
from pipelines.options import SOURCE, TARGET, MiningOptions
from pipelines.reading import read_side
from pipelines.searching import find_neighbours, plan_tiles, search_tile
from pipelines.summary import write_summary

# The error that ended a stage in this process, as it was raised: a runner hands on only its text.
failures: list[BaseException] = []


class Stage(beam.DoFn):
    """Applies a stage's function to each element; where it returns a list, emits its items."""

    def __init__(self, function: Callable[..., Any], options: MiningOptions) -> None:
        self._function = function
        self._options = options
        self._done = Metrics.counter("stages", function.__name__)

    def process(self, element: object) -> Iterator[object]:
        """Run the stage on one reference, or on all those of a group."""
        try:
            result = self._function(self._options, element)
        except BaseException as error:
            failures.append(_copy(error))  # the runner adds words of its own to this one
            raise
        self._done.inc()
        release()
        yield from result if isinstance(result, list) else [result]


def _copy(error: BaseException) -> BaseException:
    return copy.copy(error).with_traceback(error.__traceback__)


def build(pipeline: beam.Pipeline, options: MiningOptions) -> None:
    """Add a whole mining run to ``pipeline``; its result is ``options.output``."""

    def stage(function: Callable[..., Any]) -> beam.PTransform:
        return function.__name__ >> beam.ParDo(Stage(function, options))

    tiles = (
        pipeline
        | beam.Create([SOURCE, TARGET])
        | stage(read_side)
        | stage(embed_shard)
        | "all shards" >> _Gather(lambda embedded: "")
        | stage(plan_sides)
        | stage(train_side)
        | stage(fill_index)
        | "all indexes" >> _Gather(lambda searchable: "")
        | stage(plan_tiles)
    )
    neighbours = (
        tiles
        | stage(search_tile)
        | "by shard" >> _Gather(lambda part: part.embedded.shard.name)
        | stage(find_neighbours)
    )
    _ = (
        neighbours
        | "all neighbours" >> _Gather(lambda found: "")
        | stage(select_pairs)
        | stage(guard_pairs)
        | stage(write_summary)
        | stage(export_pairs)
    )


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
