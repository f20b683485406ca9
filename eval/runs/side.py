"""One corpus of a finished run, of which only what is asked for is read.

Sentences come from the row groups that hold them, arrays are mapped into memory. A file is compared
with its seal (SHA-256) when it is first read, and files that nothing is read from are not.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eval.metrics.bucc import Ids
from miner.arrays import Columns, Neighbours, take_columns
from miner.choices import MONOTONE
from miner.storage import layout
from miner.storage.artefacts import Artefact, open_artefact
from miner.storage.documents.sentences import PLACE
from miner.storage.pair_tables import Merges, joined_texts, list_offsets

KEPT_GROUPS = 32  # row groups of sentences in memory


class Side:
    """The unique sentences of a corpus by row of the file, and what was searched of them.

    Rows that have a vector are *searched*; a position is a row's place among them.
    """

    def __init__(self, work: layout.WorkFolder, name: str, summary: Mapping[str, Any]) -> None:
        options = summary["options"]
        self.name = name
        self._columns = [Columns(*part) for part in summary[name].get("columns", ())]
        self._corpus = open_artefact(work.sentences(name))
        indices = range(len(self._corpus.facts["shards"]))
        self._embedded = [open_artefact(work.embeddings(name, index)) for index in indices]
        shards = [layout.shard_name(name, index) for index in indices]
        self._scope = options["scope"]
        self._margin_scope = options["margin_scope"] or self._scope
        self._lists = {
            scope: [open_artefact(work.neighbours(shard, scope)) for shard in shards]
            for scope in {self._scope, self._margin_scope}
        }
        is_merged = options.get("alignment") == MONOTONE
        self._merges = (
            Merges(open_artefact(work.pairs).checked(layout.MERGES), name) if is_merged else None
        )
        self._group = lru_cache(maxsize=KEPT_GROUPS)(self._read_group)

    def text(self, row: int) -> str:
        """Return the sentence at a row of the file."""
        return self.texts([row])[0]

    def id(self, row: int) -> str:
        """Return the id of the sentence at a row."""
        return self.ids([row])[0]

    def texts(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return the sentences at rows, in their order."""
        return self._column("text", rows)

    def ids(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return the ids of the sentences at rows, in their order."""
        return self._column("id", rows)

    def docs(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return the documents of the sentences at rows, in their order; "" where there is none."""
        return [doc or "" for doc in self._column("doc", rows)]

    def context(self, row: int) -> tuple[str, str]:
        """Return the sentences before and after that at a row, in its document.

        Either is "" where there is none, or where it was left out; both are without documents.
        """
        docs = self.docs([row])
        before, after = (self._texts_in([near], docs)[0] for near in (row - 1, row + 1))
        return before, after

    def pair_contexts(self, rows: Sequence[int] | NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Return the sentences before and after pairs at rows, as ``context`` does."""
        first = last = np.asarray(rows, dtype=np.int64)
        if self._merges is not None and len(first):
            lists = self._merges.rows_of(pa.array(first))
            offsets = list_offsets(lists)
            last = lists.flatten().to_numpy()[offsets[1:] - 1]
        docs = self.docs(first)
        return self._texts_in(first - 1, docs), self._texts_in(last + 1, docs)

    def _texts_in(self, rows: Sequence[int] | NDArray[np.int64], docs: Sequence[str]) -> list[str]:
        """Return the sentence at each row, which may be of a repeated one, if in its document."""
        wanted, owners = np.asarray(rows, dtype=np.int64), np.array(docs, dtype=object)
        texts = np.full(len(wanted), "", dtype=object)
        there = np.zeros(len(wanted), dtype=np.bool_)
        for table, places in self._parts(wanted):
            there[places] = np.isin(wanted[places], table["row"].to_numpy())
        own = np.flatnonzero(there)
        inside = np.array(self.docs(wanted[own]), dtype=object) == owners[own]
        texts[own[inside]] = self.texts(wanted[own[inside]])
        known: dict[int, dict[str, Any]] = {}
        columns = ["row", "id", "first_row"]
        for batch in self._duplicates.iter_batches(columns=columns):
            repeats = batch.filter(pc.is_in(batch["row"], value_set=pa.array(wanted[~there])))
            known |= {one["row"]: one for one in repeats.to_pylist()}
        for place in np.flatnonzero(~there).tolist():
            repeat = known.get(int(wanted[place]))
            if repeat and repeat["id"].rpartition(PLACE)[0] == owners[place]:
                texts[place] = self.text(repeat["first_row"])
        return ["" if not doc else text for text, doc in zip(texts, docs, strict=True)]

    def pair_texts(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return the texts of pairs at rows: of several sentences where these were merged."""
        if self._merges is None:
            return self.texts(rows)
        lists = self._merges.rows_of(pa.array(rows, pa.int64()))
        return joined_texts(self.texts(lists.flatten().to_numpy()), list_offsets(lists))

    def pair_ids(self, rows: Sequence[int] | NDArray[np.int64]) -> list[list[str]]:
        """Return the ids of what pairs at rows are made of."""
        if self._merges is None:
            return [[own] for own in self.ids(rows)]
        lists = self._merges.rows_of(pa.array(rows, pa.int64()))
        ids = self.ids(lists.flatten().to_numpy())
        return [ids[first:last] for first, last in pairwise(list_offsets(lists).tolist())]

    def all_ids(self, rows: Sequence[int] | NDArray[np.int64]) -> list[Ids]:
        """Return each row's id and those of its repetitions."""
        return [
            (first, *self._repeats.get(row, ()))
            for row, first in zip(np.asarray(rows).tolist(), self.ids(rows), strict=True)
        ]

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the row of the sentence that each id names or repeats, None where none does."""
        found: dict[str, int] = {}
        wanted = pa.array(ids, pa.string())
        files = [*((file, "row") for file in self._files), (self._duplicates, "first_row")]
        for file, column in files:
            for batch in file.iter_batches(columns=[column, "id"]):
                known = batch.filter(pc.is_in(batch["id"], value_set=wanted))
                found |= zip(known["id"].to_pylist(), known[column].to_pylist(), strict=True)
        return [found.get(name) for name in ids]

    @property
    def first_id(self) -> str:
        """The id of the first sentence."""
        return str(self._group(0, 0)["id"][0])

    @cached_property
    def searched(self) -> NDArray[np.int64]:
        """The rows that have a vector: int64 (N,), ascending."""
        return self._rows.all()

    def positions(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of rows, -1 of those that were not searched."""
        wanted = np.asarray(rows, dtype=np.int64)
        found = np.full(len(wanted), -1)
        for start, part in zip(self._rows.starts.tolist(), self._rows.parts, strict=False):
            if len(part):
                places = np.minimum(np.searchsorted(part, wanted), len(part) - 1)
                hits = part[places] == wanted
                found[hits] = start + places[hits]
        return found

    @cached_property
    def neighbours(self) -> Neighbours:
        """The candidates of each searched row in the other corpus, by row: N rows."""
        ids, cosines = self._nearest[self._scope]
        return Neighbours(ids=ids.all(), cosines=cosines.all())

    def neighbours_at(self, positions: Sequence[int] | NDArray[np.int64]) -> Neighbours:
        """Return the candidates of some positions, at least one."""
        ids, cosines = self._nearest[self._scope]
        return Neighbours(ids=ids.take(positions), cosines=cosines.take(positions))

    def means_at(self, positions: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what margins are measured against at some positions, at least one: float64."""
        ids, cosines = self._nearest[self._margin_scope]
        return Neighbours(ids=ids.take(positions), cosines=cosines.take(positions)).means()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the searched rows: float32 (N, D)."""
        stored = Sharded(self._embedded, layout.VECTORS).all()
        return take_columns(stored, self._columns).astype(np.float32, copy=False)

    @cached_property
    def _rows(self) -> "Sharded":
        return Sharded(self._embedded, layout.ROWS)

    @cached_property
    def _nearest(self) -> "dict[str, tuple[Sharded, Sharded]]":
        ids, cosines = layout.list_files(self.name)
        return {
            scope: (Sharded(lists, ids), Sharded(lists, cosines))
            for scope, lists in self._lists.items()
        }

    @cached_property
    def _files(self) -> list[pq.ParquetFile]:
        shards = range(len(self._corpus.facts["shards"]))
        return [pq.ParquetFile(self._corpus.checked(layout.shard_file(index))) for index in shards]

    @cached_property
    def _duplicates(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._corpus.checked(layout.DUPLICATES))

    @cached_property
    def _repeats(self) -> dict[int, list[str]]:
        repeats: defaultdict[int, list[str]] = defaultdict(list)
        table = self._duplicates.read(columns=["first_row", "id"])
        for row, name in zip(table["first_row"].to_pylist(), table["id"].to_pylist(), strict=True):
            repeats[row].append(name)
        return dict(repeats)

    @cached_property
    def _groups(self) -> list[tuple[int, int, int]]:
        """First row, shard and number of each row group, ascending."""
        return [
            (file.metadata.row_group(group).column(0).statistics.min, shard, group)
            for shard, file in enumerate(self._files)
            for group in range(file.num_row_groups)
        ]

    def _read_group(self, shard: int, group: int) -> pa.Table:
        return self._files[shard].read_row_group(group, columns=["row", "id", "doc", "text"])

    def _column(self, name: str, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        wanted = np.asarray(rows, dtype=np.int64)
        values = np.empty(len(wanted), dtype=object)
        for table, places in self._parts(wanted):
            found = np.searchsorted(table["row"].to_numpy(), wanted[places])
            values[places] = table[name].take(found).to_pylist()
        return list(values)

    def _parts(self, wanted: NDArray[np.int64]) -> Iterator[tuple[pa.Table, NDArray[np.int64]]]:
        """Yield each row group that some rows would be in, and the places of these."""
        order = np.argsort(wanted, kind="stable")
        firsts = [first for first, _, _ in self._groups]
        bounds = np.searchsorted(wanted[order], [*firsts, np.iinfo(np.int64).max])
        for (_, shard, group), start, end in zip(
            self._groups, bounds[:-1], bounds[1:], strict=True
        ):
            if start < end:
                yield self._group(shard, group), order[start:end]


class Sharded:
    """The rows of an array that lie in the files of several shards, mapped into memory."""

    def __init__(self, artefacts: Sequence[Artefact], file: str) -> None:
        self.parts = [np.load(artefact.checked(file), mmap_mode="r") for artefact in artefacts]
        self.starts = np.cumsum([0, *map(len, self.parts)])

    def all(self) -> NDArray[Any]:
        """Return all rows, in memory where there are several shards."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def take(self, positions: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows at some positions, at least one."""
        shards = np.searchsorted(self.starts, positions, side="right") - 1
        places = zip(shards, positions - self.starts[shards], strict=True)
        return np.stack([self.parts[shard][place] for shard, place in places])
