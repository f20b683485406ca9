"""Corpora in Parquet: a column ``text``, and ``id`` and ``doc`` if known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from miner.storage.corpus.records import (
    BATCH_ROWS,
    CorpusError,
    Records,
    Rejection,
    checked_records,
    decoded,
)
from miner.storage.places import AnyPath, PlaceError
from miner.storage.streams import open_binary

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def read_parquet(path: AnyPath, first_row: int) -> Iterator[Records]:
    """Yield the records of a Parquet file; ``text`` is a string, ``id`` and ``doc`` may be integer.

    A row whose text is null is malformed; one whose strings are not UTF-8 is undecodable. A
    CorpusError says that the file is no Parquet file, or lacks such columns.
    """
    with parquet_file(path, "; write it again, or name its format with --input-format") as file:
        columns = _columns(path, file.schema_arrow)
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            if len(batch):
                yield _records(batch, first_row)
            first_row += len(batch)


@contextmanager
def parquet_file(path: AnyPath, remedy: str = "") -> Iterator[pq.ParquetFile]:
    """Open a Parquet file as by ``open_binary``, and report what fails while it is read.

    That is a CorpusError, whose line ends in ``remedy``, or a PlaceError.
    """
    import pyarrow.parquet as pq

    with open_binary(path) as raw:
        try:
            yield pq.ParquetFile(raw)
        except (CorpusError, PlaceError):
            raise
        except (OSError, ValueError) as error:  # Arrow's own errors are of these two kinds.
            cause = str(error).partition("\n")[0]
            raise CorpusError(f"{path}: is not a whole Parquet file ({cause}){remedy}") from error


def _columns(path: AnyPath, schema: pa.Schema) -> list[str]:
    """Return the columns to read, or the error that says what is wrong with them."""
    import pyarrow.types as pt

    if "text" not in schema.names:
        raise CorpusError(
            f"{path}: has no column 'text', only {', '.join(schema.names) or 'none'}; rename one"
        )
    columns = [column for column in ("id", "doc", "text") if column in schema.names]
    for column in columns:
        if schema.names.count(column) > 1:
            raise CorpusError(f"{path}: has more than one column '{column}'; keep one")
        kind = schema.field(column).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        is_text = str(kind) in {"string", "large_string", "string_view"}
        if not is_text and (column == "text" or not pt.is_integer(kind)):
            expected = "string" if column == "text" else "string or integer"
            raise CorpusError(f"{path}: column '{column}' is {kind}, expected {expected}; cast it")
    return columns


def _records(batch: pa.RecordBatch, first_row: int) -> Records:
    import pyarrow as pa

    columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
    rejected: dict[int, Rejection] = {}
    ids, docs, texts = (
        _strings(columns[name], rejected) if name in columns else [""] * len(batch)
        for name in ("id", "doc", "text")
    )
    for position, is_null in enumerate(columns["text"].is_null().to_pylist()):
        if is_null:
            rejected.setdefault(position, Rejection.MALFORMED)

    def raw(position: int) -> bytes:
        return columns["text"].slice(position, 1).cast(pa.large_binary())[0].as_py() or b""

    return checked_records(first_row, ids, docs, texts, rejected, raw)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of strings."""
    import pyarrow as pa
    import pyarrow.types as pt

    column = column.dictionary_decode() if pt.is_dictionary(column.type) else column
    return column.cast(pa.string()) if pt.is_integer(column.type) else column


def _strings(column: pa.Array, rejected: dict[int, Rejection]) -> list[str]:
    """Return a column's values, empty ones for null; one that is not UTF-8 is rejected.

    Parquet does not check what a string column holds, and neither does Arrow on reading it.
    """
    import pyarrow as pa

    try:
        return [value or "" for value in column.to_pylist()]
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary()).to_pylist()
        return decoded((value or b"" for value in values), rejected)
