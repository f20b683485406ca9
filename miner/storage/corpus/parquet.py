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
)
from miner.storage.places import AnyPath
from miner.storage.remote import PlaceError
from miner.storage.streams import open_binary

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def read_parquet(path: AnyPath, first_row: int) -> Iterator[Records]:
    """Yield the records of a Parquet file; ``text`` is a string, ``id`` and ``doc`` may be integer.

    A row whose text is null is malformed; one whose strings are not UTF-8 is undecodable.

    Raises:
        CorpusError: the file cannot be read, is no Parquet file, or lacks such columns.
    """
    with parquet_file(path, "; write it again, or name its format with --input-format") as file:
        columns = _columns(path, file.schema_arrow)
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            if len(batch):
                yield _records(batch, first_row)
            first_row += len(batch)


@contextmanager
def parquet_file(path: AnyPath, remedy: str = "") -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, and report what fails while it is read.

    Raises:
        CorpusError: the file cannot be read, or is no Parquet file; the line ends in ``remedy``.
        PlaceError: its file system cannot be reached.
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

    name = str(path)
    if "text" not in schema.names:
        raise CorpusError(
            f"{name}: has no column 'text', only {', '.join(schema.names) or 'none'}; rename one"
        )
    columns = [column for column in ("id", "doc", "text") if column in schema.names]
    for column in columns:
        if schema.names.count(column) > 1:
            raise CorpusError(f"{name}: has more than one column '{column}'; keep one")
        kind = schema.field(column).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        is_text = str(kind) in {"string", "large_string", "string_view"}
        if not is_text and (column == "text" or not pt.is_integer(kind)):
            expected = "string" if column == "text" else "string or integer"
            raise CorpusError(f"{name}: column '{column}' is {kind}, expected {expected}; cast it")
    return columns


def _records(batch: pa.RecordBatch, first_row: int) -> Records:
    import pyarrow as pa
    import pyarrow.types as pt

    rejected: dict[int, Rejection] = {}
    columns = {column: _strings(batch.column(column), rejected) for column in batch.schema.names}
    nothing: list[str | None] = [""] * len(batch)
    for position, text in enumerate(columns["text"]):
        if text is None:
            rejected.setdefault(position, Rejection.MALFORMED)

    def raw(position: int) -> bytes:
        text = batch.column("text").slice(position, 1)
        text = text.dictionary_decode() if pt.is_dictionary(text.type) else text
        return text.cast(pa.large_binary())[0].as_py() or b""

    return checked_records(
        first_row,
        [own or "" for own in columns.get("id", nothing)],
        [doc or "" for doc in columns.get("doc", nothing)],
        [text or "" for text in columns["text"]],
        rejected,
        raw,
    )


def _strings(column: pa.Array, rejected: dict[int, Rejection]) -> list[str | None]:
    """Return a column's values as strings; one that is not UTF-8 is None and its position rejected.

    Parquet does not check what a string column holds, and neither does Arrow on reading it.
    """
    import pyarrow as pa
    import pyarrow.types as pt

    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pt.is_integer(column.type):
        column = column.cast(pa.string())
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary()).to_pylist()
    strings: list[str | None] = []
    for position, value in enumerate(values):
        try:
            strings.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            strings.append(None)
            rejected.setdefault(position, Rejection.UNDECODABLE)
    return strings
