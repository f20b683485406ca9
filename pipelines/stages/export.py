"""Export the pairs with their sentences, best pairs first."""

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.arrays import IntArray, load_array
from miner.given import lines_of
from miner.judge.network import words_without_counterpart
from miner.storage.layout import DUPLICATES, LINES, MERGES, PAIRS, REJECTED, SIDES
from miner.storage.pair_files.sides import ORIGINALS_FILE, texts_at
from miner.storage.pair_tables import Merges, joined_texts, list_offsets
from miner.storage.pairs import write_pairs
from miner.storage.places import Place
from miner.threads import blocks, map_in_threads, prefetch, use_all_threads
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.progress import Meter
from pipelines.references import READ_ROWS, ChosenPairs, Shard
from pipelines.stages.summary import read_summary

EXPORT_ROWS = 32_768  # pairs per table; miner.filters.RATIO_PAIRS needs as many
UNMATCHED_PAIRS = 1024  # pairs whose words are compared at a time by a thread
MAX_PAIRS = sys.maxsize
COPIES = 3  # of a pass's sentences: two for some time, and room for longer pairs
PAIR_BYTES = 200  # bytes of a pair without its texts


def export_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Write ``options.outputs``, and return ``chosen``.

    Call ``keep_pairs``, whose result is ``chosen``, and ``write_summary`` before. Errors are
    OSError, and of ``read_summary``, ``word_encoders`` and ``write_pairs``.
    """
    options = run.options
    _export(run, chosen, PAIRS, "export", options.output)
    if options.filters:
        _export(run, chosen, REJECTED, "export rejected", options.rejected_output)
    return chosen


def _export(run: RunContext, chosen: ChosenPairs, name: str, stage: str, path: Place) -> None:
    options = run.options
    signature = read_summary(options.work_dir)["signature"]
    with pair_meter(run, chosen, name, stage) as meter, use_all_threads():

        def tables() -> Iterator[pa.Table]:
            for table in completed_pairs(run, chosen, name):
                table = _replace_by_lines(chosen, table)
                table = _add_originals(run, table) if options.repair else table
                yield _add_unmatched(run, table) if options.unmatched_words else table
                meter.advance(len(table))

        write_pairs(
            path,
            tables(),
            origin=replace(options.origin, signature=signature),
            judged=options.scores_by_words,
            merged=options.is_monotone,
            originals=options.repair,
            unmatched=options.unmatched_words,
            reasons=name == REJECTED,
        )


def _replace_by_lines(chosen: ChosenPairs, table: pa.Table) -> pa.Table:
    if chosen.lines is None:
        return table
    pairs = load_array(chosen.lines.file(LINES), mmap_mode="r")
    lines = lines_of(pairs, *(table[f"{side}_row"].to_numpy() for side in SIDES))
    for side in SIDES:
        columns = _columns_by_line(chosen.of_side(side)[0].shard, table, side, lines)
        for name, values in columns.items():
            position = table.schema.get_field_index(name)
            column = pa.array(values, table.schema.field(name).type)
            table = table.set_column(position, name, column)
    return table


def _add_originals(run: RunContext, table: pa.Table) -> pa.Table:
    folder = run.options.source.path.parent
    originals = texts_at(folder / ORIGINALS_FILE, table["source_row"].to_numpy())
    for name in originals.column_names:
        table = table.append_column(name, originals[name])
    return table


def _add_unmatched(run: RunContext, table: pa.Table) -> pa.Table:
    makers = run.word_encoders()
    texts = [table[f"{side}_text"].to_pylist() for side in SIDES]

    def read(rows: slice) -> tuple[list[list[str]], list[list[str]]]:
        return words_without_counterpart(makers, *(side[rows] for side in texts))

    parts = map_in_threads(read, blocks(len(table), UNMATCHED_PAIRS))
    for side, words in zip(SIDES, zip(*parts, strict=True), strict=True):
        column = pa.array(itertools.chain.from_iterable(words), pa.list_(pa.string()))
        table = table.append_column(f"{side}_unmatched", column)
    return table


def _columns_by_line(
    shard: Shard, table: pa.Table, side: str, lines: IntArray
) -> Mapping[str, list[Any]]:
    rows, ids, docs = (table[f"{side}_{name}"].to_pylist() for name in ("row", "id", "doc"))
    copies = table[f"{side}_duplicates"].to_pylist()
    moved = np.flatnonzero(lines != table[f"{side}_row"].to_numpy())
    repeats = _duplicates(shard, lines[moved], by="row")
    names = dict(zip(repeats["row"].to_pylist(), repeats["id"].to_pylist(), strict=True))
    for i in moved.tolist():
        line = int(lines[i])
        copies[i] = [ids[i], *(name for name in copies[i] if name != names[line])]
        rows[i], ids[i], docs[i] = line, names[line], ""
    columns = {"row": rows, "id": ids, "doc": docs, "duplicates": copies}
    return {f"{side}_{name}": values for name, values in columns.items()}


def pair_meter(
    run: RunContext, chosen: ChosenPairs, name: str, stage: str, *, limit: int = MAX_PAIRS
) -> AbstractContextManager[Meter]:
    """Return a context manager that yields the meter of a stage of pairs.

    Its total is the number of pairs in the file ``name`` of ``chosen.pairs``, at most ``limit``.
    """
    rows = pq.read_metadata(chosen.pairs.file(name)).num_rows
    return run.monitor.stage(stage, min(rows, limit), "pairs")


def completed_pairs(
    run: RunContext, chosen: ChosenPairs, name: str, *, rows: range = range(MAX_PAIRS)
) -> Iterator[pa.Table]:
    """Yield pairs with their sentences, in tables of at most 32,768 rows.

    They are the pairs at the positions ``rows`` in the file ``name`` of ``chosen.pairs``, in order,
    by default all. For both sides, columns such as ``source_id`` are added: ``id``, ``doc``,
    ``text`` and ``duplicates`` (ids) or, with ``merges``, ``rows``, ``ids``, ``doc`` and ``text``.
    """
    sides = {side: [part.shard for part in chosen.of_side(side)] for side in SIDES}
    merges = (
        {side: Merges(chosen.merges.file(MERGES), side) for side in SIDES} if chosen.merges else {}
    )
    pair_bytes = PAIR_BYTES + sum(
        sum(shard.text_bytes() for shard in shards) / max(1, sum(shard.rows for shard in shards))
        for shards in sides.values()
    )
    size = max(EXPORT_ROWS, int(spare_bytes(run.options) / (COPIES * pair_bytes)))
    with pq.ParquetFile(chosen.pairs.file(name)) as pairs:
        for batch in _number_batches(pairs, rows, size):
            sentences = {
                side: _MergedSentences(shards, merges[side].rows_of(batch[f"{side}_row"]))
                if merges
                else _Sentences(shards, batch[f"{side}_row"])
                for side, shards in sides.items()
            }
            starts = range(0, len(batch), EXPORT_ROWS)
            yield from prefetch(partial(_add_sentences, batch, sentences), starts)
            del sentences  # frees memory before the next pass collects its sentences


def _add_sentences(
    batch: pa.RecordBatch, sentences: Mapping[str, "_MergedSentences | _Sentences"], start: int
) -> pa.Table:
    table = pa.Table.from_batches([batch.slice(start, EXPORT_ROWS)])
    for side, side_sentences in sentences.items():
        for column, values in side_sentences.columns(start, len(table)).items():
            table = table.append_column(f"{side}_{column}", values)
    return table


def _number_batches(pairs: pq.ParquetFile, rows: range, size: int) -> Iterator[pa.RecordBatch]:
    start, parts = 0, []
    for batch in pairs.iter_batches(batch_size=EXPORT_ROWS):
        skipped = max(0, rows.start - start)
        parts.append(batch.slice(skipped, max(0, rows.stop - start - skipped)))
        start += len(batch)
        if start >= rows.stop:
            break
        if sum(map(len, parts)) >= size:
            yield pa.concat_batches(parts)
            parts = []
    if sum(map(len, parts)):
        yield pa.concat_batches(parts)


def texts_of(shards: Sequence[Shard], rows: IntArray) -> list[str]:
    """Return the texts at ``rows`` (P,) of a side, in their order.

    ``shards``, in order, must have all ``rows``, which are first rows of unique sentences. Other
    rows, such as duplicates, give wrong texts, often without an error.
    """
    if not len(rows):
        return []
    return _Sentences(shards, pa.array(rows)).columns(0, len(rows))["text"].to_pylist()


class _MergedSentences:
    def __init__(self, shards: Sequence[Shard], rows: pa.ListArray) -> None:
        self._rows = rows
        self._sentences = _Sentences(shards, rows.flatten())
        self._offsets = list_offsets(rows)

    def columns(self, start: int, length: int) -> dict[str, pa.Array]:
        offsets = self._offsets[start : start + length + 1]
        parts = self._sentences.columns(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
        return {
            "rows": self._rows.slice(start, length),
            "ids": pa.LargeListArray.from_arrays(offsets, parts["id"].combine_chunks()),
            "doc": parts["doc"].take(pa.array(offsets[:-1])),
            "text": pa.array(joined_texts(parts["text"].to_pylist(), offsets), pa.large_string()),
        }


class _Sentences:
    def __init__(self, shards: Sequence[Shard], rows: pa.Array) -> None:
        self._rows = rows.to_numpy()
        sorted_rows, self._positions = np.unique(self._rows, return_inverse=True)
        fetched = map_in_threads(partial(_fetch_rows, rows=sorted_rows), shards)
        pieces = list(itertools.chain.from_iterable(fetched))
        self._table = _with_large_strings(pa.Table.from_batches(pieces)).combine_chunks()
        repeats = _duplicates(shards[0], sorted_rows)
        first_rows = repeats["first_row"].to_numpy()
        by_first = np.argsort(first_rows, kind="stable")
        self._first_rows = first_rows[by_first]
        self._repeated_ids = repeats["id"].take(pa.array(by_first))

    def columns(self, start: int, length: int) -> dict[str, pa.Array]:
        block = slice(start, start + length)
        rows = self._rows[block]
        sentences = self._table.take(pa.array(self._positions[block]))
        starts = np.searchsorted(self._first_rows, rows, side="left")
        counts = np.searchsorted(self._first_rows, rows, side="right") - starts
        offsets = np.concatenate([[0], np.cumsum(counts)])
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
        ids = self._repeated_ids.take(pa.array(positions)).combine_chunks()
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)
        return {name: sentences[name] for name in ("id", "doc", "text")} | {"duplicates": lists}


def _fetch_rows(shard: Shard, rows: IntArray) -> list[pa.RecordBatch]:
    pieces = []
    for batch in shard.batches(["row", "id", "doc", "text"]):
        shard_rows = batch["row"].to_numpy()
        first, last = np.searchsorted(rows, [shard_rows[0], shard_rows[-1] + 1])
        pieces.append(batch.take(pa.array(np.searchsorted(shard_rows, rows[first:last]))))
    return pieces


def _duplicates(shard: Shard, rows: IntArray, *, by: str = "first_row") -> pa.Table:
    columns = [by, "id"]
    with pq.ParquetFile(shard.corpus.file(DUPLICATES)) as file:
        batches = [
            batch.filter(pa.array(np.isin(batch[by].to_numpy(), rows)))
            for batch in file.iter_batches(batch_size=READ_ROWS, columns=columns)
        ]
        schema = file.schema_arrow.empty_table().select(columns).schema
        return _with_large_strings(pa.Table.from_batches(batches, schema))


def _with_large_strings(table: pa.Table) -> pa.Table:
    # Rows past 2 GiB need 64-bit offsets.
    strings = [
        pa.field(field.name, pa.large_string()) if field.type == pa.string() else field
        for field in table.schema
    ]
    return table.cast(pa.schema(strings))
