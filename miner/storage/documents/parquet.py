"""Parquet with whole documents in ``text``."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from miner.storage.corpus.parquet import parquet_file
from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents.jsonl import NAMES
from miner.storage.documents.records import Document, decoded
from miner.storage.places import AnyPath

READ_ROWS = 256


def read(path: AnyPath, name: str) -> Iterator[Document]:
    """Yield a document for each row; what is no text is a broken one.

    Raises:
        CorpusError: it is no Parquet file, or has not one column ``text``.
    """
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        if names.count("text") != 1:
            raise CorpusError(f"{path}: has {names.count('text')} columns 'text'; make it one")
        columns = [column for column in (*NAMES, "text") if names.count(column) == 1]
        number = 0
        for batch in file.iter_batches(batch_size=READ_ROWS, columns=columns):
            values = {column: _values(batch.column(column)) for column in columns}
            for record in zip(*values.values(), strict=True):
                number += 1
                yield _document(dict(zip(columns, record, strict=True)), f"{name}:{number}")


def _values(column: pa.Array) -> list[object]:
    """Return its values, strings as bytes: neither Parquet nor Arrow checks that they are UTF-8."""
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_text = str(column.type) in {"string", "large_string", "string_view"}
    return list((column.cast(pa.large_binary()) if is_text else column).to_pylist())


def _document(record: dict[str, object], place: str) -> Document:
    names = (_name(record.get(key)) for key in NAMES)
    name = next((own for own in names if own), place)
    text = record["text"]
    if not isinstance(text, bytes):
        return Document(name=name, broken=Rejection.MALFORMED)
    return decoded(name, text)


def _name(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
