"""References that stages pass to each other, to data in sealed artefacts."""

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
    take_rows,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.method import CorpusMethod, Method, PairedDocuments
from miner.storage import layout
from miner.storage.artefacts import Artefact, Draft

BLOCK_NUMBERS = 1 << 22  # stored numbers of vectors per block, about 64 MB with copies

Reference = TypeVar("Reference", bound="EmbeddedShard | ShardReference")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """File ``index`` of a side's sentences ``corpus``, with facts of the side."""

    side: str
    index: int
    rows: int
    corpus: Artefact

    @property
    def name(self) -> str:
        """The name of its folder in later stages."""
        return layout.shard_name(self.side, self.index)

    @property
    def digest(self) -> str:
        """The SHA-256 of its file of sentences."""
        return self.corpus.files[layout.shard_file(self.index)]

    @property
    def _file(self) -> Path:
        return self.corpus.file(layout.shard_file(self.index))

    def read(self, columns: list[str]) -> pa.Table:
        """Read columns of its sentences, ``row``, ``id``, ``doc`` or ``text``."""
        return pq.read_table(self._file, columns=columns)

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Read columns like ``read``, at most ``rows`` sentences at a time."""
        with pq.ParquetFile(self._file) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)

    def text_bytes(self) -> int:
        """Estimate the bytes that its sentences take in memory."""
        metadata = pq.read_metadata(self._file)
        return sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))

    def row_ids(self) -> IntArray:
        """Return the rows of its sentences in the corpus, ascending."""
        return self.read(["row"])["row"].to_numpy()


@dataclass(frozen=True, kw_only=True)
class EmbeddedShard:
    """A shard and its sealed vectors.

    ``rows.npy`` is int64 (n,) and ``vectors.npy`` (n, D). A pair uses only the ``columns`` of a
    joined encoder's vectors, or all without ``columns``.
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
        """Return the documents of the sentences that have a vector."""
        sentences = self.shard.read(["row", "doc"])
        has_vector = np.isin(sentences["row"].to_numpy(), self.row_ids())
        return sentences["doc"].combine_chunks().filter(pa.array(has_vector))

    @property
    def content(self) -> list[object]:
        """The identity of its rows and vectors."""
        files = self.vectors.files
        return [files[layout.ROWS], files[layout.VECTORS], *self.columns]

    @property
    def dim(self) -> int:
        """The number of dimensions of a vector."""
        return sum(stop - start for start, stop, _ in self.columns) or int(self._stored().shape[1])

    def unit_vectors(self) -> Matrix:
        """Return its vectors as unit rows."""
        units = np.empty((len(self), self.dim), dtype=np.float32)
        size = max(1, BLOCK_NUMBERS // self.dim)
        for start in range(0, len(units), size):
            block = slice(start, start + size)
            unit_rows(self.read(block), out=units[block])
        return units

    def unit_blocks(self) -> Iterator[Matrix]:
        """Yield its vectors as unit rows, in blocks that reuse memory."""
        size = max(1, 4 * BLOCK_NUMBERS // self.dim)
        for start in range(0, len(self), size):
            yield unit_rows(self.read(slice(start, start + size)))

    def read_units(self, rows: IntArray, *, out: Matrix, places: IntArray) -> None:
        """Read vectors at ``rows`` into the ``places`` of unit rows ``out``."""
        if self.columns:
            unit_rows(self.read(rows), out, places=places)
        else:  # without a copy
            unit_rows(self._stored(), out, rows=rows, places=places)

    def read(self, rows: Rows) -> NDArray[np.floating]:
        """Read the vectors at ``rows`` from disk."""
        return take_columns(take_rows(self._stored(), rows), self.columns)

    def _stored(self) -> NDArray[np.floating]:
        """Map the file once more, because pages that were read stay in memory."""
        return np.load(self.vectors.file(layout.VECTORS), mmap_mode="r")


class SideVectors:
    """A side's vectors, numbered through shards that begin at ``starts``."""

    def __init__(self, shards: Sequence[EmbeddedShard]) -> None:
        self._shards = shards
        self.starts = [0, *accumulate(map(len, shards))]

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def dim(self) -> int:
        """The number of dimensions of a vector."""
        return self._shards[0].dim

    def take(self, positions: IntArray, *, places: IntArray | None = None) -> Matrix:
        """Read unit rows (P, D) at ascending positions, in order or at ``places``."""
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
        """Yield each shard with positions, its start, and their slice."""
        parts = pairwise(np.searchsorted(positions, self.starts))
        for embedded, start, (first, last) in zip(self._shards, self.starts, parts, strict=False):
            if first < last:
                yield embedded, start, slice(first, last)


@dataclass(frozen=True, kw_only=True)
class EmbeddedSide:
    """A side's shards, its search method, and the centroids of a cell join."""

    name: str
    method: CorpusMethod
    shards: Sequence[EmbeddedShard]
    cells: Artefact | None


@dataclass(frozen=True, kw_only=True)
class ShardReference:
    """A reference that belongs to a shard with vectors."""

    embedded: EmbeddedShard

    @property
    def shard(self) -> Shard:
        """The shard itself."""
        return self.embedded.shard


@dataclass(frozen=True, kw_only=True)
class SearchableShard(ShardReference):
    """A shard with the method to search it, and its index or cells, if any.

    Before ``fill_index``, ``index`` is its side's trained, empty index, or the centroids of cells.
    """

    method: CorpusMethod
    index: Artefact | None


@dataclass(frozen=True, kw_only=True)
class SearchTile:
    """A group of source shards and a group of target shards to search.

    In a cell join both groups are whole sides, and the tile is a range of ``cells`` with ``floors``
    from the join of nearest cells. ``part`` is its number and their total, such as ``2/6``.
    """

    sources: Sequence[SearchableShard]
    targets: Sequence[SearchableShard]
    method: Method
    part: str = ""
    cells: range | None = None
    floors: Sequence[Artefact] = ()

    @property
    def scope(self) -> str:
        """The scope that is searched, one of ``SCOPES``."""
        return layout.DOCUMENT if isinstance(self.method, PairedDocuments) else layout.CORPUS

    @property
    def first(self) -> tuple[int, int]:
        """The indices of both groups' first shards, which name its folder."""
        return self.sources[0].shard.index, self.targets[0].shard.index

    @property
    def name(self) -> str:
        """A name that no other tile has."""
        return f"{self.scope} {self.first} {self.cells or ''}"


@dataclass(frozen=True, kw_only=True)
class RecallSample:
    """Rows of a side to search exactly in all shards of the other side."""

    shards: Sequence[EmbeddedShard]
    others: Sequence[EmbeddedShard]

    @property
    def name(self) -> str:
        """A name that no other sample or tile has."""
        return f"recall of {self.shards[0].shard.side}"


@dataclass(frozen=True, kw_only=True)
class TileNeighbours(ShardReference):
    """A shard's neighbours in ``others``, out of the other side's shards."""

    others: range
    total: int
    scope: str
    tile: Artefact
    k: int  # most neighbours of a row in all tiles


@dataclass(frozen=True, kw_only=True)
class PartialNeighbours(ShardReference):
    """Neighbours of some of a shard's rows, ``part`` of an artefact's lists."""

    part: range
    artefact: Artefact

    def load(self) -> tuple[NDArray[np.int32], Neighbours]:
        """Load the positions of P rows in the shard, and their neighbours."""
        side, part = self.shard.side, slice(self.part.start, self.part.stop)
        names = layout.places_file(side), *layout.list_files(side)
        files = (np.load(self.artefact.file(name), mmap_mode="r") for name in names)
        places, ids, cosines = (np.array(file[part]) for file in files)
        return places, Neighbours(ids=ids, cosines=cosines)


@dataclass(frozen=True, kw_only=True)
class CellNeighbours(PartialNeighbours):
    """A shard's neighbours in a range of ``cells``, out of ``total`` cells."""

    cells: range
    total: int
    k: int  # most neighbours of a row in all tiles


@dataclass(frozen=True, kw_only=True)
class SampledNeighbours(PartialNeighbours):
    """The exact neighbours of a sample of a shard's rows."""


@dataclass(frozen=True, kw_only=True)
class IndexLookup(ShardReference):
    """A shard to look up in the index of a shard of the other side."""

    other: SearchableShard


NeighbourPart: TypeAlias = TileNeighbours | CellNeighbours | IndexLookup | SampledNeighbours


@dataclass(frozen=True, kw_only=True)
class ShardNeighbours(ShardReference):
    """A shard's sealed neighbours by scope, as rows of the other corpus."""

    neighbours: Mapping[str, Artefact]

    @property
    def content(self) -> list[object]:
        """The identity of the neighbours of all scopes."""
        return [sorted(artefact.files.items()) for artefact in self.neighbours.values()]

    def load(self, scope: str) -> Neighbours:
        """Load the neighbours of the rows of ``embedded.row_ids()``."""
        return load_list(self.neighbours[scope].file, self.shard.side)


@dataclass(frozen=True, kw_only=True)
class DocumentBatch:
    """Part ``index`` of ``total`` of the document pairs, and its beads."""

    index: int
    total: int
    shards: Sequence[ShardNeighbours]
    beads: Artefact | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenPairs:
    """The chosen pairs, sealed best first, and all neighbours.

    ``merges`` has the rows that a row represents in monotone alignments, ``lines`` the lines of
    rated pairs, ``identical`` the pairs with the same text on both sides, and ``rejected`` the
    pairs that filters rejected.
    """

    pairs: Artefact
    shards: Sequence[ShardNeighbours]
    merges: Artefact | None = None
    lines: Artefact | None = None
    identical: Artefact | None = None
    rejected: Artefact | None = None

    @property
    def merges_key(self) -> Mapping[str, str]:
        """The digest of ``merges`` for ``content_key``, empty without merges."""
        return {"merges": self.merges.files[layout.MERGES]} if self.merges else {}

    def of_side(self, side: str) -> list[ShardNeighbours]:
        """Return the neighbours of a side's shards."""
        return [neighbours for neighbours in self.shards if neighbours.shard.side == side]


@dataclass(frozen=True, kw_only=True)
class PairBatch:
    """``rows`` of the chosen pairs, scored if ``usual`` has run statistics."""

    index: int
    total: int
    rows: range
    chosen: ChosenPairs
    usual: Artefact | None
    scores: Artefact | None = None


def element_name(element: object) -> str:
    """Return an element's name in its stage, for a group the least of them."""
    if isinstance(element, list):
        return min(map(element_name, element))
    if isinstance(element, str):
        return element
    element = getattr(element, "shard", element)
    return str(getattr(element, "name", getattr(element, "index", "")))


def tile_list(embedded: EmbeddedShard) -> str:
    """Return the name of a shard's list in its tiles."""
    return f"{embedded.shard.side}.{embedded.shard.index:05d}"


def save_list(save: Callable[[str, NDArray], None], name: str, neighbours: Neighbours) -> None:
    """Save neighbours by name with ``save``, as two arrays."""
    ids, cosines = layout.list_files(name)
    save(ids, neighbours.ids)
    save(cosines, neighbours.cosines)


def load_list(file: Callable[[str], Path], name: str) -> Neighbours:
    """Load neighbours by name from the paths that ``file`` returns."""
    ids, cosines = (np.load(file(part)) for part in layout.list_files(name))
    return Neighbours(ids=ids, cosines=cosines)


def to_row_ids(neighbours: Neighbours, rows: IntArray) -> Neighbours:
    """Replace the neighbours' positions by their ``rows`` in the other corpus."""
    rows = np.append(rows, NO_NEIGHBOUR)  # -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)


def save_row_neighbours(
    draft: Draft, vectors: SideVectors, side: str, positions: IntArray, neighbours: Neighbours
) -> list[int]:
    """Save neighbours of ascending positions, and return each shard's start."""
    starts = np.searchsorted(positions, vectors.starts)
    shards = np.repeat(vectors.starts[:-1], np.diff(starts))
    draft.array(layout.places_file(side), (positions - shards).astype(np.int32))
    save_list(draft.array, side, neighbours)
    return starts.tolist()


def shard_parts(
    saved: Artefact, shards: Iterable[EmbeddedShard]
) -> list[tuple[EmbeddedShard, range, Artefact]]:
    """Return each shard's range of rows that ``save_row_neighbours`` saved.

    References drop the fact ``starts``, which grows with the number of shards.
    """
    starts, bare = saved.facts["starts"], replace(saved, facts={})
    return [
        (shard, range(*starts[shard.shard.side][shard.shard.index : shard.shard.index + 2]), bare)
        for shard in shards
    ]


def collect_side(references: Iterable[Reference], side: str) -> list[Reference]:
    """Return the references to a side's shards, in order.

    Raises:
        ValueError: A shard has no reference, or several.
    """
    ordered = sorted(
        (reference for reference in references if reference.shard.side == side),
        key=lambda reference: reference.shard.index,
    )
    expected = ordered[0].shard.corpus.facts["shards"] if ordered else 1
    check_complete([reference.shard.index for reference in ordered], expected, f"{side} shards")
    return ordered


def collect_sides(references: Iterable[Reference]) -> dict[str, list[Reference]]:
    """Return the references to both sides' shards, like ``collect_side``."""
    return {side: collect_side(references, side) for side in layout.SIDES}


def check_complete(indices: Sequence[int], expected: int, unit: str) -> None:
    """Check that ascending ``indices`` are complete.

    Raises:
        ValueError: An index is missing or repeated.
    """
    if list(indices) != list(range(expected)):
        raise ValueError(
            f"--runner lost or repeated work: received {len(indices)} references for {expected} "
            f"{unit}; use another runner"
        )
