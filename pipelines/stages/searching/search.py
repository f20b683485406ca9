"""The search stage: tiles of source by target shards to sealed lists of both sides' neighbours."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from miner.arrays import Neighbours
from miner.knn.core.rescore import merge
from miner.knn.documents import search_documents
from miner.knn.exact import search_unit_rows
from miner.knn.method import CellSpec, IndexSpec, Method, PairedDocuments
from miner.storage.artefacts import Artefact, Draft, content_key, produce, write_array
from miner.storage.layout import DOCUMENT, SOURCE, TARGET
from pipelines.context import RunContext
from pipelines.references import (
    CellNeighbours,
    EmbeddedShard,
    FoundPart,
    IndexLookup,
    RecallSample,
    SearchableShard,
    SearchTile,
    TileNeighbours,
    load_list,
    named,
    parts_of,
    save_list,
    tile_list,
)
from pipelines.stages.reading.documents import document_pairs, paired_rows
from pipelines.stages.searching.cells import assigned_to
from pipelines.stages.searching.join import cell_tiles, floors_of, join_tile, numbered
from pipelines.stages.searching.recall import recall_samples, search_sample
from pipelines.stages.searching.shard_groups import group_shards


def cut_tiles(run: RunContext, nearest: Sequence[SearchTile]) -> list[SearchTile | RecallSample]:
    """Cut the search into tiles, and take samples that the recall of an approximate one shows on.

    An exact search has tiles of every source group by every target group, in each scope; a cell
    join tiles of cells, which have all rows of both sides that lie in them.
    """
    sides = {SOURCE: nearest[0].sources, TARGET: nearest[0].targets}
    tiles: list[SearchTile] = []
    for scope in run.options.scopes:
        method = PairedDocuments() if scope == DOCUMENT else nearest[0].sources[0].method
        if isinstance(method, CellSpec):
            tiles += cell_tiles(sides, method, floors_of(nearest))
        else:
            tiles += _group_tiles(run, sides, method)
    tiles = numbered(tiles)
    if not any(isinstance(tile.method, CellSpec | IndexSpec) for tile in tiles):
        return [*tiles]
    embedded = [[searchable.embedded for searchable in side] for side in sides.values()]
    return [*recall_samples(embedded), *tiles]


def _group_tiles(
    run: RunContext, sides: Mapping[str, Sequence[SearchableShard]], method: Method
) -> list[SearchTile]:
    cut = group_shards(run, {side: len(found) for side, found in sides.items()})
    groups = [
        [[found[index] for index in group] for group in cut[side]] for side, found in sides.items()
    ]
    return [
        SearchTile(sources=sources, targets=targets, method=method)
        for sources, targets in itertools.product(*groups)
    ]


def search_tile(run: RunContext, tile: SearchTile | RecallSample) -> Sequence[FoundPart]:
    """Search both directions of one tile, exactly or by cell join; ids are rows of the corpora.

    Indexes have nothing to do at once. What is to be looked up in them is handed on, to be done
    for all tiles of a row or column together.
    """
    if isinstance(tile, RecallSample):
        return search_sample(run, tile)
    both = (tile.sources, tile.targets), (tile.targets, tile.sources)
    if isinstance(tile.method, IndexSpec):
        return [
            IndexLookup(embedded=searchable.embedded, other=other)
            for own, others in both
            for searchable in own
            for other in others
        ]
    artefact = _searched(run, tile)
    if tile.cells is not None:
        count = assigned_to(tile.sources[0]).facts["cells"]
        shards = (searchable.embedded for own, _ in both for searchable in own)
        return [
            CellNeighbours(embedded=own, part=part, artefact=lists, cells=tile.cells, of=count)
            for own, part, lists in parts_of(artefact, shards)
        ]
    return [
        TileNeighbours(
            embedded=searchable.embedded,
            others=range(first := others[0].shard.index, first + len(others)),
            of=others[0].shard.corpus.facts["shards"],
            scope=tile.scope,
            tile=artefact,
        )
        for own, others in both
        for searchable in own
    ]


def _searched(run: RunContext, tile: SearchTile) -> Artefact:
    if tile.cells is not None:
        return join_tile(run, tile)
    key = content_key(
        "search",
        sources=[searchable.embedded.content for searchable in tile.sources],
        targets=[searchable.embedded.content for searchable in tile.targets],
        k=run.options.k,
        **_documents_key(run, tile),
    )
    folder = run.folder.tile(*tile.first, tile.scope)
    return produce(folder, key=key, write=lambda draft: _search_groups(run, tile, draft))


def _documents_key(run: RunContext, tile: SearchTile) -> Mapping[str, object]:
    if not isinstance(tile.method, PairedDocuments):
        return {}
    shards = [searchable.shard for searchable in (*tile.sources, *tile.targets)]
    return {
        "sentences": [shard.digest for shard in shards],
        "documents": document_pairs(run).digest,
    }


def _search_groups(run: RunContext, tile: SearchTile, draft: Draft) -> Mapping[str, Any]:
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
                forward = [merge([*forward, named(found, target.embedded.row_ids())], k=k)]
                parts = [named(backward, source.embedded.row_ids())]
                if source is not tile.sources[0]:
                    parts.insert(0, load_list(scratch.joinpath, tile_list(target.embedded)))
                save_list(wait, tile_list(target.embedded), merge(parts, k=k))
            save_list(draft.array, tile_list(source.embedded), forward[0])
        for target in tile.targets:
            name = tile_list(target.embedded)
            save_list(draft.array, name, load_list(scratch.joinpath, name))
    return {}


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
