"""Files of documents: plain text, Markdown, JSON lines (Wikipedia's Cirrus dumps, too), Parquet."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from miner.storage.corpus.lines import MAX_LINE_BYTES, line_batches
from miner.storage.corpus.reader import parquet_file
from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents import markdown
from miner.storage.documents.records import MAX_BYTES, Document, Found, Raw, checked, decoded
from miner.storage.places import AnyPath
from miner.storage.streams import read_chunks, split_compression

NAMES = ("doc", "id", "url", "title")  # the first of these that a row has names it
READ_ROWS = 256


def read(path: AnyPath, name: str) -> Iterator[Found]:
    """Yield the document of a text, or one for each line or row; without ``text`` a broken one.

    A Cirrus dump has a line ``{"index": ...}`` before each article, which is passed over. A
    CorpusError says that the file is not what its suffix says, or has not one column ``text``.
    """
    match split_compression(path)[0]:
        case ".txt":
            yield decoded(name, read_bytes(path))
        case ".md" | ".mdx" | ".markdown":
            yield Raw(name=name, content=read_bytes(path), extract=markdown.page)
        case ".parquet":
            for number, record in enumerate(_parquet_rows(path), start=1):
                yield _of_row(record, f"{name}:{number}")
        case _:
            lines = (line for batch in line_batches(path) for line in batch.data.split(b"\n"))
            for number, line in enumerate(lines, start=1):
                if line and not line.isspace():
                    yield from _of_line(line, f"{name}:{number}")


def read_bytes(path: AnyPath, most: int = MAX_BYTES) -> bytes:
    """Return a file's bytes, decompressed; of one with more than ``most`` only somewhat more."""
    data = bytearray()
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > most:
            break
    return bytes(data)


def _of_line(line: bytes, place: str) -> Iterator[Document]:
    if len(line) > MAX_LINE_BYTES:
        yield Document(name=place, broken=Rejection.TOO_LONG)
        return
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        yield Document(name=place, broken=Rejection.UNDECODABLE)
        return
    except (ValueError, RecursionError):
        record = None
    match record:
        case {"text": str(text)}:
            yield checked(_name(record, place), text)
        case {"index": _} if "text" not in record:
            return
        case _:
            yield Document(name=place, broken=Rejection.MALFORMED)


def _parquet_rows(path: AnyPath) -> Iterator[dict[str, object]]:
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        if names.count("text") != 1:
            raise CorpusError(f"{path}: has {names.count('text')} columns 'text'; make it one")
        columns = [column for column in (*NAMES, "text") if names.count(column) == 1]
        for batch in file.iter_batches(batch_size=READ_ROWS, columns=columns):
            values = [_values(batch.column(column)) for column in columns]
            yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _values(column: pa.Array) -> list[object]:
    """Return its values, strings as bytes: neither Parquet nor Arrow checks that they are UTF-8."""
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_text = str(column.type) in {"string", "large_string", "string_view"}
    return list((column.cast(pa.large_binary()) if is_text else column).to_pylist())


def _of_row(record: dict[str, object], place: str) -> Document:
    name, text = _name(record, place), record["text"]
    if not isinstance(text, bytes):
        return Document(name=name, broken=Rejection.MALFORMED)
    return decoded(name, text)


def _name(record: dict[str, object], place: str) -> str:
    """Return the first name that a document has, or else where it is."""
    for value in map(record.get, NAMES):
        own = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
        if isinstance(own, str | int) and not isinstance(own, bool) and own != "":
            return str(own)
    return place
