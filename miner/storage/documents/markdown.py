"""Markdown without its marks: code, links and emphasis."""

import re
from collections.abc import Iterator
from dataclasses import replace

from miner.storage.documents.records import Document
from miner.storage.documents.text import read as read_text
from miner.storage.places import AnyPath

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
    """Yield the file's document: paragraphs, with an empty line before each heading and item."""
    for document in read_text(path, name):
        text = document.text
        for pattern, replacement in _MARKS:
            text = pattern.sub(replacement, text)
        yield replace(document, text=text)
