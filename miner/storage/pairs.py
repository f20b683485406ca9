"""The mined pairs as files: TSV to look at, JSON lines and Parquet with all that is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import IO, TYPE_CHECKING

from miner.storage.atomic import OutputError, atomic_file, check_writable
from miner.storage.pair_numbers import aligned_fields
from miner.storage.places import AnyPath

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OUTPUT_SUFFIXES", "OutputError", "check_output", "pairs_schema", "write_pairs"]

OUTPUT_SUFFIXES = (".tsv", ".jsonl", ".parquet")

_TEXT_ROWS = 8192  # Pairs made into Python objects at a time: some ten MB.
_ROW_GROUP_ROWS = 65_536

# What some reader or other takes for the end of a line or of a cell. TSV has no quoting.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
# Those of them that JSON allows in a string as they are.
_JSON_BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_JSON_BREAK = re.compile("[\x85\u2028\u2029]")


def pairs_schema(*, aligned: bool = False, reasons: bool = False) -> pa.Schema:
    """Return the Arrow schema of the pairs: the fields of JSON lines and Parquet, in this order.

    Aligned pairs have what their score is made of, those that filters rejected the ``reason``.
    """
    import pyarrow as pa

    ids = pa.list_(pa.string())
    schema = pa.schema(
        {
            "score": pa.float64(),
            **(aligned_fields() if aligned else {}),
            "source_id": pa.string(),
            "target_id": pa.string(),
            "source_doc": pa.string(),
            "target_doc": pa.string(),
            "source_text": pa.string(),
            "target_text": pa.string(),
            "source_row": pa.int64(),
            "target_row": pa.int64(),
            "cosine": pa.float32(),
            "source_mean": pa.float64(),
            "target_mean": pa.float64(),
            "rank": pa.int32(),
            "direction": pa.string(),
            "source_duplicates": ids,
            "target_duplicates": ids,
        }
    )
    return schema.append(pa.field("reason", pa.string())) if reasons else schema


def check_output(path: AnyPath) -> None:
    """Check, before the work begins, that pairs could be written to ``path``.

    Raises:
        ValueError: the suffix is none of ``OUTPUT_SUFFIXES``.
        OutputError: no file can be created there.
    """
    _writer(path)
    check_writable(path)


def write_pairs(
    path: AnyPath,
    batches: Iterable[pa.Table | pa.RecordBatch],
    *,
    aligned: bool = False,
    reasons: bool = False,
) -> int:
    r"""Write pairs in the order they come, whole or not at all; returns how many.

    The suffix of ``path`` chooses the format. ``.tsv`` is score TAB source text TAB target text,
    without header or quoting: the score with all its digits, and a space for every character of a
    text that some reader would take for the end of a line or a cell. ``.jsonl`` is an object a
    line in UTF-8; scores that are not finite are null, as JSON has no other word for them, and
    U+0085, U+2028 and U+2029 are escaped. ``.parquet`` is of ``pairs_schema``.
    With ``aligned`` either has what the score is made of, beside it; with ``reasons`` each has what
    its pair was rejected for at the end. The bytes written do not depend on how the
    pairs are cut into batches.

    Raises:
        ValueError: the suffix is none of ``OUTPUT_SUFFIXES``.
        OutputError: the file cannot be written; what was there before stays.
    """
    write = _writer(path)
    with atomic_file(path) as temporary, open(temporary, "wb") as file:
        return write(file, batches, pairs_schema(aligned=aligned, reasons=reasons))


def _writer(
    path: AnyPath,
) -> Callable[[IO[bytes], Iterable[pa.Table | pa.RecordBatch], pa.Schema], int]:
    match PurePath(str(path)).suffix.lower():
        case ".tsv":
            return _write_tsv
        case ".jsonl":
            return _write_jsonl
        case ".parquet":
            return _write_parquet
        case suffix:
            raise ValueError(
                f"{path}: the suffix {suffix!r} names no format of pairs; "
                f"use one of {', '.join(OUTPUT_SUFFIXES)}"
            )


def _write_tsv(
    file: IO[bytes], batches: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema
) -> int:
    names = [
        "score",
        "source_text",
        "target_text",
        *(["reason"] if "reason" in schema.names else []),
    ]
    written = 0
    for table in _regrouped(batches, schema, _TEXT_ROWS):
        scores, *texts = (table[name].to_pylist() for name in names)
        lines = [
            "\t".join([repr(score), *(_BREAKS.sub(" ", text) for text in row)]) + "\n"
            for score, *row in zip(scores, *texts, strict=True)
        ]
        file.write("".join(lines).encode())
        written += len(lines)
    return written


def _write_jsonl(
    file: IO[bytes], batches: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema
) -> int:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    written = 0
    for table in _regrouped(batches, schema, _TEXT_ROWS):
        lines = [encode(pair) + "\n" for pair in _finite(table).to_pylist()]
        joined = _JSON_BREAK.sub(_escaped, "".join(lines))
        file.write(joined.encode())
        written += len(lines)
    return written


def _write_parquet(
    file: IO[bytes], batches: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema
) -> int:
    import pyarrow.parquet as pq

    written = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in _regrouped(batches, schema, _ROW_GROUP_ROWS):
            writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
            written += len(table)
    return written


def _regrouped(
    batches: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema, rows: int
) -> Iterator[pa.Table]:
    """Yield the pairs in tables of ``rows`` rows (the last may be shorter), of a schema."""
    import pyarrow as pa

    held: list[pa.Table] = []
    held_rows = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        held.append(table.select(schema.names).cast(schema))
        held_rows += len(table)
        if held_rows >= rows:
            whole = pa.concat_tables(held)
            held_rows %= rows
            end = len(whole) - held_rows
            held = [whole.slice(end)]
            for start in range(0, end, rows):
                # Combined, so that a Parquet file's pages do not show where the batches ended.
                yield whole.slice(start, rows).combine_chunks()
    if held_rows:
        yield pa.concat_tables(held).combine_chunks()


def _finite(table: pa.Table) -> pa.Table:
    """The table with nulls for NaN and the infinities."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as pt

    for position, field in enumerate(table.schema):
        if pt.is_floating(field.type):
            column = table[field.name]
            finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, field.type))
            table = table.set_column(position, field, finite)
    return table


def _escaped(match: re.Match[str]) -> str:
    return _JSON_BREAKS[ord(match[0])]
