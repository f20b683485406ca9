"""The merge stage: the neighbours of each shard, from all tiles that it was in."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from miner.arrays import Neighbours
from miner.knn.core.rescore import merge
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CORPUS, SOURCE, TARGET, list_files
from pipelines.context import RunContext
from pipelines.references import (
    FoundPart,
    IndexLookup,
    ShardNeighbours,
    TileNeighbours,
    check_whole,
    load_list,
    save_list,
    tile_list,
    whole_side,
)
from pipelines.stages.searching.index_search import look_up, lookup_key
from pipelines.stages.searching.recall import is_measured, measure_recall


def find_neighbours(run: RunContext, parts: Sequence[FoundPart]) -> ShardNeighbours:
    """Find one shard's neighbours on the whole other side, from its parts in all tiles."""
    return ShardNeighbours(
        embedded=parts[0].embedded,
        neighbours={scope: _neighbours(run, parts, scope) for scope in run.options.scopes},
    )


def _neighbours(run: RunContext, parts: Sequence[FoundPart], scope: str) -> Artefact:
    embedded, side = parts[0].embedded, parts[0].shard.side
    in_tiles = [part for part in parts if isinstance(part, TileNeighbours) and part.scope == scope]
    indexed = [part.other for part in parts if isinstance(part, IndexLookup) and scope == CORPUS]
    if indexed:
        indexed = whole_side(indexed, _other(side))
    else:
        in_tiles = sorted(in_tiles, key=lambda part: part.others.start)
        found = [index for part in in_tiles for index in part.others]
        check_whole(found, in_tiles[0].of if in_tiles else 1, _other(side))
    key = lookup_key(run, embedded, indexed) if indexed else _merge_key(run, in_tiles)

    def write(draft: Draft) -> Mapping[str, Any]:
        found = look_up(run, embedded, indexed) if indexed else _merge(run, in_tiles)
        save_list(draft.array, side, found)
        others = [other.embedded for other in indexed]
        for part in in_tiles:
            others += part.measured if part.tile.facts["approximate"] else []
        if not others or not is_measured(embedded):
            return {}
        return measure_recall(embedded, others, found, k=run.options.k)

    folder = run.folder.neighbours(embedded.shard.name, scope)
    return produce(folder, key=key, write=write)


def _other(side: str) -> str:
    return TARGET if side == SOURCE else SOURCE


def _merge_key(run: RunContext, in_tiles: Sequence[TileNeighbours]) -> str:
    parts = sorted(
        [part.tile.files[name] for name in list_files(tile_list(part.embedded))]
        for part in in_tiles
    )
    approximate = any(part.tile.facts["approximate"] for part in in_tiles)
    return content_key("merge", parts=parts, k=run.options.k, approximate=approximate)


def _merge(run: RunContext, in_tiles: Sequence[TileNeighbours]) -> Neighbours:
    lists = (load_list(part.tile.file, tile_list(part.embedded)) for part in in_tiles)
    return merged(lists, k=run.options.k)


def merged(lists: Iterable[Neighbours], *, k: int) -> Neighbours:
    """Return the k best of several lists of the same rows; two are in memory at a time."""
    return functools.reduce(lambda one, two: merge([one, two], k=k), lists)
