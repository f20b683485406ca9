"""The cell join in tiles of cells: first of each row's nearest cell, then of all its cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Neighbours
from miner.knn.cells import by_nearest_cell, cut_cells, find_floors, join_cells, rows_in_cells
from miner.knn.core.rescore import merge_some
from miner.knn.method import CellSpec
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CELLS, CORPUS, SIDES, SOURCE, TARGET, floor_files
from miner.threads import blocks
from pipelines.context import RunContext
from pipelines.progress import Meter
from pipelines.references import (
    SearchableShard,
    SearchTile,
    SideVectors,
    check_whole,
    named,
    save_some,
    whole_sides,
)
from pipelines.stages.searching.cells import assigned_to, load_cells

CUT_BY = 1 << 18  # rows of the larger side, evenly spread, whose cells decide where cells are cut
# What a tile may have more than that: to join its rows in blocks costs more than it saves.
SLACK = 1.05


def cut_nearest(run: RunContext, shards: Sequence[SearchableShard]) -> list[SearchTile]:
    """Cut a join of each row's nearest cell into tiles; for another search, return one tile of all.

    That join costs little, and gives the join of all cells its floors, see ``join_cells``.
    """
    sides, method = whole_sides(shards), shards[0].method
    if isinstance(method, CellSpec) and method.probes > 1 and CORPUS in run.options.scopes:
        return numbered(cell_tiles(sides, replace(method, probes=1)))
    return [SearchTile(sources=sides[SOURCE], targets=sides[TARGET], method=method)]


def join_nearest(run: RunContext, tile: SearchTile) -> SearchTile:
    """Find floors for the rows of a tile in their nearest cell; seals ``tiles/nearest-CELL``.

    Of each side it has the rows' positions, int64 (n,), and floors, float32 (n,).
    """
    cells = tile.cells
    if cells is None:
        return tile

    def write(draft: Draft) -> Mapping[str, Any]:
        sides = [_Rows.of(tile, side) for side in SIDES]
        with _meter(run, tile, sides, "nearest") as meter:
            for source, target in _parts(tile, cells, sides):
                floors = find_floors(
                    *(source.units, target.units, source.cells, target.cells),
                    part=cells,
                    k=run.options.k,
                    precision=run.options.product_precision,
                    progress=meter.advance,
                )
                for rows, block, found in zip(sides, (source, target), floors, strict=True):
                    known = rows.floors[block.places]
                    rows.floors[block.places] = np.maximum(known, found)
        for side, rows in zip(SIDES, sides, strict=True):
            positions, floors_file = floor_files(side)
            draft.array(positions, rows.positions)
            draft.array(floors_file, rows.floors)
        return {}

    folder = run.folder.nearest_tile(cells.start)
    return replace(tile, floors=[produce(folder, key=_key(run, tile), write=write)])


def floors_of(tiles: Sequence[SearchTile]) -> list[Artefact]:
    """Return the floors that were found in tiles, of all cells, or none.

    Raises:
        ValueError: some are missing; the runner has repeated or lost some.
    """
    if tiles[0].cells is None:
        return []
    found = sorted(tiles, key=lambda tile: tile.cells.start if tile.cells else 0)
    cells = [cell for tile in found for cell in tile.cells or ()]
    check_whole(cells, assigned_to(tiles[0].sources[0]).facts["cells"], "cells")
    return [artefact for tile in found for artefact in tile.floors]


def cell_tiles(
    sides: Mapping[str, Sequence[SearchableShard]],
    method: CellSpec,
    floors: Sequence[Artefact] = (),
) -> list[SearchTile]:
    """Cut the cells into ranges of about as many rows as two shards have."""
    rows = [sum(len(searchable.embedded) for searchable in side) for side in sides.values()]
    stride = -(-max(rows) // CUT_BY)
    cells = (
        np.concatenate([_cells(searchable, method)[::stride] for searchable in side])
        for side in sides.values()
    )
    count = assigned_to(sides[SOURCE][0]).facts["cells"]
    most = _rows_of_two_shards((*sides[SOURCE], *sides[TARGET])) // stride
    return [
        SearchTile(
            sources=sides[SOURCE], targets=sides[TARGET], method=method, cells=part, floors=floors
        )
        for part in cut_cells(*cells, count=count, most=max(1, most))
    ]


def numbered(tiles: Sequence[SearchTile]) -> list[SearchTile]:
    """Return the tiles, each with its part of how many."""
    if len(tiles) == 1:
        return [*tiles]
    return [
        replace(tile, part=f"{number}/{len(tiles)}") for number, tile in enumerate(tiles, start=1)
    ]


def _rows_of_two_shards(shards: Iterable[SearchableShard]) -> int:
    """Return how many rows may be searched at a time: those of the largest shard, twice."""
    return 2 * max(searchable.shard.rows for searchable in shards)


def join_tile(run: RunContext, tile: SearchTile) -> Artefact:
    """Join the cells of a tile, and write the neighbours of all rows that have some."""
    assert tile.cells is not None
    cells = tile.cells

    def write(draft: Draft) -> Mapping[str, Any]:
        sides = [_Rows.of(tile, side) for side in SIDES]
        lists = [Neighbours.none(len(rows), run.options.k) for rows in sides]
        with _meter(run, tile, sides, "search") as meter:
            for source, target in _parts(tile, cells, sides):
                found = join_cells(
                    *(source.units, target.units, source.cells, target.cells),
                    part=cells,
                    k=run.options.k,
                    names=(source.places, target.places),
                    floors=(source.floors, target.floors) if tile.floors else None,
                    precision=run.options.product_precision,
                    progress=meter.advance,
                )
                merge_some(lists[0], source.places, found[0])
                merge_some(lists[1], target.places, found[1])
        starts = {}
        numbers = [rows.vectors.row_ids(rows.positions) for rows in sides]
        for side, rows, found_all, others in zip(SIDES, sides, lists, numbers[::-1], strict=True):
            some = np.flatnonzero(found_all.cosines[:, 0] > -np.inf)
            own = rows.positions[some]
            starts[side] = save_some(
                draft, rows.vectors, side, own, named(found_all.part(some), others)
            )
        return {"starts": starts}

    return produce(run.folder.cell_tile(cells.start), key=_key(run, tile), write=write)


def _key(run: RunContext, tile: SearchTile) -> str:
    assert tile.cells is not None
    return content_key(
        "join",
        sources=[_content(searchable) for searchable in tile.sources],
        targets=[_content(searchable) for searchable in tile.targets],
        k=run.options.k,
        cells=[tile.cells.start, tile.cells.stop],
        floors=[sorted(artefact.files.items()) for artefact in tile.floors],
    )


def _content(searchable: SearchableShard) -> list[object]:
    return [*searchable.embedded.content, assigned_to(searchable).files[CELLS]]


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The rows of a side that lie in a tile's cells: ``positions`` in the side, cells and floors.

    ``floors`` are -inf where there are none.
    """

    vectors: SideVectors
    positions: NDArray[np.int64]
    cells: NDArray[np.signedinteger]
    floors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def of(cls, tile: SearchTile, side: str) -> _Rows:
        assert tile.cells is not None
        assert isinstance(tile.method, CellSpec)
        shards = tile.sources if side == SOURCE else tile.targets
        vectors = SideVectors([searchable.embedded for searchable in shards])
        saved = [
            [np.load(artefact.file(name), mmap_mode="r") for name in floor_files(side)]
            for artefact in tile.floors
        ]
        parts = []
        for searchable, (start, stop) in zip(shards, pairwise(vectors.starts), strict=True):
            all_cells = _cells(searchable, tile.method)
            inside = rows_in_cells(all_cells, tile.cells)
            all_floors = np.full(stop - start, -np.inf, dtype=np.float32)
            for places, values in saved:
                some = slice(*np.searchsorted(places, (start, stop)))
                all_floors[places[some] - start] = values[some]
            parts.append((inside + start, all_cells[inside], all_floors[inside]))
        positions, cells, floors = map(np.concatenate, zip(*parts, strict=True))
        return cls(vectors=vectors, positions=positions, cells=cells, floors=floors)

    def block(self, part: range, block: slice) -> _Block:
        """Return some of the rows in the order that a join of a part has for them."""
        order = by_nearest_cell(self.cells[block], part)
        units = self.vectors.take(self.positions[block], places=np.argsort(order))
        places = order + block.start
        return _Block(
            places=places, units=units, cells=self.cells[places], floors=self.floors[places]
        )


class _Block(NamedTuple):
    """Some of a side's rows in a tile: their places among these, vectors, cells and floors."""

    places: NDArray[np.int64]
    units: NDArray[np.float32]
    cells: NDArray[np.signedinteger]
    floors: NDArray[np.float32]


def _parts(
    tile: SearchTile, cells: range, sides: Sequence[_Rows]
) -> Iterator[tuple[_Block, _Block]]:
    """Yield all rows of both sides; if there are more than two shards have, in blocks."""
    size = _rows_of_two_shards((*tile.sources, *tile.targets))
    size = size // 2 if sum(map(len, sides)) > SLACK * size else math.ceil(SLACK * size)
    for rows in blocks(len(sides[0]), size):
        source = sides[0].block(cells, rows)
        for columns in blocks(len(sides[1]), size):
            yield source, sides[1].block(cells, columns)


def _meter(
    run: RunContext, tile: SearchTile, sides: Sequence[_Rows], stage: str
) -> AbstractContextManager[Meter]:
    similarities = math.prod(map(len, sides))
    return run.monitor.stage(stage, similarities, "similarities", tile.part)


def _cells(searchable: SearchableShard, method: CellSpec) -> NDArray[np.signedinteger]:
    """Return the cells of a shard's rows that the method looks at: all, or the nearest."""
    return load_cells(assigned_to(searchable))[:, : None if method.probes > 1 else 1]
