"""Plain text, and Markdown without its marks: code, links and emphasis; a file is a document."""

import re
from collections.abc import Iterator
from dataclasses import replace

from miner.storage.documents.records import MAX_BYTES, Document, decoded
from miner.storage.places import AnyPath
from miner.storage.streams import read_chunks, split_compression

# Of Markdown, and what they become: an empty line stands before each heading and item.
_MARKS = (
    (re.compile(r"\A---\n.*?\n---\n", re.DOTALL), ""),  # metadata before the text
    (re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE), ""),
    (re.compile(r"<!--(?:(?!<!--|-->).){0,4000}-->", re.DOTALL), ""),
    (re.compile(r"^[ \t]*(#{1,6}|>+|[-*+]|\d+[.)])[ \t]+", re.MULTILINE), "\n"),
    (re.compile(r"(?<![ \t])[ \t]+#+[ \t]*$", re.MULTILINE), ""),
    (re.compile(r"^[ \t|:=*_-]+$", re.MULTILINE), ""),  # rules, and lines of tables
    (re.compile(r"!?\[([^\[\]\n]{0,1000})\](\([^()\n]{0,4000}\)|\[[^\[\]\n]{0,1000}\])"), r"\1"),
    (re.compile(r"(\*\*|__|`+|(?<!\w)[*_]|[*_](?!\w))"), ""),
)


def read(path: AnyPath, name: str) -> Iterator[Document]:
    """Yield the file's document."""
    document = decoded(name, read_bytes(path))
    if split_compression(path)[0] == ".md":
        text = document.text
        for pattern, replacement in _MARKS:
            text = pattern.sub(replacement, text)
        document = replace(document, text=text)
    yield document


def read_bytes(path: AnyPath, most: int = MAX_BYTES) -> bytes:
    """Return a file's bytes, decompressed; of one with more than ``most`` only somewhat more."""
    data = bytearray()
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > most:
            break
    return bytes(data)
