"""Documents as they are read, and the module that reads each format."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from miner.storage.corpus.records import Rejection, is_encodable
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression

# Longer documents are rejected, so that memory is bounded.
MAX_BYTES = 8 << 20

# The module whose ``read`` reads a file, by suffix. All formats except Parquet may be compressed.
FORMATS = {
    **dict.fromkeys((".txt", ".md", ".mdx", ".markdown"), "files"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "web"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json", ".parquet"), "files"),
    **dict.fromkeys((".warc", ".wet", ".xml"), "web"),
}

LINE_BREAK = "\r"  # an intended line break; wrapped lines end in "\n"
_WIDE_CHARACTER = r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
WIDE_BREAK = re.compile(rf"(?<={_WIDE_CHARACTER})[^\S\r]*\n[^\S\r]*(?={_WIDE_CHARACTER})")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    r"""A document with paragraphs of plain text, or broken with a reason.

    Attributes:
        name: the document's id: a file's path in its folder, a URL, or an article's title. Control
            characters and line ends become spaces, lone surrogates are written as ``\udce9``.
        text: the paragraphs, or the error's message of a broken document, if any.
        broken: the reason, or None.
    """

    name: str
    text: str = ""
    broken: Rejection | None = None

    def __post_init__(self) -> None:
        name = _CONTROL.sub(" ", self.name).encode(errors="backslashreplace").decode()
        object.__setattr__(self, "name", name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDocument:
    """A document that ``extract(name, content)`` must still parse."""

    name: str
    content: bytes | str
    extract: Callable[[str, Any], Document]


AnyDocument = Document | RawDocument

Reader = Callable[[AnyPath, str], Iterator[AnyDocument]]
"""Reads a file by its path and its name in the corpus; raises CorpusError for a damaged file."""


def reader_of(path: AnyPath) -> Reader | None:
    """Return the reader for a file's suffix, or None for an unknown suffix.

    The suffix before that of a compression counts. The case of letters does not matter. If the
    extra ``documents`` is not installed, ModuleNotFoundError is raised.
    """
    name = FORMATS.get(split_compression(path)[0])
    reader: Reader | None = import_module(f"miner.storage.documents.{name}").read if name else None
    return reader


def extract(document: AnyDocument) -> Document:
    """Parse a document, unless it is parsed already.

    If the parser fails, the document is broken as malformed.

    Raises:
        MemoryError: The document needs more memory than the machine has.
    """
    if isinstance(document, Document):
        return document
    try:
        return document.extract(document.name, document.content)
    except MemoryError:
        raise
    except Exception:  # on untested input, parsers raise exceptions of any class
        return Document(name=document.name, broken=Rejection.MALFORMED)


def decode_document(name: str, data: bytes) -> Document:
    """Decode a document, broken if above ``MAX_BYTES``, blank or not UTF-8."""
    if len(data) > MAX_BYTES:
        return Document(name=name, broken=Rejection.TOO_LONG)
    try:
        return check_document(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Document(name=name, broken=Rejection.UNDECODABLE)


def check_document(name: str, text: str) -> Document:
    """Build a text's document, broken if blank or with a lone surrogate."""
    if not text or text.isspace():
        return Document(name=name, broken=Rejection.BLANK)
    if not is_encodable(text):
        return Document(name=name, broken=Rejection.UNDECODABLE)
    return Document(name=name, text=text)


def text_blocks(text: str, size: int, marks: Sequence[str]) -> Iterator[str]:
    """Split a text into blocks of at most ``size`` characters, in order.

    A block ends before the last occurrence, after its start, of the first possible one of
    ``marks``, or else at ``size``. The last block is the rest, empty for an empty text.
    """
    start = 0
    while len(text) - start > size:
        end = start + size
        cuts = (text.rfind(mark, start + 1, end) for mark in marks)
        cut = next((cut for cut in cuts if cut > 0), end)
        yield text[start:cut]
        start = cut
    yield text[start:]


def unwrap(text: str) -> str:
    """Join the lines of a paragraph with spaces, without spaces around it.

    A ``LINE_BREAK`` (carriage return) becomes a line feed, other white space single spaces. Lines
    that break between Chinese or Japanese characters are joined without a space.
    """
    lines = WIDE_BREAK.sub("", text).split(LINE_BREAK)
    return "\n".join(" ".join(line.split()) for line in lines).strip()
