"""XML dumps of MediaWiki: the articles, without markup."""

import io
from collections.abc import Iterator

import mwparserfromhell
from lxml import etree

from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents.records import Document, Raw, checked
from miner.storage.documents.web import ChunkStream
from miner.storage.places import AnyPath
from miner.storage.streams import read_chunks

MAX_CHARACTERS = 2 << 20  # MediaWiki itself takes no longer article
BLOCK = 1 << 15  # characters that are parsed together
ARTICLES = "0"  # the name space of what is neither talk nor help


def read(path: AnyPath, name: str) -> Iterator[Raw]:
    """Yield a document for each article that is no redirection; a CorpusError: it is no XML.

    Entities that the file defines are not expanded, and nothing is fetched.
    """
    stream = io.BufferedReader(ChunkStream(read_chunks(path)))
    pages = etree.iterparse(
        stream, tag="{*}page", resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        for _, page in pages:
            title, text = page.findtext("{*}title") or "", page.findtext("{*}revision/{*}text")
            is_article = page.findtext("{*}ns", ARTICLES) == ARTICLES
            if is_article and page.find("{*}redirect") is None:
                yield Raw(name=title, content=text or "", extract=article)
            page.clear()
            while page.getprevious() is not None:  # or the tree grows with the file
                del page.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise CorpusError(f"{path}: is not a whole XML file ({error}); fetch it again") from error


def article(title: str, text: str) -> Document:
    """Return the document of an article."""
    if len(text) > MAX_CHARACTERS:
        return Document(name=title, broken=Rejection.TOO_LONG)
    plain = "".join(mwparserfromhell.parse(block).strip_code() for block in _blocks(text))
    return checked(title, plain.replace("\n", "\n\n"))


def _blocks(text: str) -> Iterator[str]:
    """Yield a long text in blocks, which end before a heading, or a paragraph, where there is one.

    The parser's time grows with the square of what is opened and never closed.
    """
    start = 0
    while len(text) - start > BLOCK:
        end = start + BLOCK
        cuts = (text.rfind(mark, start + 1, end) for mark in ("\n==", "\n\n"))
        cut = next((cut for cut in cuts if cut > 0), end)
        yield text[start:cut]
        start = cut
    yield text[start:]
