"""Web pages: the text of a page without menus, by trafilatura."""

from collections.abc import Iterator

import trafilatura

from miner.storage.corpus.records import Rejection
from miner.storage.documents.records import MAX_BYTES, Document, Raw, checked
from miner.storage.documents.text import read_bytes
from miner.storage.places import AnyPath


def read(path: AnyPath, name: str) -> Iterator[Raw]:
    """Yield the file's document.

    Raises:
        CorpusError: it cannot be read.
    """
    yield Raw(name=name, content=read_bytes(path), extract=page)


def page(name: str, html: bytes) -> Document:
    """Return the document of a page; a paragraph a line, in the encoding that the page names."""
    if len(html) > MAX_BYTES:
        return Document(name=name, broken=Rejection.TOO_LONG)
    text = trafilatura.extract(
        html, include_comments=False, include_formatting=False, favor_recall=True
    )
    return checked(name, (text or "").replace("\n", "\n\n"))
