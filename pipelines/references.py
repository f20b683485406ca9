"""References that stages pass to each other, to data in sealed artefacts.

A "row" is the number of a record in its corpus, a "position" that of a vector in its shard or side.
Both count from 0. Their arrays are int64 unless documented otherwise.
"""

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
    Mask,
    Matrix,
    Neighbours,
    Rows,
    load_array,
    take_columns,
    take_rows,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.method import CorpusMethod, Method, PairedDocuments
from miner.storage import layout
from miner.storage.artefacts import Artefact, Draft
from miner.threads import blocks

READ_ROWS = 32_768  # sentences per batch that is read
BLOCK_NUMBERS = 1 << 22  # stored numbers of vectors per block, about 64 MB with copies

Reference = TypeVar("Reference", bound="EmbeddedShard | ShardReference")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A shard of the sentences of the side "source" or "target".

    ``index`` counts from 0, and ``rows`` is the number of sentences. ``corpus`` is the artefact of
    the side's sentences, with facts of the whole side. It lists only files that the shard needs.
    """

    side: str
    index: int
    rows: int
    corpus: Artefact

    @property
    def name(self) -> str:
        """The path of the shard in folders of stages, such as ``source/00001``."""
        return layout.shard_name(self.side, self.index)

    @property
    def digest(self) -> str:
        """The SHA-256 of the shard's file of sentences, in hexadecimal."""
        return self.corpus.files[layout.shard_file(self.index)]

    @property
    def _file(self) -> Path:
        return self.corpus.file(layout.shard_file(self.index))

    def read(self, columns: list[str]) -> pa.Table:
        """Read ``columns`` (of row, id, doc and text) of all sentences."""
        return pq.read_table(self._file, columns=columns)

    def batches(self, columns: list[str], rows: int = READ_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield ``columns`` (of row, id, doc, text), ``rows`` or fewer at a time."""
        with pq.ParquetFile(self._file) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)

    def text_bytes(self) -> int:
        """Estimate the bytes of all columns in memory."""
        metadata = pq.read_metadata(self._file)
        return sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))

    def row_ids(self) -> IntArray:
        """Return the row of each sentence, int64 (``rows``,), ascending."""
        return self.read(["row"])["row"].to_numpy()


@dataclass(frozen=True, kw_only=True)
class EmbeddedShard:
    """The vectors of a shard's sentences, where ``len`` counts the vectors.

    Some sentences of ``shard`` may have none. ``vectors`` is the artefact, with the rows and all
    dimensions of vectors in their stored type. ``columns`` are ranges of dimensions to use, each
    with a weight, empty for all dimensions.
    """

    shard: Shard
    vectors: Artefact
    columns: tuple[Columns, ...] = ()

    def __len__(self) -> int:
        return self.shard.rows - sum(self.vectors.facts["dropped"].values())

    def row_ids(self) -> IntArray:
        """Return the row of each vector's sentence, int64 (vectors,), ascending."""
        return load_array(self.vectors.file(layout.ROWS))

    def docs(self) -> pa.Array:
        """Return each vector's document, strings (vectors,), "" if none."""
        sentences = self.shard.read(["row", "doc"])
        has_vector = np.isin(sentences["row"].to_numpy(), self.row_ids())
        return sentences["doc"].combine_chunks().filter(pa.array(has_vector))

    @property
    def content(self) -> list[object]:
        """JSON values that identify rows and used vectors, for ``content_key``."""
        files = self.vectors.files
        return [files[layout.ROWS], files[layout.VECTORS], *self.columns]

    @property
    def dim(self) -> int:
        """The number of dimensions of ``columns``, or of a vector without any."""
        return sum(stop - start for start, stop, _ in self.columns) or int(self.stored().shape[1])

    def unit_vectors(self) -> Matrix:
        """Return all n vectors of ``read``, of length 1, float32 (n, ``dim``)."""
        units = np.empty((len(self), self.dim), dtype=np.float32)
        for block in blocks(len(units), max(1, BLOCK_NUMBERS // self.dim)):
            unit_rows(self.read(block), out=units[block])
        return units

    def unit_blocks(self) -> Iterator[Matrix]:
        """Yield the rows of ``unit_vectors`` in order, in blocks."""
        for block in blocks(len(self), max(1, 4 * BLOCK_NUMBERS // self.dim)):
            yield unit_rows(self.read(block))

    def read(self, rows: Rows) -> NDArray[np.floating]:
        """Read P vectors, (P, ``dim``), multiplied by the columns' weights.

        ``rows`` are their positions in the shard, in any order, or a slice. Vectors are float32 if
        there are ``columns``, else as stored, a slice read-only. They are not scaled to length 1.
        """
        return take_columns(take_rows(self.stored(), rows), self.columns)

    def stored(self) -> NDArray[np.floating]:
        """Map all dimensions of the stored vectors, read-only, without weights."""
        return load_array(self.vectors.file(layout.VECTORS), mmap_mode="r")


class SideVectors:
    """The vectors of a side's ``shards``, which are one or more, in order.

    Positions count through all shards. ``starts`` lists each shard's first one, then the total.
    """

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
        """Read P unit vectors at ascending positions, float32 (P, ``dim``).

        Vector i becomes row ``places[i]`` of the result, by default i. ``places`` is a permutation.
        """
        units = np.empty((len(positions), self.dim), dtype=np.float32)
        places = np.arange(len(positions)) if places is None else places
        for embedded, start, part in self._parts(positions):
            rows = positions[part] - start
            if embedded.columns:
                unit_rows(embedded.read(rows), units, places=places[part])
            else:  # without a copy
                unit_rows(embedded.stored(), units, rows=rows, places=places[part])
        return units

    def row_ids(self, positions: IntArray) -> IntArray:
        """Return the sentences' rows at P ascending positions, int64 (P,)."""
        rows = np.empty_like(positions)
        for embedded, start, part in self._parts(positions):
            rows[part] = embedded.row_ids()[positions[part] - start]
        return rows

    def _parts(self, positions: IntArray) -> Iterator[tuple[EmbeddedShard, int, slice]]:
        parts = pairwise(np.searchsorted(positions, self.starts))
        for embedded, start, (first, last) in zip(self._shards, self.starts, parts, strict=False):
            if first < last:
                yield embedded, start, slice(first, last)


@dataclass(frozen=True, kw_only=True)
class ShardReference:
    """A base of references that belong to one shard with vectors."""

    embedded: EmbeddedShard

    @property
    def shard(self) -> Shard:
        """The shard itself."""
        return self.embedded.shard


@dataclass(frozen=True, kw_only=True)
class SearchableShard(ShardReference):
    """A shard with vectors, and the method to search it.

    ``index`` is the artefact of the shard's FAISS index or vectors' cells, None if the search is
    exact or the index not trained. Before ``fill_index``, it has all centroids or an empty index.
    """

    method: CorpusMethod
    index: Artefact | None


@dataclass(frozen=True, kw_only=True)
class SearchTile:
    """A group of source shards and a group of target shards to compare.

    ``part`` has the numbers of the tile and of all tiles, such as ``2/6``, or is empty. ``cells``
    are those to compare in a cell join of whole sides, None for other searches. ``floors`` are
    artefacts with lower bounds of rows' k-th cosines, from ``join_nearest``.
    """

    sources: Sequence[SearchableShard]
    targets: Sequence[SearchableShard]
    method: Method
    part: str = ""
    cells: range | None = None
    floors: Sequence[Artefact] = ()

    @property
    def scope(self) -> str:
        """The scope of the search, "corpus" or "document"."""
        return layout.DOCUMENT if isinstance(self.method, PairedDocuments) else layout.CORPUS

    @property
    def first(self) -> tuple[int, int]:
        """The indices of the first source shard and the first target shard."""
        return self.sources[0].shard.index, self.targets[0].shard.index

    @property
    def name(self) -> str:
        """A name that is unique among the tiles of a stage."""
        return f"{self.scope} {self.first} {self.cells or ''}"


@dataclass(frozen=True, kw_only=True)
class RecallSample:
    """A side whose sample is searched exactly, and the other side's shards."""

    shards: Sequence[EmbeddedShard]
    others: Sequence[EmbeddedShard]

    @property
    def name(self) -> str:
        """A name that is unique among the samples and tiles of a stage."""
        return f"recall of {self.shards[0].shard.side}"


@dataclass(frozen=True, kw_only=True)
class SavedNeighbours(ShardReference):
    """Neighbours of a shard's vectors, saved by a tile or a sample.

    ``part`` is the range of their lists in the artefact, None if it has a list of every vector.
    """

    artefact: Artefact
    part: range | None = None

    def load(self) -> tuple[IntArray, Neighbours]:
        """Load P ascending positions in the shard, integers, and their neighbours.

        Ids are rows of the other side or, for ``SampledNeighbours``, positions in it.
        """
        if self.part is None:
            lists = load_list(self.artefact.file, tile_list(self.embedded))
            return np.arange(len(self.embedded)), lists
        side, part = self.shard.side, slice(self.part.start, self.part.stop)
        names = layout.places_file(side), *layout.list_files(side)
        files = (load_array(self.artefact.file(name), mmap_mode="r") for name in names)
        places, ids, cosines = (np.array(file[part]) for file in files)
        return places, Neighbours(ids=ids, cosines=cosines)


@dataclass(frozen=True, kw_only=True)
class TileNeighbours(SavedNeighbours):
    """A shard's neighbours in some shards, or cells, of the other side.

    ``others`` are the indices of these shards, or the cells, out of ``total``. ``scope`` is
    "corpus" or "document". ``k`` is the length of a row's list after all tiles are merged.
    """

    others: range
    total: int
    scope: str
    k: int


@dataclass(frozen=True, kw_only=True)
class SampledNeighbours(SavedNeighbours):
    """The exact neighbours of a sample of a shard's rows."""


@dataclass(frozen=True, kw_only=True)
class IndexLookup(ShardReference):
    """A shard to search in the FAISS index of a shard of the other side."""

    other: SearchableShard


NeighbourPart: TypeAlias = TileNeighbours | IndexLookup | SampledNeighbours


@dataclass(frozen=True, kw_only=True)
class ShardNeighbours(ShardReference):
    """A shard's neighbours, as rows of the other side, in artefacts by scope."""

    neighbours: Mapping[str, Artefact]

    @property
    def content(self) -> list[object]:
        """JSON values that identify the neighbours, for ``content_key``."""
        return [sorted(artefact.files.items()) for artefact in self.neighbours.values()]

    def load(self, scope: str) -> Neighbours:
        """Load each vector's list in "corpus" or "document", or raise KeyError."""
        return load_list(self.neighbours[scope].file, self.shard.side)


@dataclass(frozen=True, kw_only=True)
class DocumentBatch:
    """A batch of document pairs, number ``index``, from 0, of ``total``.

    ``shards`` are all of both sides. ``beads`` has the aligned sentences, None before alignment.
    """

    index: int
    total: int
    shards: Sequence[ShardNeighbours]
    beads: Artefact | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenPairs:
    """The chosen pairs of a run, with artefacts about them.

    Attributes:
        pairs: The artefact of the pairs, best first.
        shards: The shards of both sides with their neighbours.
        merges: The rows of each merged sentence, None without monotone alignment.
        lines: The array of ``distinct_pairs`` with their lines, None without ``adit rate``.
        identical: All judged pairs, with a file of those dropped as identical; None if not judged.
        rejected: Pairs that filters rejected, None without filters.
    """

    pairs: Artefact
    shards: Sequence[ShardNeighbours]
    merges: Artefact | None = None
    lines: Artefact | None = None
    identical: Artefact | None = None
    rejected: Artefact | None = None

    @property
    def merges_key(self) -> Mapping[str, str]:
        """Keywords of ``content_key`` with the digest of ``merges``, none without."""
        return {"merges": self.merges.files[layout.MERGES]} if self.merges else {}

    def of_side(self, side: str) -> list[ShardNeighbours]:
        """Return the shards of the side "source" or "target", in order."""
        return [neighbours for neighbours in self.shards if neighbours.shard.side == side]


@dataclass(frozen=True, kw_only=True)
class PairBatch:
    """A batch of pairs to be scored, number ``index``, from 0, of ``total``.

    ``rows`` are the pairs' positions in ``chosen.pairs``. ``usual`` is the artefact of run
    statistics, None if no judge scores pairs. ``scores`` is that of scored pairs, None before that.
    """

    index: int
    total: int
    rows: range
    chosen: ChosenPairs
    usual: Artefact | None
    scores: Artefact | None = None


def element_name(element: object) -> str:
    """Return the name of an element, unique in its stage and part of the job.

    A string is its own name. A list, not empty, has its elements' first name in alphabetical order.
    Any other element has the name of its shard, or its own, or its index, or "" without these.
    """
    if isinstance(element, list):
        return min(map(element_name, element))
    if isinstance(element, str):
        return element
    element = getattr(element, "shard", element)
    return str(getattr(element, "name", getattr(element, "index", "")))


def tile_list(embedded: EmbeddedShard) -> str:
    """Return a shard's name in the artefact of a tile, such as source.00001."""
    return f"{embedded.shard.side}.{embedded.shard.index:05d}"


def save_list(save: Callable[[str, NDArray], None], name: str, neighbours: Neighbours) -> None:
    """Save ids and cosines by ``save(file name, array)``, named by ``name``."""
    ids, cosines = layout.list_files(name)
    save(ids, neighbours.ids)
    save(cosines, neighbours.cosines)


def load_list(file: Callable[[str], Path], name: str) -> Neighbours:
    """Load neighbours from ``save_list``, by paths from ``file(file name)``."""
    ids, cosines = (load_array(file(part)) for part in layout.list_files(name))
    return Neighbours(ids=ids, cosines=cosines)


def find_rows(ids: IntArray, rows: IntArray) -> tuple[Mask, IntArray]:
    """Mask the ``rows`` in ascending ``ids``, and find their positions in it."""
    positions = np.minimum(np.searchsorted(ids, rows), max(0, len(ids) - 1))
    mask = ids[positions] == rows if len(ids) else np.zeros(rows.shape, dtype=np.bool_)
    return mask, positions[mask]


def to_row_ids(neighbours: Neighbours, rows: IntArray) -> Neighbours:
    """Return neighbours whose ids are rows, from ones with positions.

    ``rows`` (M,) is the row at each position of the other side. An id of -1 (no neighbour) stays.
    """
    rows = np.append(rows, NO_NEIGHBOUR)  # -1 stays -1
    return Neighbours(ids=rows[neighbours.ids], cosines=neighbours.cosines)


def save_row_neighbours(
    draft: Draft, vectors: SideVectors, side: str, positions: IntArray, neighbours: Neighbours
) -> list[int]:
    """Save the neighbours of vectors at ascending positions (P,) of a side.

    The result is the number of ``positions`` before each shard's first one, then P.
    """
    starts = np.searchsorted(positions, vectors.starts)
    shards = np.repeat(vectors.starts[:-1], np.diff(starts))
    draft.array(layout.places_file(side), (positions - shards).astype(np.int32))
    save_list(draft.array, side, neighbours)
    return starts.tolist()


def shard_parts(
    saved: Artefact, shards: Iterable[EmbeddedShard]
) -> list[tuple[EmbeddedShard, range, Artefact]]:
    """Divide the rows that ``save_row_neighbours`` saved among shards.

    The fact ``starts`` of ``saved`` must have that function's result for each side of ``shards``.
    Each shard, the range of its saved rows, and the artefact without facts are returned.
    """
    starts, bare = saved.facts["starts"], replace(saved, facts={})
    return [
        (shard, range(*starts[shard.shard.side][shard.shard.index : shard.shard.index + 2]), bare)
        for shard in shards
    ]


def collect_side(references: Iterable[Reference], side: str) -> list[Reference]:
    """Order a side's references, or raise ValueError if not one per shard."""
    ordered = [reference for reference in references if reference.shard.side == side]
    ordered.sort(key=lambda reference: reference.shard.index)
    expected = ordered[0].shard.corpus.facts["shards"] if ordered else 1
    check_complete([reference.shard.index for reference in ordered], expected, f"{side} shards")
    return ordered


def collect_sides(references: Iterable[Reference]) -> dict[str, list[Reference]]:
    """Return ``collect_side`` of each side by its name, source first."""
    return {side: collect_side(references, side) for side in layout.SIDES}


def check_complete(indices: Sequence[int], expected: int, unit: str) -> None:
    """Check that ``indices`` are 0 to ``expected`` - 1, in order.

    Raises:
        ValueError: An index is missing, repeated or not in order.
    """
    if list(indices) != list(range(expected)):
        raise ValueError(
            f"--runner lost or repeated work: received {len(indices)} references for {expected} "
            f"{unit}; use another runner"
        )
