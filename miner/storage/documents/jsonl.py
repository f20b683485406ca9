"""JSON lines with whole documents: ``text``, and what names them; Wikipedia's Cirrus dumps."""

import json
from collections.abc import Iterator

from miner.storage.corpus.lines import MAX_LINE_BYTES, line_batches
from miner.storage.corpus.records import Rejection
from miner.storage.documents.records import Document, checked
from miner.storage.places import AnyPath

NAMES = ("doc", "id", "url", "title")  # the first of these that an object has names it


def read(path: AnyPath, name: str) -> Iterator[Document]:
    """Yield a document for each line; what is no object with a ``text`` is a broken one.

    A Cirrus dump has a line ``{"index": ...}`` before each article, which is passed over.
    """
    number = 0
    for batch in line_batches(path):
        for line in batch.data.split(b"\n"):
            number += 1
            if line and not line.isspace():
                yield from _documents(line, f"{name}:{number}")


def _documents(line: bytes, place: str) -> Iterator[Document]:
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
    if isinstance(record, dict) and "index" in record and "text" not in record:
        return
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        yield Document(name=place, broken=Rejection.MALFORMED)
        return
    named = (record.get(key) for key in NAMES)
    yield checked(next((str(own) for own in named if _is_name(own)), place), text)


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""
