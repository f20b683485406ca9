"""The search stage: tiles of source by target shards to sealed lists of both sides' neighbours."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.knn.cells import by_nearest_cell, cut_cells, join_cells, rows_in_cells
from miner.knn.core.rescore import merge, merge_some
from miner.knn.documents import search_documents
from miner.knn.exact import search_unit_rows
from miner.knn.method import CellSpec, IndexSpec, Method, PairedDocuments
from miner.storage.artefacts import Artefact, Draft, content_key, produce, write_array
from miner.storage.layout import CELLS, DOCUMENT, SOURCE, TARGET
from miner.threads import blocks
from pipelines.context import RunContext
from pipelines.references import (
    CellNeighbours,
    EmbeddedShard,
    FoundPart,
    IndexLookup,
    RecallSample,
    SearchableShard,
    SearchTile,
    SideVectors,
    TileNeighbours,
    load_list,
    parts_of,
    save_list,
    save_some,
    tile_list,
    whole_sides,
)
from pipelines.stages.reading.documents import document_pairs, paired_rows
from pipelines.stages.searching.cells import load_cells
from pipelines.stages.searching.recall import recall_samples, search_sample
from pipelines.stages.searching.shard_groups import group_shards

CUT_BY = 1 << 18  # rows of the larger side, evenly spread, whose cells decide where cells are cut


def cut_tiles(
    run: RunContext, shards: Sequence[SearchableShard]
) -> list[SearchTile | RecallSample]:
    """Cut the search into tiles, and take samples that the recall of an approximate one shows on.

    An exact search has tiles of every source group by every target group, in each scope; a cell
    join tiles of cells, which have all rows of both sides that lie in them.
    """
    sides = whole_sides(shards)
    tiles: list[SearchTile] = []
    for scope in run.options.scopes:
        method = PairedDocuments() if scope == DOCUMENT else shards[0].method
        if isinstance(method, CellSpec):
            tiles += _cell_tiles(sides, method)
        else:
            tiles += _group_tiles(run, sides, method)
    if len(tiles) > 1:
        parts = (f"{number}/{len(tiles)}" for number in range(1, len(tiles) + 1))
        tiles = [replace(tile, part=part) for tile, part in zip(tiles, parts, strict=True)]
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


def _cell_tiles(
    sides: Mapping[str, Sequence[SearchableShard]], method: CellSpec
) -> list[SearchTile]:
    """Cut the cells into ranges of about as many rows as two shards have."""
    rows = [sum(len(searchable.embedded) for searchable in side) for side in sides.values()]
    stride = -(-max(rows) // CUT_BY)
    cells = (
        np.concatenate([load_cells(_cells(searchable))[::stride] for searchable in side])
        for side in sides.values()
    )
    count = _cells(sides[SOURCE][0]).facts["cells"]
    most = _rows_of_two_shards((*sides[SOURCE], *sides[TARGET])) // stride
    return [
        SearchTile(sources=sides[SOURCE], targets=sides[TARGET], method=method, cells=part)
        for part in cut_cells(*cells, count=count, most=max(1, most))
    ]


def _rows_of_two_shards(shards: Iterable[SearchableShard]) -> int:
    """Return how many rows may be searched at a time: those of the largest shard, twice."""
    return 2 * max(searchable.shard.rows for searchable in shards)


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
        count = _cells(tile.sources[0]).facts["cells"]
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
    key = content_key(
        "search",
        sources=[_content(tile, searchable) for searchable in tile.sources],
        targets=[_content(tile, searchable) for searchable in tile.targets],
        k=run.options.k,
        **_documents_key(run, tile),
        **({"cells": [tile.cells.start, tile.cells.stop]} if tile.cells else {}),
    )
    if tile.cells is not None:
        folder, search = run.folder.cell_tile(tile.cells.start), _join_cells
    else:
        folder, search = run.folder.tile(*tile.first, tile.scope), _search_groups
    return produce(folder, key=key, write=lambda draft: search(run, tile, draft))


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


def _join_cells(run: RunContext, tile: SearchTile, draft: Draft) -> Mapping[str, Any]:
    """Join the cells of a tile, and write the neighbours of all rows that lie in them.

    Where a single cell has more rows than two shards, it is done in blocks of rows.
    """
    assert tile.cells is not None
    sides = [_rows_in(tile.cells, side) for side in (tile.sources, tile.targets)]
    (source, own, cells), (target, other, other_cells) = sides
    k, most = run.options.k, _rows_of_two_shards((*tile.sources, *tile.targets))
    size = most // 2 if len(own) + len(other) > most else most
    forward, backward = Neighbours.none(len(own), k), Neighbours.none(len(other), k)
    total = len(own) * len(other)
    with run.monitor.stage("search", total, "similarities", tile.part) as meter:
        for rows in blocks(len(own), size):
            order, units = _in_order(tile.cells, source, own[rows], cells[rows])
            for columns in blocks(len(other), size):
                beside = other_cells[columns]
                other_order, others = _in_order(tile.cells, target, other[columns], beside)
                found, back = join_cells(
                    *(units, others, cells[rows][order], beside[other_order]),
                    part=tile.cells,
                    k=k,
                    names=(order + rows.start, other_order + columns.start),
                    precision=run.options.product_precision,
                    progress=meter.advance,
                )
                merge_some(forward, order + rows.start, found)
                merge_some(backward, other_order + columns.start, back)
    numbers = source.row_ids(own), target.row_ids(other)
    starts = {
        SOURCE: save_some(draft, source, SOURCE, own, _named(forward, numbers[1])),
        TARGET: save_some(draft, target, TARGET, other, _named(backward, numbers[0])),
    }
    return {"starts": starts}


def _rows_in(
    part: range, side: Sequence[SearchableShard]
) -> tuple[SideVectors, NDArray[np.int64], NDArray[np.int32]]:
    """Return a side, the positions in it of the rows that lie in the cells, and their cells."""
    vectors = SideVectors([searchable.embedded for searchable in side])
    positions, found = [], []
    for searchable, start in zip(side, vectors.starts, strict=False):
        cells = load_cells(_cells(searchable))
        inside = rows_in_cells(cells, part)
        positions.append(inside + start)
        found.append(cells[inside])
    return vectors, np.concatenate(positions), np.concatenate(found)


def _in_order(
    part: range,
    side: SideVectors,
    positions: NDArray[np.int64],
    cells: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the order that a join has for some of a side's rows, and their vectors in it."""
    order = by_nearest_cell(cells, part)
    return order, side.take(positions, places=np.argsort(order))


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
                forward = [merge([*forward, _named(found, target.embedded.row_ids())], k=k)]
                parts = [_named(backward, source.embedded.row_ids())]
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


def _named(neighbours: Neighbours, rows: NDArray[np.int64]) -> Neighbours:
    """Replace the neighbours' positions by what stands there in ``rows`` of the other corpus."""
    rows = np.append(rows, NO_NEIGHBOUR)  # so that -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)
