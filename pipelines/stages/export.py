"""The export stage: the pairs with their sentences, in the order of their scores.

Pairs come best first and sentences by row, so each sentence is fetched from anywhere in the corpus.
As many pairs as memory has room for are completed in one pass over both corpora.
"""

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from miner.arrays import IntArray
from miner.given import lines_of
from miner.storage.layout import DUPLICATES, LINES, MERGES, PAIRS, REJECTED, SIDES
from miner.storage.pair_tables import Merges, joined_texts, list_offsets
from miner.storage.pairs import write_pairs
from miner.storage.places import Place
from miner.threads import map_in_threads, prefetch, use_all_threads
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.progress import Meter
from pipelines.references import ChosenPairs, Shard

EXPORT_ROWS = 32_768  # pairs handed on at a time; miner.filters.RATIO_PAIRS needs as many
READ_ROWS = 32_768  # sentences read at a time
MAX_PAIRS = sys.maxsize
# Of what a pass collects there are for some time two copies, and some pairs are longer.
COPIES = 3
PAIR_BYTES = 200  # what is known of a pair without its texts


def export_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Write the chosen pairs to ``options.output``, and those that filters rejected beside it."""
    options = run.options
    _export(run, chosen, PAIRS, "export", options.output)
    if options.filters:
        _export(run, chosen, REJECTED, "export rejected", options.rejected_output)
    return chosen


def _export(run: RunContext, chosen: ChosenPairs, name: str, stage: str, path: Place) -> None:
    options = run.options
    with pair_meter(run, chosen, name, stage) as meter, use_all_threads():

        def counted() -> Iterator[pa.Table]:
            for table in completed_pairs(run, chosen, name):
                yield _by_lines(chosen, table)
                meter.advance(len(table))

        write_pairs(
            path,
            counted(),
            origin=options.origin,
            judged=options.scores_by_words,
            merged=options.is_monotone,
            reasons=name == REJECTED,
        )


def _by_lines(chosen: ChosenPairs, table: pa.Table) -> pa.Table:
    """Return given pairs with the ids and rows of their own lines."""
    if chosen.lines is None:
        return table
    pairs = np.load(chosen.lines.file(LINES), mmap_mode="r")
    lines = lines_of(pairs, *(table[f"{side}_row"].to_numpy() for side in SIDES))
    for side in SIDES:
        named = _named_by_lines(chosen.of_side(side)[0].shard, table, side, lines)
        for name, column in named.items():
            position = table.schema.get_field_index(f"{side}_{name}")
            table = table.set_column(position, f"{side}_{name}", column)
    return table


def _named_by_lines(
    shard: Shard, table: pa.Table, side: str, lines: IntArray
) -> Mapping[str, pa.Array]:
    """Return a side's columns of given pairs by their lines.

    These are ``row``, ``id``, ``doc`` and ``duplicates``. A duplicate's document is not stored.
    """
    rows, ids, docs = (table[f"{side}_{name}"].to_pylist() for name in ("row", "id", "doc"))
    others = table[f"{side}_duplicates"].to_pylist()
    moved = np.flatnonzero(lines != table[f"{side}_row"].to_numpy())
    repeats = _repeats(shard, lines[moved], by="row")
    names = dict(zip(repeats["row"].to_pylist(), repeats["id"].to_pylist(), strict=True))
    for place in moved.tolist():
        line = int(lines[place])
        others[place] = [ids[place], *(name for name in others[place] if name != names[line])]
        rows[place], ids[place], docs[place] = line, names[line], ""
    columns = {"row": rows, "id": ids, "doc": docs, "duplicates": others}
    return {
        name: pa.array(values, table.schema.field(f"{side}_{name}").type)
        for name, values in columns.items()
    }


def pair_meter(
    run: RunContext, chosen: ChosenPairs, name: str, stage: str, *, limit: int = MAX_PAIRS
) -> AbstractContextManager[Meter]:
    """Follow a stage that goes through the first ``limit`` pairs in a file of ``chosen.pairs``."""
    rows = pq.read_metadata(chosen.pairs.file(name)).num_rows
    return run.monitor.stage(stage, min(rows, limit), "pairs")


def completed_pairs(
    run: RunContext, chosen: ChosenPairs, name: str, *, rows: range = range(MAX_PAIRS)
) -> Iterator[pa.Table]:
    """Yield some pairs in a file of ``chosen.pairs`` with their sentences, ``EXPORT_ROWS`` each."""
    sides = {side: [found.shard for found in chosen.of_side(side)] for side in SIDES}
    merges = (
        {side: Merges(chosen.merges.file(MERGES), side) for side in SIDES} if chosen.merges else {}
    )
    pair = PAIR_BYTES + sum(
        sum(shard.text_bytes() for shard in shards) / max(1, sum(shard.rows for shard in shards))
        for shards in sides.values()
    )
    size = max(EXPORT_ROWS, int(spare_bytes(run.options) / (COPIES * pair)))
    with pq.ParquetFile(chosen.pairs.file(name)) as pairs:
        for batch in _numbers(pairs, rows, size):
            sentences = {
                side: _Merged(shards, merges[side].rows_of(batch[f"{side}_row"]))
                if merges
                else _Sentences(shards, batch[f"{side}_row"])
                for side, shards in sides.items()
            }
            starts = range(0, len(batch), EXPORT_ROWS)
            yield from prefetch(partial(_completed, batch, sentences), starts)
            del sentences  # before those of the next pass are collected


def _completed(
    batch: pa.RecordBatch, sentences: Mapping[str, "_Merged | _Sentences"], start: int
) -> pa.Table:
    """Return the next ``EXPORT_ROWS`` pairs of a batch with their sentences."""
    table = pa.Table.from_batches([batch.slice(start, EXPORT_ROWS)])
    for side, found in sentences.items():
        for column, values in found.part(start, len(table)).items():
            table = table.append_column(f"{side}_{column}", values)
    return table


def _numbers(pairs: pq.ParquetFile, rows: range, size: int) -> Iterator[pa.RecordBatch]:
    """Yield some rows of a file, ``size`` at a time or a little more."""
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
    """Return the sentences of one side at some rows, in their order."""
    if not len(rows):
        return []
    return _Sentences(shards, pa.array(rows)).part(0, len(rows))["text"].to_pylist()


class _Merged:
    """One side's merged sentences of some pairs: those at each list of ``rows``."""

    def __init__(self, shards: Sequence[Shard], rows: pa.ListArray) -> None:
        self._rows = rows
        self._sentences = _Sentences(shards, rows.flatten())
        self._offsets = list_offsets(rows)

    def part(self, start: int, length: int) -> dict[str, pa.Array]:
        """Return columns ``rows``, ``ids``, ``doc`` and ``text`` of some of them."""
        offsets = self._offsets[start : start + length + 1]
        found = self._sentences.part(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
        return {
            "rows": self._rows.slice(start, length),
            "ids": pa.LargeListArray.from_arrays(offsets, found["id"].combine_chunks()),
            "doc": found["doc"].take(pa.array(offsets[:-1])),
            "text": pa.array(joined_texts(found["text"].to_pylist(), offsets), pa.large_string()),
        }


class _Sentences:
    """One side's sentences of some pairs: those at ``rows``, in that order."""

    def __init__(self, shards: Sequence[Shard], rows: pa.Array) -> None:
        self._wanted = rows.to_numpy()
        sorted_rows, self._places = np.unique(self._wanted, return_inverse=True)
        fetched = map_in_threads(partial(_fetch, rows=sorted_rows), shards)
        pieces = list(itertools.chain.from_iterable(fetched))
        self._table = _large(pa.Table.from_batches(pieces)).combine_chunks()
        repeats = _repeats(shards[0], sorted_rows)
        first_rows = repeats["first_row"].to_numpy()
        by_first = np.argsort(first_rows, kind="stable")
        self._first_rows = first_rows[by_first]
        self._repeated_ids = repeats["id"].take(pa.array(by_first))

    def part(self, start: int, length: int) -> dict[str, pa.Array]:
        """Return columns ``id``, ``doc``, ``text`` and ``duplicates`` of some of them."""
        block = slice(start, start + length)
        rows = self._wanted[block]
        found = self._table.take(pa.array(self._places[block]))
        starts = np.searchsorted(self._first_rows, rows, side="left")
        counts = np.searchsorted(self._first_rows, rows, side="right") - starts
        offsets = np.concatenate([[0], np.cumsum(counts)])
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
        ids = self._repeated_ids.take(pa.array(positions)).combine_chunks()
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)
        return {name: found[name] for name in ("id", "doc", "text")} | {"duplicates": lists}


def _fetch(shard: Shard, rows: IntArray) -> list[pa.RecordBatch]:
    """Return those sentences of a shard whose rows are among ``rows`` (ascending), in order."""
    pieces = []
    for batch in shard.batches(["row", "id", "doc", "text"], READ_ROWS):
        own = batch["row"].to_numpy()
        first, last = np.searchsorted(rows, [own[0], own[-1] + 1])
        pieces.append(batch.take(pa.array(np.searchsorted(own, rows[first:last]))))
    return pieces


def _repeats(shard: Shard, rows: IntArray, *, by: str = "first_row") -> pa.Table:
    """Return the ids of duplicates, by their rows or by their first rows."""
    columns = [by, "id"]
    with pq.ParquetFile(shard.corpus.file(DUPLICATES)) as file:
        found = [
            batch.filter(pa.array(np.isin(batch[by].to_numpy(), rows)))
            for batch in file.iter_batches(batch_size=READ_ROWS, columns=columns)
        ]
        schema = file.schema_arrow.empty_table().select(columns).schema
        return _large(pa.Table.from_batches(found, schema))


def _large(table: pa.Table) -> pa.Table:
    """Return it with 64-bit offsets into its strings, as taking rows past 2 GiB needs them."""
    strings = [
        pa.field(field.name, pa.large_string()) if field.type == pa.string() else field
        for field in table.schema
    ]
    return table.cast(pa.schema(strings))
