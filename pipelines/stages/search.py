"""The search stage: tiles of source by target shards to sealed lists of both sides' neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from miner.knn.method import IndexSpec
from miner.storage.artefacts import Artefact, Draft, content_key, produce, write_array
from miner.storage.layout import CORPUS, DOCUMENT, SOURCE, TARGET
from pipelines import progress
from pipelines.options import MiningOptions
from pipelines.references import whole_side
from pipelines.stages.cells import CELLS, load_cells
from pipelines.stages.documents import document_pairs, paired_rows
from pipelines.stages.encode import ROWS, VECTORS, EmbeddedShard
from pipelines.stages.index import SearchableShard
from pipelines.stages.index_search import Lookup
from pipelines.stages.merge import Partial, list_name, load_list, merged, save_list, scope_suffix
from pipelines.stages.recall import is_measured
from pipelines.stages.tiles import cut_strips

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from miner.arrays import Neighbours


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Strips of shards to be searched against each other: all rows, or those of paired documents.

    ``scope`` is one of ``pipelines.options.SCOPES``. ``part`` says which tile of how many, such as
    ``2/6``; empty for a single one.
    """

    sources: Sequence[SearchableShard]
    targets: Sequence[SearchableShard]
    scope: str
    part: str

    @property
    def name(self) -> str:
        """Its place in the folder ``tiles``."""
        source, target = (side[0].embedded.shard.index for side in (self.sources, self.targets))
        return f"{source:05d}-{target:05d}{scope_suffix(self.scope)}"


def plan_tiles(options: MiningOptions, shards: Sequence[SearchableShard]) -> list[Tile]:
    """Every strip of source shards with every strip of target shards, in each scope."""
    sides = {
        side: whole_side(shards, side, lambda searchable: searchable.embedded.shard)
        for side in (SOURCE, TARGET)
    }
    cut = cut_strips(options, {side: len(found) for side, found in sides.items()})
    strips = [
        [[found[index] for index in strip] for strip in cut[side]] for side, found in sides.items()
    ]
    tiles = [
        (scope, sources, targets)
        for scope in options.scopes
        for sources, targets in itertools.product(*strips)
    ]
    return [
        Tile(
            sources=sources,
            targets=targets,
            scope=scope,
            part=f"{number}/{len(tiles)}" if len(tiles) > 1 else "",
        )
        for number, (scope, sources, targets) in enumerate(tiles, start=1)
    ]


def search_tile(options: MiningOptions, tile: Tile) -> list[Partial] | list[Lookup]:
    """Both directions of one tile, exactly or by cell join; ids are rows of the corpora.

    Indexes have nothing to do at once. What is to be looked up in them is handed on, to be done
    for all tiles of a row or column together.
    """
    method = tile.sources[0].method
    both = (tile.sources, tile.targets), (tile.targets, tile.sources)
    if tile.scope == CORPUS and isinstance(method, IndexSpec):
        return [
            Lookup(embedded=searchable.embedded, other=other)
            for own, others in both
            for searchable in own
            for other in others
        ]
    artefact = _searched(options, tile)
    return [
        Partial(
            embedded=searchable.embedded,
            others=range(first := others[0].embedded.shard.index, first + len(others)),
            of=others[0].embedded.shard.corpus.facts["shards"],
            measured=[other.embedded for other in others]
            if is_measured(searchable.embedded)
            else [],
            scope=tile.scope,
            tile=artefact,
        )
        for own, others in both
        for searchable in own
    ]


def _searched(options: MiningOptions, tile: Tile) -> Artefact:
    key = content_key(
        "search",
        sources=[_content(tile, searchable) for searchable in tile.sources],
        targets=[_content(tile, searchable) for searchable in tile.targets],
        k=options.k,
        **_documents_key(options, tile),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        _search_strips(options, tile, draft)
        return {"approximate": _cells(tile, tile.sources[0]) is not None}

    return produce(options.work_dir / "tiles" / tile.name, key=key, write=write)


def _content(tile: Tile, searchable: SearchableShard) -> list[str]:
    """What decides on the neighbours that are found of a shard and in it."""
    vectors, cells = searchable.embedded.vectors, _cells(tile, searchable)
    found = [vectors.files[name] for name in (ROWS, VECTORS)]
    return [*found, cells.files[CELLS]] if cells else found


def _cells(tile: Tile, searchable: SearchableShard) -> Artefact | None:
    """The cells of a shard's vectors, if it is searched by them."""
    return searchable.index if tile.scope == CORPUS else None


def _documents_key(options: MiningOptions, tile: Tile) -> Mapping[str, object]:
    if tile.scope == CORPUS:
        return {}
    shards = [searchable.embedded.shard for searchable in (*tile.sources, *tile.targets)]
    return {
        "sentences": [shard.digest for shard in shards],
        "documents": document_pairs(options).digest,
    }


def _search_strips(options: MiningOptions, tile: Tile, draft: Draft) -> None:
    """Search shard by shard, and write the neighbours of each shard in all of the other strip.

    Two shards are in memory at a time; the lists of targets wait on disk for further sources.
    """
    with draft.scratch() as scratch:

        def wait(name: str, values: NDArray[Any]) -> None:
            write_array(scratch / name, values)

        for source in tile.sources:
            forward: list[Neighbours] = []
            for target in tile.targets:
                found, backward = _search(options, tile, source, target)
                forward = [merged([*forward, _with_rows(found, target.embedded)], k=options.k)]
                parts = [_with_rows(backward, source.embedded)]
                if source is not tile.sources[0]:
                    parts.insert(0, load_list(scratch.joinpath, list_name(target.embedded)))
                save_list(wait, list_name(target.embedded), merged(parts, k=options.k))
            save_list(draft.array, list_name(source.embedded), forward[0])
        for target in tile.targets:
            name = list_name(target.embedded)
            save_list(draft.array, name, load_list(scratch.joinpath, name))


def _search(
    options: MiningOptions, tile: Tile, source: SearchableShard, target: SearchableShard
) -> tuple[Neighbours, Neighbours]:
    """Both directions of two shards; ids are positions in them."""
    if tile.scope == DOCUMENT:
        return _search_documents(options, tile.part, source.embedded, target.embedded)
    from miner.knn.cells import join_cells
    from miner.knn.exact import search_both

    vectors = source.embedded.unit_vectors(), target.embedded.unit_vectors()
    cells = _cells(tile, source), _cells(tile, target)
    total = len(vectors[0]) * len(vectors[1])
    with progress.stage("search", total, "similarities", tile.part) as meter:
        search: Callable[..., tuple[Neighbours, Neighbours]] = partial(search_both, *vectors)
        if cells[0] is not None and cells[1] is not None:
            nearest = [load_cells(found) for found in cells if found is not None]
            search = partial(join_cells, *vectors, *nearest, count=cells[0].facts["cells"])
        return search(k=options.k, precision=options.product_precision, progress=meter.advance)


def _search_documents(
    options: MiningOptions, part: str, source: EmbeddedShard, target: EmbeddedShard
) -> tuple[Neighbours, Neighbours]:
    """No neighbours of any row, and hardly any work, where the shards have no document pair."""
    from miner.arrays import Neighbours
    from miner.knn.documents import search_documents

    documents = paired_rows(options, source, target)
    if not documents:
        return Neighbours.none(len(source), 0), Neighbours.none(len(target), 0)
    total = sum(len(rows) * len(columns) for rows, columns in documents)
    with progress.stage("search", total, "similarities", part) as meter:
        return search_documents(
            *(source.unit_vectors(), target.unit_vectors(), documents),
            k=options.k,
            progress=meter.advance,
        )


def _with_rows(neighbours: Neighbours, other: EmbeddedShard) -> Neighbours:
    """The same neighbours, their positions in the other shard replaced by rows of its corpus."""
    import numpy as np

    from miner.arrays import NO_NEIGHBOUR, Neighbours

    rows = np.append(other.row_ids(), NO_NEIGHBOUR)  # so that -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)
