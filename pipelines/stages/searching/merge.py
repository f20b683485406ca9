"""The merge stage: the neighbours of each shard, from all tiles that it was in."""

from collections.abc import Mapping, Sequence
from typing import Any

from miner.arrays import Neighbours
from miner.knn.core.rescore import merge, merge_some
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CORPUS, SOURCE, TARGET, list_files
from pipelines.context import RunContext
from pipelines.references import (
    CellNeighbours,
    FoundPart,
    IndexLookup,
    SampledNeighbours,
    ShardNeighbours,
    TileNeighbours,
    check_whole,
    load_list,
    save_list,
    tile_list,
    whole_side,
)
from pipelines.stages.searching.index_search import look_up, lookup_key
from pipelines.stages.searching.recall import measure_recall


def find_neighbours(run: RunContext, parts: Sequence[FoundPart]) -> ShardNeighbours:
    """Find one shard's neighbours on the whole other side, from its parts in all tiles."""
    return ShardNeighbours(
        embedded=parts[0].embedded,
        neighbours={scope: _neighbours(run, parts, scope) for scope in run.options.scopes},
    )


def _neighbours(run: RunContext, parts: Sequence[FoundPart], scope: str) -> Artefact:
    embedded, side = parts[0].embedded, parts[0].shard.side
    other = TARGET if side == SOURCE else SOURCE
    in_tiles = sorted(
        (part for part in parts if isinstance(part, TileNeighbours) and part.scope == scope),
        key=lambda part: part.others.start,
    )
    in_cells, indexed, sampled = [], [], []
    if scope == CORPUS:
        in_cells = sorted(
            (part for part in parts if isinstance(part, CellNeighbours)),
            key=lambda part: part.cells.start,
        )
        indexed = [part.other for part in parts if isinstance(part, IndexLookup)]
        sampled = [part for part in parts if isinstance(part, SampledNeighbours)]
    if indexed:
        indexed = whole_side(indexed, other)
    elif in_cells:
        check_whole([cell for part in in_cells for cell in part.cells], in_cells[0].of, "cells")
    else:
        found = [index for part in in_tiles for index in part.others]
        check_whole(found, in_tiles[0].of if in_tiles else 1, f"{other} shards")
    key = content_key(
        "merge",
        lookup=lookup_key(run, embedded, indexed) if indexed else None,
        tiles=[
            [part.tile.files[name] for name in list_files(tile_list(embedded))] for part in in_tiles
        ],
        cells=[sorted(part.artefact.files.items()) for part in in_cells],
        sample=[sorted(part.artefact.files.items()) for part in sampled],
        k=run.options.k,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        if indexed:
            found = look_up(run, embedded, indexed)
        elif in_cells:
            found = _of_cells(in_cells, k=run.options.k)
        else:
            name = tile_list(embedded)
            found = merge([load_list(part.tile.file, name) for part in in_tiles], k=run.options.k)
        save_list(draft.array, side, found)
        return measure_recall(sampled[0], found) if sampled else {}

    folder = run.folder.neighbours(embedded.shard.name, scope)
    return produce(folder, key=key, write=write)


def _of_cells(parts: Sequence[CellNeighbours], *, k: int) -> Neighbours:
    """Return the k best of lists of some of a shard's rows each."""
    found = Neighbours.none(len(parts[0].embedded), k)
    for part in parts:
        merge_some(found, *part.load())
    return found
