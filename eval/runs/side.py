"""One corpus of a finished run, of which only what is asked for is read.

Sentences come from the row groups that hold them, arrays are mapped into memory. A file is compared
with its seal (SHA-256) when it is first read, and files that nothing is read from are not.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eval.metrics.bucc import Ids
from miner.arrays import Columns, IntArray, Neighbours, take_columns
from miner.choices import MONOTONE
from miner.storage import layout
from miner.storage.artefacts import Artefact, open_artefact
from miner.storage.documents.sentences import PLACE
from miner.storage.pair_tables import Merges, joined_texts, list_offsets

Rows = Sequence[int] | IntArray

KEPT_GROUPS = 32  # row groups of sentences in memory


class Sharded:
    """The rows of an array that lie in the files of several shards, mapped into memory."""

    def __init__(self, artefacts: Sequence[Artefact], file: str) -> None:
        self._artefacts, self._file = artefacts, file

    @cached_property
    def parts(self) -> list[NDArray[Any]]:
        """The rows of each shard."""
        return [np.load(one.checked(self._file), mmap_mode="r") for one in self._artefacts]

    @cached_property
    def starts(self) -> IntArray:
        """The first row of each shard, and the end of the last."""
        return np.cumsum([0, *map(len, self.parts)])

    def all(self) -> NDArray[Any]:
        """Return all rows, in memory where there are several shards."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def take(self, positions: Rows) -> NDArray[Any]:
        """Return the rows at some positions, at least one."""
        shards = np.searchsorted(self.starts, positions, side="right") - 1
        places = zip(shards, positions - self.starts[shards], strict=True)
        return np.stack([self.parts[shard][place] for shard, place in places])


class Side:
    """The unique sentences of a corpus by row of the file, and what was searched of them.

    Rows that have a vector are *searched*; a position is a row's place among them.
    """

    def __init__(self, work: layout.WorkFolder, name: str, summary: Mapping[str, Any]) -> None:
        options = summary["options"]
        self.name, self.path, self._are_unique = name, summary[name]["path"], False
        self._columns = [Columns(*part) for part in summary[name].get("columns", ())]
        self._corpus = open_artefact(work.sentences(name))
        self._shards = range(len(self._corpus.facts["shards"]))
        embedded = [open_artefact(work.embeddings(name, index)) for index in self._shards]
        self._rows = Sharded(embedded, layout.ROWS)
        self._vectors = Sharded(embedded, layout.VECTORS)
        names = [layout.shard_name(name, index) for index in self._shards]
        self._scope = options["scope"]
        self._margin_scope = options["margin_scope"] or self._scope
        self._nearest: dict[str, list[Sharded]] = {}
        for scope in {self._scope, self._margin_scope}:
            lists = [open_artefact(work.neighbours(shard, scope)) for shard in names]
            self._nearest[scope] = [Sharded(lists, file) for file in layout.list_files(name)]
        self._merges = None
        if options.get("alignment") == MONOTONE:
            self._merges = Merges(open_artefact(work.pairs).checked(layout.MERGES), name)
        self._group = lru_cache(maxsize=KEPT_GROUPS)(self._read_group)

    def text(self, row: int) -> str:
        """Return the sentence at a row of the file."""
        return self.texts([row])[0]

    def id(self, row: int) -> str:
        """Return the id of the sentence at a row."""
        return self.ids([row])[0]

    def texts(self, rows: Rows) -> list[str]:
        """Return the sentences at rows, in their order."""
        return self._column("text", rows)

    def ids(self, rows: Rows) -> list[str]:
        """Return the ids of the sentences at rows, in their order."""
        return self._column("id", rows)

    def docs(self, rows: Rows) -> list[str]:
        """Return the documents of the sentences at rows, in their order; "" where there is none."""
        return [doc or "" for doc in self._column("doc", rows)]

    def context(self, row: int) -> tuple[str, str]:
        """Return the sentences before and after that at a row, in its document.

        Either is "" where there is none, or where it was left out; both are without documents.
        """
        before, after = self._texts_in(np.array([row - 1, row + 1]), 2 * self.docs([row]))
        return before, after

    def pair_contexts(self, rows: Rows) -> tuple[list[str], list[str]]:
        """Return the sentences before and after pairs at rows, as ``context`` does."""
        each, starts = self._merged(rows)
        docs = self.docs(rows)
        before, after = each[starts[:-1]] - 1, each[starts[1:] - 1] + 1
        return self._texts_in(before, docs), self._texts_in(after, docs)

    def _texts_in(self, rows: IntArray, docs: Sequence[str]) -> list[str]:
        """Return the sentence at each row, which may be of a repeated one, if in its document."""
        there = np.zeros(len(rows), dtype=np.bool_)
        for table, places in self._parts(rows):
            there[places] = np.isin(rows[places], table["row"].to_numpy())
        own, others = rows[there], pa.array(rows[~there])
        homes = {row: (row, doc) for row, doc in zip(own.tolist(), self.docs(own), strict=True)}
        for batch in self._duplicates.iter_batches(columns=["row", "id", "first_row"]):
            for one in batch.filter(pc.is_in(batch["row"], value_set=others)).to_pylist():
                homes[one["row"]] = one["first_row"], one["id"].rpartition(PLACE)[0]
        found = [homes.get(row, (row, "")) for row in rows.tolist()]
        inside = [bool(doc) and doc == home for (_, home), doc in zip(found, docs, strict=True)]
        texts = np.full(len(rows), "", dtype=object)
        texts[inside] = self.texts([row for row, _ in itertools.compress(found, inside)])
        return list(texts)

    def _merged(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Return all rows that pairs at rows are made of, and where each pair's begin and end."""
        if self._merges is None:
            return np.asarray(rows, dtype=np.int64), np.arange(len(rows) + 1)
        lists = self._merges.rows_of(pa.array(rows, pa.int64()))
        return lists.flatten().to_numpy(), list_offsets(lists)

    def pair_texts(self, rows: Rows) -> list[str]:
        """Return the texts of pairs at rows: of several sentences where these were merged."""
        if self._merges is None:
            return self.texts(rows)
        each, starts = self._merged(rows)
        return joined_texts(self.texts(each), starts)

    def pair_ids(self, rows: Rows) -> list[list[str]]:
        """Return the ids of what pairs at rows are made of."""
        each, starts = self._merged(rows)
        ids = self.ids(each)
        return [ids[first:last] for first, last in itertools.pairwise(starts.tolist())]

    def all_ids(self, rows: Rows, lines: Rows | None = None) -> list[Ids]:
        """Return each row's ids with duplicates, the id of its line first."""
        self.check_ids()
        ids = []
        lines = rows if lines is None else lines
        for row, line, first in zip(rows, lines, self.ids(rows), strict=True):
            names = {int(row): first, **self._repeats.get(int(row), {})}
            own = names.pop(int(line))
            ids.append((own, *names.values()))
        return ids

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the row of the sentence that each id names or repeats, None where none does."""
        self.check_ids()
        found: dict[str, int] = {}
        wanted = pa.array(ids, pa.string())
        for file in (*self._files, self._duplicates):
            column = "first_row" if file is self._duplicates else "row"
            for batch in file.iter_batches(columns=[column, "id"]):
                known = batch.filter(pc.is_in(batch["id"], value_set=wanted))
                found |= zip(known["id"].to_pylist(), known[column].to_pylist(), strict=True)
        return [found.get(name) for name in ids]

    def check_ids(self) -> None:
        """Refuse a run of an earlier version whose ids are not unique."""
        if self._corpus.facts.get("unique_ids") or self._are_unique:
            return
        tables = (file.read(columns=["id"]) for file in (*self._files, self._duplicates))
        ids = pa.concat_tables(tables)["id"]
        counts = ids.value_counts() if pc.count_distinct(ids).as_py() < len(ids) else ()
        for each in counts:
            if each["counts"].as_py() > 1:
                raise ValueError(
                    f"{self.path}: the {self.name} id {each['values'].as_py()!r} comes more than "
                    "once; give each record its own id, and run the command again"
                )
        self._are_unique = True

    @property
    def first_id(self) -> str:
        """The id of the first sentence."""
        return str(self._group(0, 0)["id"][0])

    @cached_property
    def searched(self) -> IntArray:
        """The rows that have a vector: int64 (N,), ascending."""
        return self._rows.all()

    def positions(self, rows: Rows) -> IntArray:
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
        ids, cosines = (lists.all() for lists in self._nearest[self._scope])
        return Neighbours(ids=ids, cosines=cosines)

    def neighbours_at(self, positions: Rows) -> Neighbours:
        """Return the candidates of some positions, at least one."""
        return self._lists_at(self._scope, positions)

    def means_at(self, positions: Rows) -> NDArray[np.float64]:
        """Return what margins are measured against at some positions, at least one: float64."""
        return self._lists_at(self._margin_scope, positions).means()

    def _lists_at(self, scope: str, positions: Rows) -> Neighbours:
        ids, cosines = (lists.take(positions) for lists in self._nearest[scope])
        return Neighbours(ids=ids, cosines=cosines)

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the searched rows: float32 (N, D)."""
        return take_columns(self._vectors.all(), self._columns).astype(np.float32, copy=False)

    @cached_property
    def _files(self) -> list[pq.ParquetFile]:
        names = map(layout.shard_file, self._shards)
        return [pq.ParquetFile(self._corpus.checked(name)) for name in names]

    @cached_property
    def _duplicates(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._corpus.checked(layout.DUPLICATES))

    @cached_property
    def _repeats(self) -> dict[int, dict[int, str]]:
        """The rows and ids of duplicates by their first row."""
        repeats: defaultdict[int, dict[int, str]] = defaultdict(dict)
        table = self._duplicates.read(columns=["first_row", "row", "id"])
        for first, row, name in zip(*(column.to_pylist() for column in table), strict=True):
            repeats[first][row] = name
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

    def _column(self, name: str, rows: Rows) -> list[str]:
        wanted = np.asarray(rows, dtype=np.int64)
        values = np.empty(len(wanted), dtype=object)
        for table, places in self._parts(wanted):
            found = np.searchsorted(table["row"].to_numpy(), wanted[places])
            values[places] = table[name].take(found).to_pylist()
        return list(values)

    def _parts(self, wanted: IntArray) -> Iterator[tuple[pa.Table, IntArray]]:
        """Yield each row group that some rows would be in, and the places of these."""
        order = np.argsort(wanted, kind="stable")
        firsts = [first for first, _, _ in self._groups]
        bounds = np.searchsorted(wanted[order], [*firsts, np.iinfo(np.int64).max]).tolist()
        for (_, *group), (start, end) in zip(self._groups, itertools.pairwise(bounds), strict=True):
            if start < end:
                yield self._group(*group), order[start:end]
