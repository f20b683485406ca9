"""References: what the stages hand on to one another. The data lies in sealed artefacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.arrays import (
    NO_NEIGHBOUR,
    Columns,
    IntArray,
    Matrix,
    Neighbours,
    Rows,
    take_columns,
    taken,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.method import CorpusMethod, Method, PairedDocuments
from miner.storage import layout
from miner.storage.artefacts import Artefact, Draft

BLOCK_NUMBERS = 1 << 22  # of stored vectors at a time: with their copies about 64 MB

Reference = TypeVar("Reference", bound="EmbeddedShard | ShardReference")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """File ``index`` of a side's artefact ``corpus``, whose metadata are of the whole side."""

    side: str
    index: int
    rows: int
    corpus: Artefact

    @property
    def name(self) -> str:
        """Its place in the folders of the later stages."""
        return layout.shard_name(self.side, self.index)

    @property
    def digest(self) -> str:
        """SHA-256 of its sentences file."""
        return self.corpus.files[layout.shard_file(self.index)]

    @property
    def _file(self) -> Path:
        return self.corpus.file(layout.shard_file(self.index))

    def read(self, columns: list[str]) -> pa.Table:
        """Read columns of its sentences: ``row``, ``id``, ``doc``, ``text``."""
        return pq.read_table(self._file, columns=columns)

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Read the same, at most ``rows`` sentences at a time."""
        with pq.ParquetFile(self._file) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)

    def text_bytes(self) -> int:
        """Return about how many bytes its sentences take in memory."""
        metadata = pq.read_metadata(self._file)
        return sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))

    def row_ids(self) -> IntArray:
        """Return the rows of its sentences in the corpus, ascending."""
        return self.read(["row"])["row"].to_numpy()


@dataclass(frozen=True, kw_only=True)
class EmbeddedShard:
    """A shard and its sealed vectors: ``rows.npy`` int64 (n,) and ``vectors.npy`` (n, D).

    ``columns`` are those that a pair takes of a joined encoder's vectors; none for all as they are.
    """

    shard: Shard
    vectors: Artefact
    columns: tuple[Columns, ...] = ()

    def __len__(self) -> int:
        return self.shard.rows - sum(self.vectors.facts["dropped"].values())

    def row_ids(self) -> IntArray:
        """Return the rows of the sentences that have a vector, ascending."""
        return np.load(self.vectors.file(layout.ROWS))

    def docs(self) -> pa.Array:
        """Return the documents of those sentences."""
        sentences = self.shard.read(["row", "doc"])
        has_vector = np.isin(sentences["row"].to_numpy(), self.row_ids())
        return sentences["doc"].combine_chunks().filter(pa.array(has_vector))

    @property
    def content(self) -> list[object]:
        """What identifies their rows and vectors."""
        files = self.vectors.files
        return [files[layout.ROWS], files[layout.VECTORS], *self.columns]

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return sum(stop - start for start, stop, _ in self.columns) or int(self._stored().shape[1])

    def unit_vectors(self) -> Matrix:
        """Return their vectors as unit rows."""
        units = np.empty((len(self), self.dim), dtype=np.float32)
        size = max(1, BLOCK_NUMBERS // self.dim)
        for start in range(0, len(units), size):
            block = slice(start, start + size)
            unit_rows(self.read(block), out=units[block])
        return units

    def unit_blocks(self) -> Iterator[Matrix]:
        """Yield their vectors as unit rows, some at a time: memory that is used again is faster."""
        size = max(1, 4 * BLOCK_NUMBERS // self.dim)
        for start in range(0, len(self), size):
            yield unit_rows(self.read(slice(start, start + size)))

    def read_units(self, rows: IntArray, *, out: Matrix, places: IntArray) -> None:
        """Read some rows of their vectors to their places among unit rows."""
        if self.columns:
            unit_rows(self.read(rows), out, places=places)
        else:  # from disk to their places at once
            unit_rows(self._stored(), out, rows=rows, places=places)

    def read(self, rows: Rows) -> NDArray[np.floating]:
        """Read some rows of their vectors from disk."""
        return take_columns(taken(self._stored(), rows), self.columns)

    def _stored(self) -> NDArray[np.floating]:
        """Map the file, anew each time, for what was read of a mapping stays in memory."""
        return np.load(self.vectors.file(layout.VECTORS), mmap_mode="r")


class SideVectors:
    """The vectors of a whole side, numbered through its shards, which begin at ``starts``."""

    def __init__(self, shards: Sequence[EmbeddedShard]) -> None:
        self._shards = shards
        self.starts = [0, *accumulate(map(len, shards))]  # the last is the number of all

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return self._shards[0].dim

    def take(self, positions: IntArray, *, places: IntArray | None = None) -> Matrix:
        """Read vectors at ascending positions (P,): unit rows (P, D), at ``places`` if given."""
        units = np.empty((len(positions), self.dim), dtype=np.float32)
        places = np.arange(len(positions)) if places is None else places
        for embedded, start, part in self._parts(positions):
            embedded.read_units(positions[part] - start, out=units, places=places[part])
        return units

    def row_ids(self, positions: IntArray) -> IntArray:
        """Return the rows of the corpus at ascending positions (P,)."""
        rows = np.empty_like(positions)
        for embedded, start, part in self._parts(positions):
            rows[part] = embedded.row_ids()[positions[part] - start]
        return rows

    def _parts(self, positions: IntArray) -> Iterator[tuple[EmbeddedShard, int, slice]]:
        """Yield the shards that ascending positions lie in: where each begins, and which do."""
        parts = pairwise(np.searchsorted(positions, self.starts))
        for embedded, start, (first, last) in zip(self._shards, self.starts, parts, strict=False):
            if first < last:
                yield embedded, start, slice(first, last)


@dataclass(frozen=True, kw_only=True)
class EmbeddedSide:
    """All shards of a side, how the other side is searched, and the centroids of a cell join."""

    name: str
    method: CorpusMethod
    shards: Sequence[EmbeddedShard]
    cells: Artefact | None


@dataclass(frozen=True, kw_only=True)
class ShardReference:
    """What belongs to a shard with vectors."""

    embedded: EmbeddedShard

    @property
    def shard(self) -> Shard:
        """The shard itself."""
        return self.embedded.shard


@dataclass(frozen=True, kw_only=True)
class SearchableShard(ShardReference):
    """A shard to be searched through its index or cells, or exactly where it has none.

    Before ``fill_index``, ``index`` is its side's: trained and empty, or the centroids of cells.
    """

    method: CorpusMethod
    index: Artefact | None


@dataclass(frozen=True, kw_only=True)
class SearchTile:
    """A group of source shards and one of target shards, to be searched against each other.

    In a cell join both groups are whole sides, and the tile is of the ``cells`` alone; ``floors``
    are what was found of rows before. ``part`` says which tile of how many, such as ``2/6``.
    """

    sources: Sequence[SearchableShard]
    targets: Sequence[SearchableShard]
    method: Method
    part: str = ""
    cells: range | None = None
    floors: Sequence[Artefact] = ()

    @property
    def scope(self) -> str:
        """Which of ``SCOPES`` is searched."""
        return layout.DOCUMENT if isinstance(self.method, PairedDocuments) else layout.CORPUS

    @property
    def first(self) -> tuple[int, int]:
        """The indices of the first shards of both groups, which its folder is named after."""
        return self.sources[0].shard.index, self.targets[0].shard.index

    @property
    def name(self) -> str:
        """A name that no other tile has."""
        return f"{self.scope} {self.first} {self.cells or ''}"


@dataclass(frozen=True, kw_only=True)
class RecallSample:
    """Some rows of a side, to be searched exactly in all shards of the other side."""

    shards: Sequence[EmbeddedShard]
    others: Sequence[EmbeddedShard]

    @property
    def name(self) -> str:
        """A name that no other sample or tile has."""
        return f"recall of {self.shards[0].shard.side}"


@dataclass(frozen=True, kw_only=True)
class TileNeighbours(ShardReference):
    """A shard's neighbours from one tile, in the shards ``others`` of the other side's ``of``."""

    others: range
    of: int
    scope: str
    tile: Artefact
    k: int  # neighbours that a row may have in all of them


@dataclass(frozen=True, kw_only=True)
class SomeNeighbours(ShardReference):
    """Neighbours of some of a shard's rows: ``part`` of an artefact's lists."""

    part: range
    artefact: Artefact

    def load(self) -> tuple[NDArray[np.int32], Neighbours]:
        """Load the places of the rows in the shard (P,), and their neighbours."""
        side, part = self.shard.side, slice(self.part.start, self.part.stop)
        names = layout.places_file(side), *layout.list_files(side)
        files = (np.load(self.artefact.file(name), mmap_mode="r") for name in names)
        places, ids, cosines = (np.array(file[part]) for file in files)
        return places, Neighbours(ids=ids, cosines=cosines)


@dataclass(frozen=True, kw_only=True)
class CellNeighbours(SomeNeighbours):
    """A shard's neighbours from some ``cells`` of the ``of`` that there are."""

    cells: range
    of: int
    k: int  # neighbours that a row may have in all of them


@dataclass(frozen=True, kw_only=True)
class SampledNeighbours(SomeNeighbours):
    """The exact neighbours of some of a shard's rows."""


@dataclass(frozen=True, kw_only=True)
class IndexLookup(ShardReference):
    """A shard whose neighbours are to be looked up in the index of a shard of the other side."""

    other: SearchableShard


FoundPart: TypeAlias = TileNeighbours | CellNeighbours | IndexLookup | SampledNeighbours


@dataclass(frozen=True, kw_only=True)
class ShardNeighbours(ShardReference):
    """A shard's neighbours on the other side by scope, sealed: ids are rows of the corpus."""

    neighbours: Mapping[str, Artefact]

    @property
    def content(self) -> list[object]:
        """What identifies the neighbours of all scopes."""
        return [sorted(artefact.files.items()) for artefact in self.neighbours.values()]

    def load(self, scope: str) -> Neighbours:
        """Load the neighbours of the rows of ``embedded.row_ids()``."""
        return load_list(self.neighbours[scope].file, self.shard.side)


@dataclass(frozen=True, kw_only=True)
class DocumentBatch:
    """Document pairs to be aligned, part ``index`` of the list cut into ``of``, and their beads."""

    index: int
    of: int
    shards: Sequence[ShardNeighbours]
    beads: Artefact | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenPairs:
    """The chosen pairs, sealed as rows and scores, best first, and what they were chosen from.

    ``merges`` has the rows that a row stands for in monotone alignments, ``lines`` the lines that
    given pairs are on, ``identical`` the pairs with the same text on both sides, ``rejected`` those
    that filters rejected.
    """

    pairs: Artefact
    shards: Sequence[ShardNeighbours]
    merges: Artefact | None = None
    lines: Artefact | None = None
    identical: Artefact | None = None
    rejected: Artefact | None = None

    @property
    def merges_key(self) -> Mapping[str, str]:
        """What decides which texts are merged."""
        return {"merges": self.merges.files[layout.MERGES]} if self.merges else {}

    def of_side(self, side: str) -> list[ShardNeighbours]:
        """Return the neighbours of a side's shards."""
        return [found for found in self.shards if found.shard.side == side]


@dataclass(frozen=True, kw_only=True)
class PairBatch:
    """``rows`` of the chosen pairs, and their scores by what is ``usual``: none if that is None."""

    index: int
    of: int
    rows: range
    chosen: ChosenPairs
    usual: Artefact | None
    scores: Artefact | None = None


def element_name(element: object) -> str:
    """Return an element's name within its stage; the order of a group does not matter."""
    if isinstance(element, list):
        return min(map(element_name, element))
    if isinstance(element, str):
        return element
    element = getattr(element, "shard", element)
    return str(getattr(element, "name", getattr(element, "index", "")))


def tile_list(embedded: EmbeddedShard) -> str:
    """Return what a shard's list is called in the tiles that it was in."""
    return f"{embedded.shard.side}.{embedded.shard.index:05d}"


def save_list(save: Callable[[str, NDArray], None], name: str, neighbours: Neighbours) -> None:
    """Save a list of neighbours by a function that saves arrays by name."""
    ids, cosines = layout.list_files(name)
    save(ids, neighbours.ids)
    save(cosines, neighbours.cosines)


def load_list(file: Callable[[str], Path], name: str) -> Neighbours:
    """Load a list of neighbours; the function says where its files are."""
    ids, cosines = (np.load(file(part)) for part in layout.list_files(name))
    return Neighbours(ids=ids, cosines=cosines)


def to_row_ids(neighbours: Neighbours, rows: IntArray) -> Neighbours:
    """Replace the neighbours' positions by what stands there in ``rows`` of the other corpus."""
    rows = np.append(rows, NO_NEIGHBOUR)  # so that -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)


def save_row_neighbours(
    draft: Draft, vectors: SideVectors, side: str, positions: IntArray, neighbours: Neighbours
) -> list[int]:
    """Save neighbours of the rows at ascending positions; return where each shard's begin."""
    starts = np.searchsorted(positions, vectors.starts)
    shards = np.repeat(vectors.starts[:-1], np.diff(starts))
    draft.array(layout.places_file(side), (positions - shards).astype(np.int32))
    save_list(draft.array, side, neighbours)
    return starts.tolist()


def parts_of(
    saved: Artefact, shards: Iterable[EmbeddedShard]
) -> list[tuple[EmbeddedShard, range, Artefact]]:
    """Find the rows that ``save_row_neighbours`` saved of each shard, by the fact ``starts``.

    References have no need of that fact, which grows with the number of shards.
    """
    starts, bare = saved.facts["starts"], replace(saved, facts={})
    return [
        (found, range(*starts[found.shard.side][found.shard.index : found.shard.index + 2]), bare)
        for found in shards
    ]


def collect_side(references: Iterable[Reference], side: str) -> list[Reference]:
    """Return the references to a side's shards, in order; there must be one to each."""
    found = sorted(
        (reference for reference in references if reference.shard.side == side),
        key=lambda reference: reference.shard.index,
    )
    expected = found[0].shard.corpus.facts["shards"] if found else 1
    check_complete([reference.shard.index for reference in found], expected, f"{side} shards")
    return found


def collect_sides(references: Iterable[Reference]) -> dict[str, list[Reference]]:
    """Return those of both sides as ``collect_side`` does."""
    return {side: collect_side(references, side) for side in layout.SIDES}


def check_complete(found: Sequence[int], expected: int, what: str) -> None:
    """Raise a ValueError if the ascending indices are not those of all of ``what``, each once."""
    if list(found) != list(range(expected)):
        raise ValueError(
            f"--runner lost or repeated work: received {len(found)} references for {expected} "
            f"{what}; use another runner"
        )
