"""Join cells in tiles, first each row's nearest cell, then all its cells."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from miner.arrays import IntArray, Matrix, Neighbours, load_array
from miner.knn.cells import (
    Cells,
    by_nearest_cell,
    cut_cells,
    find_floors,
    join_cells,
    rows_in_cells,
)
from miner.knn.core.rescore import merge_some
from miner.knn.method import CellSpec, Method
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CELLS, CORPUS, SIDES, SOURCE, TARGET, floor_files
from miner.threads import blocks
from pipelines.context import RunContext
from pipelines.references import (
    SearchableShard,
    SearchTile,
    SideVectors,
    check_complete,
    collect_sides,
    save_row_neighbours,
    to_row_ids,
)

CUT_BY = 1 << 18  # evenly spaced rows of the larger side that decide where cells are cut
SLACK = 1.05  # rows of a tile over two shards' rows that are joined at once; blocks are slower


def cut_nearest(run: RunContext, shards: Sequence[SearchableShard]) -> list[SearchTile]:
    """Divide the join of nearest cells into tiles.

    It finds lower bounds of cosines. If the search needs none, the result is one tile, without
    ``cells``. ``shards`` are all of both sides, or ValueError says that one is missing or repeated.
    """
    sides, method = collect_sides(shards), shards[0].method
    whole = SearchTile(sources=sides[SOURCE], targets=sides[TARGET], method=method)
    if isinstance(method, CellSpec) and method.probes > 1 and CORPUS in run.options.scopes:
        return number_tiles(cell_tiles(replace(whole, method=replace(method, probes=1))))
    return [whole]


def join_nearest(run: RunContext, tile: SearchTile) -> SearchTile:
    """Find and save floors, lower bounds of k-th cosines, of a tile's rows.

    The tile is returned with ``floors``, one artefact. It has, for each side, the positions, int64
    (n,), of n rows in ``cells``, and their floors, float32 (n,), -inf for none. Without
    ``cells``, the tile is returned unchanged.
    """
    cells = tile.cells
    if cells is None:
        return tile

    def write(draft: Draft) -> Mapping[str, Any]:
        sides, k = [_Rows.load(tile, side) for side in SIDES], list_length(run, tile)
        total = math.prod(map(len, sides))
        with run.monitor.stage("nearest", total, "similarities", tile.part) as meter:
            for source, target in _parts(tile, cells, sides):
                floors = find_floors(
                    *((source.units, target.units), (source.cells, target.cells)),
                    part=cells,
                    k=k,
                    precision=run.options.product_precision,
                    progress=meter.advance,
                )
                for rows, block, values in zip(sides, (source, target), floors, strict=True):
                    before = rows.floors[block.places]
                    rows.floors[block.places] = np.maximum(before, values)
        for side, rows in zip(SIDES, sides, strict=True):
            positions, floors_file = floor_files(side)
            draft.array(positions, rows.positions)
            draft.array(floors_file, rows.floors)
        return {}

    folder = run.folder.nearest_tile(cells.start)
    return replace(tile, floors=[produce(folder, key=_key(run, tile, cells), write=write)])


def floors_of(tiles: Sequence[SearchTile]) -> list[Artefact]:
    """Return the artefacts of floors that ``join_nearest`` saved, maybe none.

    ValueError says that a cell is missing or repeated.
    """
    if tiles[0].cells is None:
        return []
    ordered = sorted(tiles, key=lambda tile: tile.cells.start if tile.cells else 0)
    cells = [cell for tile in ordered for cell in tile.cells or ()]
    check_complete(cells, cells_of(tiles[0].sources[0]).facts["cells"], "cells")
    return [artefact for tile in ordered for artefact in tile.floors]


def cells_of(searchable: SearchableShard) -> Artefact:
    """Return the artefact with the cells of a shard's vectors in a cell join."""
    assert searchable.index is not None, "a cell join needs the cells of every shard"
    return searchable.index


def cell_tiles(whole: SearchTile, floors: Sequence[Artefact] = ()) -> list[SearchTile]:
    """Cut ``whole`` into tiles of cells with rows of about two shards each.

    Each tile gets ``floors``, the result of ``floors_of`` for ``join_tile``.
    """
    sides = whole.sources, whole.targets
    stride = -(-max(map(_rows, sides)) // CUT_BY)
    cells = (
        np.concatenate([_cells(searchable, whole.method)[::stride] for searchable in side])
        for side in sides
    )
    count = cells_of(whole.sources[0]).facts["cells"]
    maximum = max(1, _rows_of_two_shards(whole) // stride)
    parts = cut_cells(*cells, count=count, most=maximum)
    return [replace(whole, cells=part, floors=floors) for part in parts]


def number_tiles(tiles: Sequence[SearchTile]) -> list[SearchTile]:
    """Return tiles with number and total (2/6) as ``part``, "" if only one."""
    total = len(tiles)
    return [
        replace(tile, part=f"{number}/{total}" if total > 1 else "")
        for number, tile in enumerate(tiles, start=1)
    ]


def _rows_of_two_shards(tile: SearchTile) -> int:
    return 2 * max(searchable.shard.rows for searchable in (*tile.sources, *tile.targets))


def join_tile(run: RunContext, tile: SearchTile, cells: range) -> Artefact:
    """Search cells of a tile, and save the lists of rows with neighbours.

    ``cells`` are ``tile.cells``. Ids are rows of the other side. ``shard_parts`` divides the lists.
    """

    def write(draft: Draft) -> Mapping[str, Any]:
        sides, k = [_Rows.load(tile, side) for side in SIDES], list_length(run, tile)
        lists = [Neighbours.empty(len(rows), k) for rows in sides]
        total = math.prod(map(len, sides))
        with run.monitor.stage("search", total, "similarities", tile.part) as meter:
            for source, target in _parts(tile, cells, sides):
                joined = join_cells(
                    *((source.units, target.units), (source.cells, target.cells)),
                    part=cells,
                    k=k,
                    names=(source.places, target.places),
                    floors=(source.floors, target.floors) if tile.floors else None,
                    precision=run.options.product_precision,
                    progress=meter.advance,
                )
                merge_some(lists[0], source.places, joined[0])
                merge_some(lists[1], target.places, joined[1])
        starts = {}
        numbers = [rows.vectors.row_ids(rows.positions) for rows in sides]
        for side, rows, best, names in zip(SIDES, sides, lists, numbers[::-1], strict=True):
            places = np.flatnonzero(best.cosines[:, 0] > -np.inf)
            neighbours = to_row_ids(best.take(places), names)
            starts[side] = save_row_neighbours(
                draft, rows.vectors, side, rows.positions[places], neighbours
            )
        return {"starts": starts}

    folder = run.folder.cell_tile(cells.start)
    return produce(folder, key=_key(run, tile, cells), write=write)


def list_length(run: RunContext, tile: SearchTile) -> int:
    """Return k, or the number of vectors of the larger side if that is less."""
    return min(run.options.k, max(map(_rows, (tile.sources, tile.targets))))


def _rows(side: Sequence[SearchableShard]) -> int:
    return sum(len(searchable.embedded) for searchable in side)


def _key(run: RunContext, tile: SearchTile, cells: range) -> str:
    return content_key(
        "join",
        sources=[_content(searchable) for searchable in tile.sources],
        targets=[_content(searchable) for searchable in tile.targets],
        k=run.options.k,
        cells=[cells.start, cells.stop],
        floors=[sorted(artefact.files.items()) for artefact in tile.floors],
    )


def _content(searchable: SearchableShard) -> list[object]:
    return [*searchable.embedded.content, cells_of(searchable).files[CELLS]]


class _Block(NamedTuple):
    # By their places among the tile's rows.
    places: IntArray
    units: Matrix
    cells: Cells
    floors: Matrix


@dataclass(frozen=True, kw_only=True)
class _Rows:
    vectors: SideVectors
    positions: IntArray
    cells: Cells
    floors: Matrix

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def load(cls, tile: SearchTile, side: str) -> Self:
        assert tile.cells is not None
        shards = tile.sources if side == SOURCE else tile.targets
        vectors = SideVectors([searchable.embedded for searchable in shards])
        files = [
            [load_array(artefact.file(name), mmap_mode="r") for name in floor_files(side)]
            for artefact in tile.floors
        ]
        parts = []
        for searchable, (start, stop) in zip(shards, pairwise(vectors.starts), strict=True):
            all_cells = _cells(searchable, tile.method)
            inside = rows_in_cells(all_cells, tile.cells)
            all_floors = np.full(stop - start, -np.inf, dtype=np.float32)
            for places, values in files:
                block = slice(*np.searchsorted(places, (start, stop)))
                all_floors[places[block] - start] = values[block]
            parts.append((inside + start, all_cells[inside], all_floors[inside]))
        positions, cells, floors = map(np.concatenate, zip(*parts, strict=True))
        return cls(vectors=vectors, positions=positions, cells=cells, floors=floors)

    def block(self, part: range, block: slice) -> _Block:
        order = by_nearest_cell(self.cells[block], part)
        units = self.vectors.take(self.positions[block], places=np.argsort(order))
        places = order + block.start
        return _Block(places, units, self.cells[places], self.floors[places])


def _parts(tile: SearchTile, cells: range, sides: list[_Rows]) -> Iterator[tuple[_Block, _Block]]:
    size = _rows_of_two_shards(tile)
    size = size // 2 if sum(map(len, sides)) > SLACK * size else math.ceil(SLACK * size)
    for rows in blocks(len(sides[0]), size):
        source = sides[0].block(cells, rows)
        for columns in blocks(len(sides[1]), size):
            yield source, sides[1].block(cells, columns)


def _cells(searchable: SearchableShard, method: Method) -> Cells:
    assert isinstance(method, CellSpec)
    cells = load_array(cells_of(searchable).file(CELLS), mmap_mode="r")
    return cells[:, : None if method.probes > 1 else 1]
