"""The search stage: tiles of source by target shards to sealed lists of both sides' neighbours."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.knn.cells import join_cells
from miner.knn.documents import search_documents
from miner.knn.exact import search_unit_rows
from miner.knn.method import CellSpec, IndexSpec, PairedDocuments
from miner.storage.artefacts import Artefact, Draft, content_key, produce, write_array
from miner.storage.layout import CELLS, DOCUMENT
from pipelines.context import RunContext
from pipelines.references import (
    EmbeddedShard,
    IndexLookup,
    SearchableShard,
    SearchTile,
    TileNeighbours,
    load_list,
    save_list,
    tile_list,
    whole_sides,
)
from pipelines.stages.reading.documents import document_pairs, paired_rows
from pipelines.stages.searching.cells import load_cells
from pipelines.stages.searching.merge import merged
from pipelines.stages.searching.recall import is_measured
from pipelines.stages.searching.shard_groups import group_shards


def cut_tiles(run: RunContext, shards: Sequence[SearchableShard]) -> list[SearchTile]:
    """Cut the search into tiles: every source group by every target group, in each scope."""
    sides = whole_sides(shards)
    cut = group_shards(run, {side: len(found) for side, found in sides.items()})
    groups = [
        [[found[index] for index in group] for group in cut[side]] for side, found in sides.items()
    ]
    tiles = [
        (PairedDocuments() if scope == DOCUMENT else shards[0].method, sources, targets)
        for scope in run.options.scopes
        for sources, targets in itertools.product(*groups)
    ]
    return [
        SearchTile(
            sources=sources,
            targets=targets,
            method=method,
            part=f"{number}/{len(tiles)}" if len(tiles) > 1 else "",
        )
        for number, (method, sources, targets) in enumerate(tiles, start=1)
    ]


def search_tile(run: RunContext, tile: SearchTile) -> list[TileNeighbours] | list[IndexLookup]:
    """Search both directions of one tile, exactly or by cell join; ids are rows of the corpora.

    Indexes have nothing to do at once. What is to be looked up in them is handed on, to be done
    for all tiles of a row or column together.
    """
    both = (tile.sources, tile.targets), (tile.targets, tile.sources)
    if isinstance(tile.method, IndexSpec):
        return [
            IndexLookup(embedded=searchable.embedded, other=other)
            for own, others in both
            for searchable in own
            for other in others
        ]
    artefact = _searched(run, tile)
    return [
        TileNeighbours(
            embedded=searchable.embedded,
            others=range(first := others[0].shard.index, first + len(others)),
            of=others[0].shard.corpus.facts["shards"],
            measured=[other.embedded for other in others]
            if is_measured(searchable.embedded)
            else [],
            scope=tile.scope,
            tile=artefact,
        )
        for own, others in both
        for searchable in own
    ]


def _searched(run: RunContext, tile: SearchTile) -> Artefact:
    key = content_key(
        "search",
        sources=[_content(tile, searchable) for searchable in tile.sources],
        targets=[_content(tile, searchable) for searchable in tile.targets],
        k=run.options.k,
        **_documents_key(run, tile),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        _search_groups(run, tile, draft)
        return {"approximate": isinstance(tile.method, CellSpec)}

    return produce(run.folder.tile(*tile.first, tile.scope), key=key, write=write)


def _content(tile: SearchTile, searchable: SearchableShard) -> list[object]:
    """Return what decides on the neighbours that are found of a shard and in it."""
    found = searchable.embedded.content
    if isinstance(tile.method, CellSpec):
        found.append(_cells(searchable).files[CELLS])
    return found


def _cells(searchable: SearchableShard) -> Artefact:
    assert searchable.index is not None, "a cell join needs the cells of every shard"
    return searchable.index


def _documents_key(run: RunContext, tile: SearchTile) -> Mapping[str, object]:
    if not isinstance(tile.method, PairedDocuments):
        return {}
    shards = [searchable.shard for searchable in (*tile.sources, *tile.targets)]
    return {
        "sentences": [shard.digest for shard in shards],
        "documents": document_pairs(run).digest,
    }


def _search_groups(run: RunContext, tile: SearchTile, draft: Draft) -> None:
    """Search shard by shard, and write the neighbours of each shard in all of the other group.

    Two shards are in memory at a time; the lists of targets wait on disk for further sources.
    """
    k = run.options.k
    with draft.scratch() as scratch:

        def wait(name: str, values: NDArray[Any]) -> None:
            write_array(scratch / name, values)

        for source in tile.sources:
            forward: list[Neighbours] = []
            for target in tile.targets:
                found, backward = _search(run, tile, source, target)
                forward = [merged([*forward, _with_rows(found, target.embedded)], k=k)]
                parts = [_with_rows(backward, source.embedded)]
                if source is not tile.sources[0]:
                    parts.insert(0, load_list(scratch.joinpath, tile_list(target.embedded)))
                save_list(wait, tile_list(target.embedded), merged(parts, k=k))
            save_list(draft.array, tile_list(source.embedded), forward[0])
        for target in tile.targets:
            name = tile_list(target.embedded)
            save_list(draft.array, name, load_list(scratch.joinpath, name))


def _search(
    run: RunContext, tile: SearchTile, source: SearchableShard, target: SearchableShard
) -> tuple[Neighbours, Neighbours]:
    """Search both directions of two shards; ids are positions in them."""
    if isinstance(tile.method, PairedDocuments):
        return _search_documents(run, tile.part, source.embedded, target.embedded)
    options = run.options
    vectors = source.embedded.unit_vectors(), target.embedded.unit_vectors()
    total = len(vectors[0]) * len(vectors[1])
    with run.monitor.stage("search", total, "similarities", tile.part) as meter:
        if isinstance(tile.method, CellSpec):
            nearest = load_cells(_cells(source)), load_cells(_cells(target))
            return join_cells(
                *vectors,
                *nearest,
                count=_cells(source).facts["cells"],
                k=options.k,
                precision=options.product_precision,
                progress=meter.advance,
            )
        return search_unit_rows(
            *vectors, k=options.k, precision=options.product_precision, progress=meter.advance
        )


def _search_documents(
    run: RunContext, part: str, source: EmbeddedShard, target: EmbeddedShard
) -> tuple[Neighbours, Neighbours]:
    """Find no neighbours, at hardly any cost, where the shards have no document pair."""
    documents = paired_rows(run, source, target)
    if not documents:
        return Neighbours.none(len(source), 0), Neighbours.none(len(target), 0)
    total = sum(len(rows) * len(columns) for rows, columns in documents)
    with run.monitor.stage("search", total, "similarities", part) as meter:
        return search_documents(
            *(source.unit_vectors(), target.unit_vectors(), documents),
            k=run.options.k,
            progress=meter.advance,
        )


def _with_rows(neighbours: Neighbours, other: EmbeddedShard) -> Neighbours:
    """Replace the neighbours' positions in the other shard by rows of its corpus."""
    rows = np.append(other.row_ids(), NO_NEIGHBOUR)  # so that -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)
