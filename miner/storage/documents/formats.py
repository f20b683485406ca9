"""Which format a file of documents has: a module and a line in ``FORMATS`` for each.

========  ==============================================================================
text      .txt: a file is a document
markdown  .md: the same, without the marks
html      .html, .htm, .xhtml: the same, without menus and the like
jsonl     .jsonl, .ndjson, .json: an object with ``text`` a line; Wikipedia's Cirrus dumps
parquet   .parquet: a column ``text``
warc      .warc, .wet: the pages of an archive
wiki      .xml: the articles of a MediaWiki dump
========  ==============================================================================

All but Parquet may be compressed.
"""

from collections.abc import Callable, Iterator
from importlib import import_module

from miner.storage.documents.records import Found
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression

Reader = Callable[[AnyPath, str], Iterator[Found]]
"""Reads a file whose name in the corpus is given, too; raises CorpusError if it is damaged."""

FORMATS = {
    ".txt": "text",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".warc": "warc",
    ".wet": "warc",
    ".xml": "wiki",
}


def reader_of(path: AnyPath) -> Reader | None:
    """Return what reads a file, by its suffix below that of a compression; None if nothing does."""
    name = FORMATS.get(split_compression(path)[0])
    if name is None:
        return None
    reader: Reader = import_module(f"miner.storage.documents.{name}").read
    return reader
