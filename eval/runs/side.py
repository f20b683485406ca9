"""One corpus of a finished run, whose files are read only as needed.

Sentences are read by row group, and arrays are memory-mapped, after a comparison of checksums.
Axes: ``N`` searched rows, ``D`` dim.
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
from miner.arrays import Columns, FloatArray, IntArray, Matrix, Neighbours, load_array, take_columns
from miner.choices import MONOTONE
from miner.storage import layout
from miner.storage.artefacts import Artefact, open_artefact
from miner.storage.documents.sentences import PLACE
from miner.storage.pair_tables import Merges, joined_texts, list_offsets

Rows = Sequence[int] | IntArray

KEPT_GROUPS = 32  # row groups of sentences in memory


class ShardedArray:
    """An array of all shards' rows, in order, memory-mapped when read.

    Each of ``artefacts`` has a ``.npy`` file called ``file``. If it changed, ValueError is raised.
    """

    def __init__(self, artefacts: Sequence[Artefact], file: str) -> None:
        self._artefacts, self._file = artefacts, file

    @cached_property
    def parts(self) -> list[NDArray[Any]]:
        """The rows of each shard, mapped into memory."""
        return [load_array(shard.checked(self._file), mmap_mode="r") for shard in self._artefacts]

    @cached_property
    def starts(self) -> IntArray:
        """The first position of each of S shards, and the end, int64 (S + 1,)."""
        return np.cumsum([0, *map(len, self.parts)])

    def all(self) -> NDArray[Any]:
        """Return all rows, mapped into memory if there is only one shard."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def take(self, positions: Rows) -> NDArray[Any]:
        """Return the rows at P > 0 positions, (P, ...), in their order."""
        shards = np.searchsorted(self.starts, positions, side="right") - 1
        offsets = zip(shards, positions - self.starts[shards], strict=True)
        return np.stack([self.parts[shard][offset] for shard, offset in offsets])


class Side:
    """The unique sentences of a finished run's corpus, and their neighbours.

    A row is the index, from 0, of a record in the corpus. Rows with a vector are *searched*. A
    position is the index of a row among the searched rows. Methods take rows of unique sentences,
    the first row for duplicates, and raise ``ValueError`` if a file of the run changed. ``work`` is
    the run's folder, ``summary`` its ``run.json``, and ``name`` "source" or "target".
    """

    def __init__(self, work: layout.WorkFolder, name: str, summary: Mapping[str, Any]) -> None:
        options = summary["options"]
        self.name, self.path, self._are_unique = name, summary[name]["path"], False
        self._columns = [Columns(*part) for part in summary[name].get("columns", ())]
        self._corpus = open_artefact(work.sentences(name))
        self._shards = range(len(self._corpus.facts["shards"]))
        embedded = [open_artefact(work.embeddings(name, index)) for index in self._shards]
        self._rows = ShardedArray(embedded, layout.ROWS)
        self._vectors = ShardedArray(embedded, layout.VECTORS)
        names = [layout.shard_name(name, index) for index in self._shards]
        self._scope = options["scope"]
        self._margin_scope = options["margin_scope"] or self._scope
        self._nearest: dict[str, list[ShardedArray]] = {}
        for scope in {self._scope, self._margin_scope}:
            lists = [open_artefact(work.neighbours(shard, scope)) for shard in names]
            self._nearest[scope] = [ShardedArray(lists, file) for file in layout.list_files(name)]
        self._merges = None
        if options.get("alignment") == MONOTONE:
            self._merges = Merges(open_artefact(work.pairs).checked(layout.MERGES), name)
        self._group = lru_cache(maxsize=KEPT_GROUPS)(self._read_group)

    def text(self, row: int) -> str:
        """Return the unique sentence at ``row``."""
        return self.texts([row])[0]

    def id(self, row: int) -> str:
        """Return the id of the unique sentence at ``row``."""
        return self.ids([row])[0]

    def texts(self, rows: Rows) -> list[str]:
        """Return the unique sentences at ``rows``, in their order."""
        return self._column("text", rows)

    def ids(self, rows: Rows) -> list[str]:
        """Return the ids of the unique sentences at ``rows``, in their order."""
        return self._column("id", rows)

    def docs(self, rows: Rows) -> list[str]:
        """Return the documents of unique sentences at ``rows``, "" for none."""
        return [doc or "" for doc in self._column("doc", rows)]

    def context(self, row: int) -> tuple[str, str]:
        """Return the sentences before and after a unique sentence's row.

        Either is "" if it is missing, rejected or in another document, or documents are unknown.
        """
        before, after = self._texts_in_docs(np.array([row - 1, row + 1]), 2 * self.docs([row]))
        return before, after

    def pair_contexts(self, rows: Rows) -> tuple[list[str], list[str]]:
        """Return sentences before and after pairs by first rows as in ``context``."""
        merged, starts = self._merged_rows(rows)
        docs = self.docs(rows)
        before, after = merged[starts[:-1]] - 1, merged[starts[1:] - 1] + 1
        return self._texts_in_docs(before, docs), self._texts_in_docs(after, docs)

    # The sentences of rows, which may be duplicates; "" if a row is outside its document.
    def _texts_in_docs(self, rows: IntArray, docs: Sequence[str]) -> list[str]:
        is_unique = np.zeros(len(rows), dtype=np.bool_)
        for table, places in self._row_groups(rows):
            is_unique[places] = np.isin(rows[places], table["row"].to_numpy())
        unique, others = rows[is_unique], pa.array(rows[~is_unique])
        unique_docs = zip(unique.tolist(), self.docs(unique), strict=True)
        homes = {row: (row, doc) for row, doc in unique_docs}
        for batch in self._duplicates.iter_batches(columns=["row", "id", "first_row"]):
            for record in batch.filter(pc.is_in(batch["row"], value_set=others)).to_pylist():
                homes[record["row"]] = record["first_row"], record["id"].rpartition(PLACE)[0]
        first_rows = [homes.get(row, (row, "")) for row in rows.tolist()]
        both_docs = zip((home for _, home in first_rows), docs, strict=True)
        inside = [bool(doc) and doc == home for home, doc in both_docs]
        texts = np.full(len(rows), "", dtype=object)
        texts[inside] = self.texts([row for row, _ in itertools.compress(first_rows, inside)])
        return list(texts)

    def _merged_rows(self, rows: Rows) -> tuple[IntArray, IntArray]:
        if self._merges is None:
            return np.asarray(rows, dtype=np.int64), np.arange(len(rows) + 1)
        lists = self._merges.rows_of(pa.array(rows, pa.int64()))
        return lists.flatten().to_numpy(), list_offsets(lists)

    def pair_texts(self, rows: Rows) -> list[str]:
        """Return pairs' texts, by first rows, merged by ``joined_texts``."""
        if self._merges is None:
            return self.texts(rows)
        merged, starts = self._merged_rows(rows)
        return joined_texts(self.texts(merged), starts)

    def pair_ids(self, rows: Rows) -> list[list[str]]:
        """Return the ids of each pair's sentences, by its first row, in order."""
        merged, starts = self._merged_rows(rows)
        ids = self.ids(merged)
        return [ids[first:last] for first, last in itertools.pairwise(starts.tolist())]

    def all_ids(self, rows: Rows, lines: Rows | None = None) -> list[Ids]:
        """Return the ids of each row and of all its duplicates.

        The first id is the row's or, if ``lines`` is not None, that of the record at the row's
        line, which may be a duplicate. A repeated id of the side raises ValueError.
        """
        self.check_ids()
        ids = []
        lines = rows if lines is None else lines
        for row, line, first in zip(rows, lines, self.ids(rows), strict=True):
            names = {int(row): first, **self._ids_of_duplicates.get(int(row), {})}
            line_id = names.pop(int(line))
            ids.append((line_id, *names.values()))
        return ids

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the row of each id, None if it is unknown or its record rejected.

        A duplicate's id has the row of its first occurrence. ``ids`` may have repeats, but repeated
        ids in the corpus raise ValueError.
        """
        self.check_ids()
        rows: dict[str, int] = {}
        id_array = pa.array(ids, pa.string())
        for file in (*self._files, self._duplicates):
            column = "first_row" if file is self._duplicates else "row"
            for batch in file.iter_batches(columns=[column, "id"]):
                matches = batch.filter(pc.is_in(batch["id"], value_set=id_array))
                rows |= zip(matches["id"].to_pylist(), matches[column].to_pylist(), strict=True)
        return [rows.get(name) for name in ids]

    def check_ids(self) -> None:
        """Check that ids are unique, which earlier versions did not ensure.

        Raises:
            ValueError: An id is repeated.
        """
        if self._corpus.facts.get("unique_ids") or self._are_unique:
            return
        tables = (file.read(columns=["id"]) for file in (*self._files, self._duplicates))
        ids = pa.concat_tables(tables)["id"]
        counts = ids.value_counts() if pc.count_distinct(ids).as_py() < len(ids) else ()
        for entry in counts:
            if entry["counts"].as_py() > 1:
                raise ValueError(
                    f"{self.path}: the {self.name} id {entry['values'].as_py()!r} occurs more than "
                    "once; give each record its own id, and mine again"
                )
        self._are_unique = True

    @property
    def first_id(self) -> str:
        """The id of the first sentence that was not rejected."""
        return str(self._group(0, 0)["id"][0])

    @cached_property
    def searched(self) -> IntArray:
        """The rows with a vector, int64 (N,), ascending."""
        return self._rows.all()

    def positions(self, rows: Rows) -> IntArray:
        """Return the position of each row, int64, or -1 if it was not searched."""
        positions = np.searchsorted(self.searched, rows)
        is_searched = np.append(self.searched, -1)[positions] == rows
        return np.where(is_searched, positions, -1)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbours of searched rows, (N, K), as rows of the other side."""
        ids, cosines = (lists.all() for lists in self._nearest[self._scope])
        return Neighbours(ids=ids, cosines=cosines)

    def neighbours_at(self, positions: Rows) -> Neighbours:
        """Return the neighbours at P > 0 positions, as rows of the other side."""
        return self._lists_at(self._scope, positions)

    def means_at(self, positions: Rows) -> FloatArray:
        """Return the mean cosine of neighbours at P > 0 positions, 0 if none.

        They are float64 (P,), of the neighbours that margins use. ``neighbours_at`` may differ.
        """
        return self._lists_at(self._margin_scope, positions).means()

    def _lists_at(self, scope: str, positions: Rows) -> Neighbours:
        ids, cosines = (lists.take(positions) for lists in self._nearest[scope])
        return Neighbours(ids=ids, cosines=cosines)

    def vectors(self) -> Matrix:
        """Return searched rows' vectors, not scaled to length 1, float32 (N, D)."""
        return take_columns(self._vectors.all(), self._columns).astype(np.float32, copy=False)

    @cached_property
    def _files(self) -> list[pq.ParquetFile]:
        names = map(layout.shard_file, self._shards)
        return [pq.ParquetFile(self._corpus.checked(name)) for name in names]

    @cached_property
    def _duplicates(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._corpus.checked(layout.DUPLICATES))

    @cached_property
    def _ids_of_duplicates(self) -> dict[int, dict[int, str]]:
        ids: defaultdict[int, dict[int, str]] = defaultdict(dict)
        table = self._duplicates.read(columns=["first_row", "row", "id"])
        for first, row, name in zip(*(column.to_pylist() for column in table), strict=True):
            ids[first][row] = name
        return dict(ids)

    @cached_property
    def _groups(self) -> list[tuple[int, int, int]]:
        return [  # first row, shard and number of each row group, ascending
            (file.metadata.row_group(group).column(0).statistics.min, shard, group)
            for shard, file in enumerate(self._files)
            for group in range(file.num_row_groups)
        ]

    def _read_group(self, shard: int, group: int) -> pa.Table:
        return self._files[shard].read_row_group(group, columns=["row", "id", "doc", "text"])

    def _column(self, name: str, rows: Rows) -> list[str]:
        row_array = np.asarray(rows, dtype=np.int64)
        values = np.empty(len(row_array), dtype=object)
        for table, places in self._row_groups(row_array):
            indices = np.searchsorted(table["row"].to_numpy(), row_array[places])
            values[places] = table[name].take(indices).to_pylist()
        return list(values)

    def _row_groups(self, rows: IntArray) -> Iterator[tuple[pa.Table, IntArray]]:
        order = np.argsort(rows, kind="stable")
        firsts = [first for first, _, _ in self._groups]
        bounds = np.searchsorted(rows[order], [*firsts, np.iinfo(np.int64).max]).tolist()
        for (_, *group), (start, end) in zip(self._groups, itertools.pairwise(bounds), strict=True):
            if start < end:
                yield self._group(*group), order[start:end]
