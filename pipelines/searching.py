"""The search stage: tiles of source by target shards to sealed neighbours of every shard."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from pipelines import progress
from pipelines.embedding import ROWS, VECTORS, EmbeddedShard
from pipelines.indexing import SearchableShard, is_indexed
from pipelines.joining import CENTROIDS, load_cells, trained_cells
from pipelines.lookup import Lookup, look_up, lookup_key
from pipelines.options import CORPUS, DOCUMENT, SOURCE, TARGET, MiningOptions
from pipelines.pairing import document_pairs, paired_rows
from pipelines.recall import measure_recall
from pipelines.shards import whole_side

if TYPE_CHECKING:
    from miner.arrays import Neighbours


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Two shards to be searched against each other: all rows, or those of paired documents.

    ``scope`` is one of ``pipelines.options.SCOPES``. ``part`` says which tile of how many, such as
    ``2/6``; empty for a single one. ``cells`` are the centroids of a cell join.
    """

    source: SearchableShard
    target: SearchableShard
    scope: str
    part: str
    cells: Artefact | None

    @property
    def name(self) -> str:
        """Its place in the folder ``tiles``."""
        source, target = (side.embedded.shard.index for side in (self.source, self.target))
        return f"{source:05d}-{target:05d}{_suffix(self.scope)}"


@dataclass(frozen=True, kw_only=True)
class Partial:
    """One side's neighbours from one tile: files ``SIDE.ids.npy`` and ``SIDE.cosines.npy``."""

    embedded: EmbeddedShard
    other: EmbeddedShard
    scope: str
    tile: Artefact


@dataclass(frozen=True, kw_only=True)
class ShardNeighbours:
    """A shard's neighbours on the other side by scope, sealed: ids are rows of the corpus."""

    embedded: EmbeddedShard
    neighbours: Mapping[str, Artefact]

    def load(self, scope: str) -> Neighbours:
        """The neighbours of the rows of ``embedded.row_ids()``."""
        return _load(self.neighbours[scope], self.embedded.shard.side)


def plan_tiles(options: MiningOptions, shards: Sequence[SearchableShard]) -> list[Tile]:
    """Every source shard with every target shard, in each scope."""
    from miner.knn.cells import names_cells

    sides = [
        whole_side(shards, side, lambda searchable: searchable.embedded.shard)
        for side in (SOURCE, TARGET)
    ]
    method = shards[0].method
    every = [shard.embedded for side in sides for shard in side]
    cells = trained_cells(options, method, every) if names_cells(method) else None
    tiles = [
        (scope, source, target)
        for scope in options.scopes
        for source, target in itertools.product(*sides)
    ]
    return [
        Tile(
            source=source,
            target=target,
            scope=scope,
            part=f"{number}/{len(tiles)}" if len(tiles) > 1 else "",
            cells=cells if scope == CORPUS else None,
        )
        for number, (scope, source, target) in enumerate(tiles, start=1)
    ]


def search_tile(options: MiningOptions, tile: Tile) -> list[Partial] | list[Lookup]:
    """Both directions of one tile, exactly or by cell join; ids are rows of the corpora.

    Indexes have nothing to do at once. What is to be looked up in them is handed on, to be done
    for all tiles of a row or column together.
    """
    if tile.scope == CORPUS and is_indexed(tile.source.method):
        return [
            Lookup(embedded=tile.source.embedded, other=tile.target),
            Lookup(embedded=tile.target.embedded, other=tile.source),
        ]
    source, target = tile.source.embedded, tile.target.embedded
    key = content_key(
        "search",
        source=[source.vectors.files[name] for name in (ROWS, VECTORS)],
        target=[target.vectors.files[name] for name in (ROWS, VECTORS)],
        k=options.k,
        **_cells_key(tile),
        **_documents_key(options, tile),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        forward, backward = _search(options, tile)
        _save(draft, SOURCE, _with_rows(forward, target))
        _save(draft, TARGET, _with_rows(backward, source))
        return {"approximate": tile.cells is not None}

    artefact = produce(options.work_dir / "tiles" / tile.name, key=key, write=write)
    return [
        Partial(embedded=source, other=target, scope=tile.scope, tile=artefact),
        Partial(embedded=target, other=source, scope=tile.scope, tile=artefact),
    ]


def _cells_key(tile: Tile) -> Mapping[str, object]:
    from miner.knn.cells import parse_cells

    if tile.cells is None:
        return {}
    return {
        "cells": tile.cells.files[CENTROIDS],
        "probes": parse_cells(tile.source.method).probes,
    }


def _documents_key(options: MiningOptions, tile: Tile) -> Mapping[str, object]:
    if tile.scope == CORPUS:
        return {}
    sentences = [side.embedded.shard.digest for side in (tile.source, tile.target)]
    return {"sentences": sentences, "documents": document_pairs(options).digest}


def _suffix(scope: str) -> str:
    return "-documents" if scope == DOCUMENT else ""


def _search_documents(options: MiningOptions, tile: Tile) -> tuple[Neighbours, Neighbours]:
    """No neighbours of any row, and hardly any work, where the shards have no document pair."""
    from miner.arrays import Neighbours
    from miner.knn.documents import search_documents

    source, target = tile.source.embedded, tile.target.embedded
    documents = paired_rows(options, source, target)
    if not documents:
        rows, columns = len(source.stored_vectors()), len(target.stored_vectors())
        return Neighbours.none(rows, 0), Neighbours.none(columns, 0)
    total = sum(len(rows) * len(columns) for rows, columns in documents)
    with progress.stage("search", total, "similarities", tile.part) as meter:
        return search_documents(
            *(source.unit_vectors(), target.unit_vectors(), documents),
            k=options.k,
            progress=meter.advance,
        )


def _search(options: MiningOptions, tile: Tile) -> tuple[Neighbours, Neighbours]:
    if tile.scope == DOCUMENT:
        return _search_documents(options, tile)
    from miner.knn.cells import parse_cells, search_cells
    from miner.knn.exact import search_both

    source, target = tile.source.embedded.unit_vectors(), tile.target.embedded.unit_vectors()
    total = len(source) * len(target)
    precision = options.product_precision
    with progress.stage("search", total, "similarities", tile.part) as meter:
        if tile.cells is None:
            return search_both(
                source, target, k=options.k, precision=precision, progress=meter.advance
            )
        return search_cells(
            *(source, target, load_cells(tile.cells)),
            k=options.k,
            probes=parse_cells(tile.source.method).probes,
            precision=precision,
            progress=meter.advance,
        )


def find_neighbours(
    options: MiningOptions, parts: Sequence[Partial] | Sequence[Lookup]
) -> ShardNeighbours:
    """One shard's neighbours on the whole other side, from its parts in each shard of that."""
    return ShardNeighbours(
        embedded=parts[0].embedded,
        neighbours={scope: _neighbours(options, parts, scope) for scope in options.scopes},
    )


def _neighbours(
    options: MiningOptions, parts: Sequence[Partial] | Sequence[Lookup], scope: str
) -> Artefact:
    embedded = parts[0].embedded
    side = embedded.shard.side
    partials = [part for part in parts if isinstance(part, Partial) and part.scope == scope]
    lookups = [part for part in parts if isinstance(part, Lookup) and scope == CORPUS]
    if lookups:
        lookups = whole_side(lookups, _other(side), lambda part: part.other.embedded.shard)
    else:
        partials = whole_side(partials, _other(side), lambda part: part.other.shard)
    searched = lookups or partials
    key = lookup_key(options, lookups) if lookups else _merge_key(options, partials, side)

    def write(draft: Draft) -> Mapping[str, Any]:
        found = look_up(options, lookups) if lookups else _merge(options, partials, side)
        _save(draft, side, found)
        return _recall(options, searched, found)

    folder = options.work_dir / "neighbours" / f"{embedded.shard.name}{_suffix(scope)}"
    return produce(folder, key=key, write=write)


def _other(side: str) -> str:
    return TARGET if side == SOURCE else SOURCE


def _recall(
    options: MiningOptions, parts: Sequence[Partial] | Sequence[Lookup], found: Neighbours
) -> Mapping[str, int]:
    """What ``measure_recall`` says of an approximate search; nothing of an exact one."""
    others = [
        part.other.embedded if isinstance(part, Lookup) else part.other
        for part in parts
        if isinstance(part, Lookup) or part.tile.facts["approximate"]
    ]
    if not others:
        return {}
    return measure_recall(parts[0].embedded, others, found, k=options.k)


def _merge_key(options: MiningOptions, partials: Sequence[Partial], side: str) -> str:
    names = [f"{side}.ids.npy", f"{side}.cosines.npy"]
    parts = sorted([partial.tile.files[name] for name in names] for partial in partials)
    approximate = any(partial.tile.facts["approximate"] for partial in partials)
    return content_key("merge", parts=parts, k=options.k, approximate=approximate)


def _merge(options: MiningOptions, partials: Sequence[Partial], side: str) -> Neighbours:
    from miner.knn.rescore import merge

    loaded = (_load(partial.tile, side) for partial in partials)  # two at a time in memory
    return functools.reduce(lambda one, two: merge([one, two], k=options.k), loaded)


def _with_rows(neighbours: Neighbours, other: EmbeddedShard) -> Neighbours:
    """The same neighbours, their positions in the other shard replaced by rows of its corpus."""
    import numpy as np

    from miner.arrays import NO_NEIGHBOUR, Neighbours

    rows = np.append(other.row_ids(), NO_NEIGHBOUR)  # so that -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)


def _save(draft: Draft, side: str, neighbours: Neighbours) -> None:
    draft.array(f"{side}.ids.npy", neighbours.ids)
    draft.array(f"{side}.cosines.npy", neighbours.cosines)


def _load(artefact: Artefact, side: str) -> Neighbours:
    import numpy as np

    from miner.arrays import Neighbours

    return Neighbours(
        ids=np.load(artefact.file(f"{side}.ids.npy")),
        cosines=np.load(artefact.file(f"{side}.cosines.npy")),
    )
