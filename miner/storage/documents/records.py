"""What reading documents gives, one after the other, and which module reads files of a format."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from miner.storage.corpus.records import Rejection
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression

# A longer document is counted and left out, so that memory is bounded by what one may take.
MAX_BYTES = 8 << 20

# The module whose ``read`` reads a file, by its suffix; all but Parquet may be compressed.
FORMATS = {
    **dict.fromkeys((".txt", ".md", ".mdx", ".markdown"), "files"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "web"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json", ".parquet"), "files"),
    **dict.fromkeys((".warc", ".wet", ".xml"), "web"),
}

LINE_BREAK = "\r"  # a line's end that is meant, among those of wrapped lines
_WIDE = r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_WIDE_BREAK = re.compile(rf"(?<={_WIDE})[^\S\r]*\n[^\S\r]*(?={_WIDE})")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    r"""A document: paragraphs in plain text, or else why there are none, and maybe the error.

    ``name`` is its id: the file's place in its folder, a page's URL, an article's title; control
    characters in it are spaces, and half characters are written as ``\udce9``.
    """

    name: str
    text: str = ""
    broken: Rejection | None = None

    def __post_init__(self) -> None:
        name = _CONTROL.sub(" ", self.name).encode(errors="backslashreplace").decode()
        object.__setattr__(self, "name", name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A document as it was found; getting its text takes time."""

    name: str
    content: bytes | str
    extract: Callable[[str, Any], Document]


Found = Document | Raw

Reader = Callable[[AnyPath, str], Iterator[Found]]
"""Reads a file whose name in the corpus is given, too; a CorpusError says that it is damaged."""


def reader_of(path: AnyPath) -> Reader | None:
    """Return what reads a file, by its suffix below that of a compression; None if nothing does."""
    name = FORMATS.get(split_compression(path)[0])
    reader: Reader | None = import_module(f"miner.storage.documents.{name}").read if name else None
    return reader


def read_found(found: Found) -> Document:
    """Return the document that was found, a broken one if the parser fails."""
    if isinstance(found, Document):
        return found
    try:
        return found.extract(found.name, found.content)
    except MemoryError:
        raise
    except Exception:  # on pages that nobody has tried, parsers raise whatever they meet
        return Document(name=found.name, broken=Rejection.MALFORMED)


def decoded(name: str, data: bytes) -> Document:
    """Return the document of bytes in UTF-8; a byte order mark is no part of it."""
    if len(data) > MAX_BYTES:
        return Document(name=name, broken=Rejection.TOO_LONG)
    try:
        return checked(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Document(name=name, broken=Rejection.UNDECODABLE)


def checked(name: str, text: str) -> Document:
    """Return the document, or why this text is none: empty, or with half characters (JSON)."""
    if not text or text.isspace():
        return Document(name=name, broken=Rejection.BLANK)
    try:
        text.encode()
    except UnicodeEncodeError:
        return Document(name=name, broken=Rejection.UNDECODABLE)
    return Document(name=name, text=text)


def text_blocks(text: str, size: int, marks: Sequence[str]) -> Iterator[str]:
    """Yield a text in blocks that end before the first mark found."""
    start = 0
    while len(text) - start > size:
        end = start + size
        cuts = (text.rfind(mark, start + 1, end) for mark in marks)
        cut = next((cut for cut in cuts if cut > 0), end)
        yield text[start:cut]
        start = cut
    yield text[start:]


def unwrapped(text: str) -> str:
    """Join the lines of a paragraph, except at a ``LINE_BREAK``."""
    lines = _WIDE_BREAK.sub("", text).split(LINE_BREAK)
    return "\n".join(" ".join(line.split()) for line in lines).strip()
