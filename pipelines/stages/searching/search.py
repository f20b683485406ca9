"""Search tiles for the neighbours of both sides, and merge them by shard.

A tile is a group of source shards by a group of target shards. No result depends on the groups.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from miner.arrays import Neighbours
from miner.knn.core.rescore import merge, merge_some
from miner.knn.exact import search_documents, search_unit_rows
from miner.knn.method import CellSpec, IndexSpec, PairedDocuments
from miner.storage.artefacts import Artefact, Draft, content_key, produce, read_json, write_array
from miner.storage.atomic import write_text
from miner.storage.layout import CORPUS, DOCUMENT, SOURCE, TARGET, list_files
from pipelines.context import RunContext
from pipelines.references import (
    IndexLookup,
    NeighbourPart,
    RecallSample,
    SampledNeighbours,
    SearchableShard,
    SearchTile,
    ShardNeighbours,
    TileNeighbours,
    check_complete,
    collect_side,
    load_list,
    save_list,
    shard_parts,
    tile_list,
    to_row_ids,
)
from pipelines.stages.reading.documents import document_pairs, paired_rows
from pipelines.stages.searching import join
from pipelines.stages.searching.recall import measure_recall, recall_samples, search_sample

MAX_GROUPS = 32  # per side; one shard per group would take most disk


def cut_tiles(run: RunContext, nearest: Sequence[SearchTile]) -> list[SearchTile | RecallSample]:
    """Divide the search into tiles, preceded by recall samples.

    Only an approximate search has samples. Each scope has tiles. A cell join has tiles of cells of
    whole sides. Any other search has a tile per source and target group, whose sizes are stored in
    the work folder. ValueError says that sizes, or ``nearest`` (all of ``join_nearest``), are bad.
    """
    sources, targets = nearest[0].sources, nearest[0].targets
    tiles: list[SearchTile] = []
    for scope in run.options.scopes:
        method = PairedDocuments() if scope == DOCUMENT else sources[0].method
        whole = SearchTile(sources=sources, targets=targets, method=method)
        if isinstance(method, CellSpec):
            tiles += join.cell_tiles(whole, join.floors_of(nearest))
        else:
            tiles += _group_tiles(run, whole)
    tiles = join.number_tiles(tiles)
    if not any(isinstance(tile.method, CellSpec | IndexSpec) for tile in tiles):
        return [*tiles]
    embedded = ([searchable.embedded for searchable in side] for side in (sources, targets))
    return [*recall_samples(*embedded), *tiles]


def _group_tiles(run: RunContext, whole: SearchTile) -> list[SearchTile]:
    sides = {SOURCE: whole.sources, TARGET: whole.targets}
    path = run.folder.groups
    old = read_json(path) if path.exists() else {}
    sizes = {side: group_sizes(len(shards), old.get(side, ())) for side, shards in sides.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(sizes))
    groups = []
    for side, shards in sides.items():
        ends = itertools.pairwise(itertools.accumulate(sizes[side], initial=0))
        groups.append([shards[start:stop] for start, stop in ends])
    return [
        replace(whole, sources=sources, targets=targets)
        for sources, targets in itertools.product(*groups)
    ]


def group_sizes(shards: int, earlier: Sequence[int] = ()) -> list[int]:
    """Divide a number of shards into groups, and return the groups' sizes.

    ``earlier`` sizes come first, unless their sum exceeds ``shards``. Other groups have ``shards``
    / 32 shards, rounded up, the last maybe fewer.
    """
    sizes = list(earlier) if sum(earlier) <= shards else []  # else of a larger side
    length = -(-shards // MAX_GROUPS)
    while sum(sizes) < shards:
        sizes.append(min(length, shards - sum(sizes)))
    return sizes


def search_tile(run: RunContext, tile: SearchTile | RecallSample) -> Sequence[NeighbourPart]:
    """Search a tile in both directions, or a recall sample.

    A part per shard is returned, or an ``IndexLookup`` per shard and FAISS index of the other side.
    With scope "document", errors of ``document_pairs`` are raised.
    """
    if isinstance(tile, RecallSample):
        return search_sample(run, tile)
    directions = (tile.sources, tile.targets), (tile.targets, tile.sources)
    if isinstance(tile.method, IndexSpec):
        return [
            IndexLookup(embedded=searchable.embedded, other=other)
            for sides in directions
            for searchable, other in itertools.product(*sides)
        ]
    if tile.cells is not None:
        shards = [searchable.embedded for searchable in (*tile.sources, *tile.targets)]
        neighbours = partial(
            TileNeighbours,
            others=tile.cells,
            total=join.cells_of(tile.sources[0]).facts["cells"],
            scope=tile.scope,
            k=join.list_length(run, tile),
        )
        return [
            neighbours(embedded=embedded, part=part, artefact=lists)
            for embedded, part, lists in shard_parts(join.join_tile(run, tile, tile.cells), shards)
        ]
    artefact = _search_groups(run, tile)
    return [
        TileNeighbours(
            embedded=searchable.embedded,
            artefact=artefact,
            others=range(first := others[0].shard.index, first + len(others)),
            total=others[0].shard.corpus.facts["shards"],
            scope=tile.scope,
            k=min(run.options.k, others[0].shard.corpus.facts["unique"]),
        )
        for shard, others in directions
        for searchable in shard
    ]


def _search_groups(run: RunContext, tile: SearchTile) -> Artefact:
    # Two shards are in memory at a time. The lists of targets wait on disk for further sources.
    k = run.options.k
    documents: dict[str, object] = {}
    if isinstance(tile.method, PairedDocuments):
        shards = [searchable.shard for searchable in (*tile.sources, *tile.targets)]
        documents["sentences"] = [shard.digest for shard in shards]
        documents["documents"] = document_pairs(run).digest
    key = content_key(
        "search",
        sources=[searchable.embedded.content for searchable in tile.sources],
        targets=[searchable.embedded.content for searchable in tile.targets],
        k=k,
        **documents,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            for source in tile.sources:
                forward: list[Neighbours] = []
                for target in tile.targets:
                    name = tile_list(target.embedded)
                    lists, backward = _search(run, tile, source, target)
                    forward = [merge([*forward, to_row_ids(lists, target.embedded.row_ids())], k=k)]
                    parts = [to_row_ids(backward, source.embedded.row_ids())]
                    if source is not tile.sources[0]:
                        parts.insert(0, load_list(scratch.joinpath, name))
                    merged = merge(parts, k=k)
                    save_list(lambda file, array: write_array(scratch / file, array), name, merged)
                save_list(draft.array, tile_list(source.embedded), forward[0])
            for target in tile.targets:
                name = tile_list(target.embedded)
                save_list(draft.array, name, load_list(scratch.joinpath, name))
        return {}

    return produce(run.folder.tile(*tile.first, tile.scope), key=key, write=write)


def _search(
    run: RunContext, tile: SearchTile, source: SearchableShard, target: SearchableShard
) -> tuple[Neighbours, Neighbours]:
    queries, base, options = source.embedded, target.embedded, run.options
    search: Callable[..., tuple[Neighbours, Neighbours]]
    if isinstance(tile.method, PairedDocuments):
        documents = paired_rows(run, queries, base)
        if not documents:  # without reading vectors
            return Neighbours.empty(len(queries), 0), Neighbours.empty(len(base), 0)
        search = partial(search_documents, documents=documents)
        total = sum(len(rows) * len(columns) for rows, columns in documents)
    else:
        search = partial(search_unit_rows, precision=options.product_precision)
        total = len(queries) * len(base)
    vectors = queries.unit_vectors(), base.unit_vectors()
    with run.monitor.stage("search", total, "similarities", tile.part) as meter:
        return search(*vectors, k=options.k, progress=meter.advance)


def find_neighbours(run: RunContext, parts: Sequence[NeighbourPart]) -> ShardNeighbours:
    """Merge one shard's neighbours from all tiles, and save them by scope.

    FAISS indexes are searched here. ValueError says that a tile is missing or repeated.
    """
    return ShardNeighbours(
        embedded=parts[0].embedded,
        neighbours={scope: _neighbours(run, parts, scope) for scope in run.options.scopes},
    )


def _neighbours(run: RunContext, parts: Sequence[NeighbourPart], scope: str) -> Artefact:
    embedded, side, k = parts[0].embedded, parts[0].shard.side, run.options.k
    other_side = TARGET if side == SOURCE else SOURCE
    tiles = [part for part in parts if isinstance(part, TileNeighbours) and part.scope == scope]
    tiles.sort(key=lambda tile: tile.others.start)
    cells = [tile for tile in tiles if tile.part is not None]
    approximate = parts if scope == CORPUS else []
    samples = [part for part in approximate if isinstance(part, SampledNeighbours)]
    indexed = [part.other for part in approximate if isinstance(part, IndexLookup)]
    lookup = None
    if indexed:
        from pipelines.stages.searching import index_search  # loads FAISS

        indexed = collect_side(indexed, other_side)
        lookup = index_search.lookup_key(run, embedded, indexed)
    else:
        indices, unit = [i for tile in tiles for i in tile.others], f"{other_side} shards"
        check_complete(indices, tiles[0].total if tiles else 1, "cells" if cells else unit)
    key = content_key(
        "merge",
        lookup=lookup,
        tiles=[
            [tile.artefact.files[file] for file in list_files(tile_list(embedded))]
            for tile in tiles
            if tile.part is None
        ],
        cells=[sorted(tile.artefact.files.items()) for tile in cells],
        sample=[sorted(part.artefact.files.items()) for part in samples],
        k=k,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        if indexed:
            neighbours = index_search.look_up(run, embedded, indexed)
        else:
            neighbours = Neighbours.empty(len(embedded), tiles[0].k)
            for tile in tiles:  # of documents, some have no neighbours at all
                merge_some(neighbours, *tile.load())
        save_list(draft.array, side, neighbours)
        return measure_recall(samples[0], neighbours) if samples else {}

    return produce(run.folder.neighbours(embedded.shard.name, scope), key=key, write=write)
