"""Documents in plain text, Markdown, JSON lines, Cirrus dumps and Parquet."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from miner.storage.corpus.lines import line_batches
from miner.storage.corpus.reader import parquet_file
from miner.storage.corpus.records import MAX_LINE_BYTES, CorpusError, Rejection
from miner.storage.documents import markdown
from miner.storage.documents.records import (
    MAX_BYTES,
    AnyDocument,
    Document,
    RawDocument,
    check_document,
    decode_document,
)
from miner.storage.places import AnyPath
from miner.storage.streams import read_chunks, split_compression

NAMES = ("doc", "id", "url", "title")  # keys that name a document, the first one preferred
PARQUET_BATCH_ROWS = 256


def read(path: AnyPath, name: str) -> Iterator[AnyDocument]:
    """Yield the documents of a text, Markdown, JSON lines or Parquet file.

    A text or Markdown file is one document, called ``name``. Otherwise, each line or row is one. It
    is broken if its field ``text`` is missing or unusable. Its name is the first integer or filled
    string of its fields ``doc``, ``id``, ``url`` and ``title``. Without one, and for a JSON line
    that is too long or has no string ``text``, the name is ``name:number`` by its line or row from
    1. Blank lines and Cirrus dumps' ``{"index": ...}`` are skipped. Errors of ``line_batches`` and
    ``parquet_file`` are raised, and CorpusError for Parquet without exactly one column ``text``.
    """
    match split_compression(path)[0]:
        case ".txt":
            yield decode_document(name, read_bytes(path))
        case ".md" | ".mdx" | ".markdown":
            yield RawDocument(name=name, content=read_bytes(path), extract=markdown.read_page)
        case ".parquet":
            for number, record in enumerate(_parquet_rows(path), start=1):
                row_name, text = _name(record, f"{name}:{number}"), record["text"]
                if isinstance(text, bytes):
                    yield decode_document(row_name, text)
                else:
                    yield Document(name=row_name, broken=Rejection.MALFORMED)
        case _:
            lines = (line for batch in line_batches(path) for line in batch.data.split(b"\n"))
            for number, line in enumerate(lines, start=1):
                if document := _line_document(line, f"{name}:{number}"):
                    yield document


def read_bytes(path: AnyPath, max_bytes: int = MAX_BYTES) -> bytes:
    """Return a file's decompressed bytes, of a long file only the beginning.

    A result longer than ``max_bytes`` may be incomplete. Errors of ``read_chunks`` are raised.
    """
    data = bytearray()
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > max_bytes:
            break
    return bytes(data)


def _line_document(line: bytes, place: str) -> Document | None:
    if not line or line.isspace():
        return None
    if len(line) > MAX_LINE_BYTES:
        return Document(name=place, broken=Rejection.TOO_LONG)
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        return Document(name=place, broken=Rejection.UNDECODABLE)
    except (ValueError, RecursionError):
        record = None
    match record:
        case {"text": str(text)}:
            return check_document(_name(record, place), text)
        case {"index": _} if "text" not in record:
            return None
    return Document(name=place, broken=Rejection.MALFORMED)


def _parquet_rows(path: AnyPath) -> Iterator[dict[str, object]]:
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        if (count := names.count("text")) != 1:
            raise CorpusError(f"{path}: has {count} columns 'text'; name one column text")
        columns = [column for column in (*NAMES, "text") if names.count(column) == 1]
        for batch in file.iter_batches(batch_size=PARQUET_BATCH_ROWS, columns=columns):
            values = [_column_values(batch.column(column)) for column in columns]
            yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _column_values(column: pa.Array) -> list[object]:
    # Strings as bytes, because Arrow does not check UTF-8.
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_text = str(column.type) in {"string", "large_string", "string_view"}
    return list((column.cast(pa.large_binary()) if is_text else column).to_pylist())


def _name(record: dict[str, object], place: str) -> str:
    for value in map(record.get, NAMES):
        text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
        if isinstance(text, str | int) and not isinstance(text, bool) and text != "":
            return str(text)
    return place
