"""Documents in web pages, WARC and WET archives, and MediaWiki dumps."""

import io
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import mwparserfromhell
import trafilatura
from lxml import etree
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader, DecompressingBufferedReader
from warcio.exceptions import ArchiveLoadFailed

from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents.bodies import CodingError, decode_body, decode_text
from miner.storage.documents.files import read_bytes
from miner.storage.documents.records import (
    LINE_BREAK,
    MAX_BYTES,
    AnyDocument,
    Document,
    RawDocument,
    check_document,
    decode_document,
    text_blocks,
    unwrap,
)
from miner.storage.places import AnyPath, PlaceError
from miner.storage.streams import ChunkStream, read_chunks, split_compression

MAX_CHARACTERS = 2 << 20  # MediaWiki accepts no longer article
BLOCK = 1 << 15  # characters of an article that are parsed together
ARTICLES = "0"  # the name space of articles, without talk and help
MAX_HEADER_BYTES = 1 << 20  # for the headers of a record, which warcio keeps in memory

# A mark before listings, which stay in the tree. Without, trafilatura treats their titles as menus.
_LISTING_MARK = "\u2bd1\u2bd1"
# Elements without prose: listings, and paragraphs without a letter outside of code.
_CODE = ("code", "kbd", "samp", "tt", "var")
_WITHIN_CODE = " or ".join(f"ancestor::{name}" for name in _CODE)
_HOLDERS = ("p", "li", "td", "th", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "summary")
_LISTINGS = (
    etree.XPath("//pre | //listing | //xmp | //plaintext | //textarea | //code[br]"),
    etree.XPath(
        f"//*[{' or '.join(f'self::{name}' for name in _HOLDERS)}]"
        f"[{' or '.join(f'.//{name}' for name in _CODE)}][not(.//text()[not({_WITHIN_CODE})]"
        "[translate(normalize-space(), ' .,:;|/()[]', '')])]"
    ),
)
_BLOCKS = frozenset({"body", "cell", "div", "head", "item", "list", "p", "quote", "row", "table"})

_PAGE_TYPES = ("text/html", "application/xhtml+xml")


def read(path: AnyPath, name: str) -> Iterator[AnyDocument]:
    """Yield the page of a file, or the documents of an archive or a dump.

    Of an archive, only conversions (WET) and responses in (X)HTML with status 200 are documents,
    and of a dump, only articles, not redirects. Their names are addresses and titles, a page's is
    ``name``. Errors of ``read_chunks`` are raised, and CorpusError for a damaged archive or dump.
    """
    suffix = split_compression(path)[0]
    if suffix == ".xml":
        yield from _read_dump(path)
    elif suffix in (".warc", ".wet"):
        yield from _read_archive(path)
    else:
        yield RawDocument(name=name, content=read_bytes(path), extract=read_page)


def _read_archive(path: AnyPath) -> Iterator[AnyDocument]:
    stream = io.BufferedReader(ChunkStream(read_chunks(path)))
    try:
        records = ArchiveIterator(stream)
        records.INC_RECORD = ""  # otherwise it prints warnings about records
        records.reader = _Reader(records.fh)
        for record in records:
            records.reader.start_record()
            yield from _record_documents(record)
    except (CorpusError, PlaceError, MemoryError):
        raise
    except Exception as error:  # on untested archives, warcio raises exceptions of any class
        cause = " ".join(str(error).split())[:80]  # some messages quote the archive
        raise CorpusError(
            f"{path}: is a damaged web archive ({cause!r}); fetch it again"
        ) from error


def read_page(
    name: str, html: bytes, content_type: str = "", codings: Sequence[str] = ()
) -> Document:
    """Return the document of a page, without menus and code listings.

    It is broken if longer than ``MAX_BYTES``, blank, or its codings cannot be undone. A ``name``
    that is an address helps to guess the encoding. ``content_type`` is the HTTP header. Codings of
    the body, such as ``gzip``, are in lower case and in the order of their application.
    """
    try:
        html = decode_body(html, codings, MAX_BYTES)
    except CodingError:
        return Document(name=name, broken=Rejection.UNDECODABLE)
    if len(html) > MAX_BYTES:
        return Document(name=name, broken=Rejection.TOO_LONG)
    tree: Any = trafilatura.load_html(decode_text(html, content_type, name))
    if tree is None:
        return Document(name=name, broken=Rejection.BLANK)
    for listing in [element for listings in _LISTINGS for element in listings(tree)]:
        text = listing.text_content()
        listing.clear(keep_tail=True)
        listing.text = _LISTING_MARK + text
    etree.strip_tags(tree, *_CODE)  # otherwise spaces around them are lost
    result: Any = trafilatura.bare_extraction(tree, include_comments=False, favor_recall=True)
    return check_document(name, "" if result is None else "\n\n".join(_paragraphs(result.body)))


def _paragraphs(body: Any) -> Iterator[str]:  # noqa: ANN401 - lxml has no types
    pieces: list[str] = []
    for event, element in etree.iterwalk(body, events=("start", "end")):
        is_start = event == "start"
        if element.tag in _BLOCKS:
            text = "".join(pieces)
            pieces.clear()
            if _LISTING_MARK not in text and (paragraph := unwrap(text)):
                yield paragraph
        elif is_start and element.tag == "lb":
            pieces.append(LINE_BREAK)
        pieces.append((element.text if is_start else element.tail) or "")


def _record_documents(record: Any) -> Iterator[AnyDocument]:  # noqa: ANN401 - warcio has no types
    url = record.rec_headers.get_header("WARC-Target-URI") or ""
    if record.rec_type == "conversion":
        yield decode_document(url, record.content_stream().read(MAX_BYTES + 1))
    elif record.rec_type == "response" and record.http_headers is not None:
        content_type = record.http_headers.get_header("Content-Type") or ""
        kind = content_type.partition(";")[0].strip().lower()
        if kind in _PAGE_TYPES and record.http_headers.get_statuscode() == "200":
            stream, codings = _body_stream(record)
            extract = partial(read_page, content_type=content_type, codings=codings)
            yield RawDocument(name=url, content=stream.read(MAX_BYTES + 1), extract=extract)


def _body_stream(record: Any) -> tuple[Any, list[str]]:  # noqa: ANN401
    """Return the stream of a page without chunks, and its codings in order."""
    codings = [
        coding.strip().lower()
        for header in ("content-encoding", "transfer-encoding")
        for name, value in record.http_headers.headers
        if name.lower() == header
        for coding in value.split(",")
    ]
    remaining = [coding for coding in codings if coding not in ("", "chunked")]
    if "chunked" in codings:
        return ChunkedDataReader(record.raw_stream), remaining
    return record.raw_stream, remaining


class _Reader(DecompressingBufferedReader):  # type: ignore[misc]  # without types
    """A reader that limits the size of headers, which warcio does not."""

    def __init__(self, stream: object) -> None:
        super().__init__(stream)
        self.start_record()

    def start_record(self) -> None:
        self._left = MAX_HEADER_BYTES

    def read(self, length: int | None = None) -> bytes:
        self.start_record()
        return bytes(super().read(length))

    def readline(self, length: int | None = None) -> bytes:
        line: bytes = super().readline(self._left if length is None else min(length, self._left))
        self._left -= len(line)
        if not self._left:
            raise ArchiveLoadFailed(f"headers of more than {MAX_HEADER_BYTES:,} bytes")
        return line


def _read_dump(path: AnyPath) -> Iterator[RawDocument]:
    stream = io.BufferedReader(ChunkStream(read_chunks(path)))
    pages = etree.iterparse(
        stream, tag="{*}page", resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        for _, element in pages:
            title = element.findtext("{*}title") or ""
            text = element.findtext("{*}revision/{*}text") or ""
            is_article = element.findtext("{*}ns", ARTICLES) == ARTICLES
            if is_article and element.find("{*}redirect") is None:
                yield RawDocument(name=title, content=text, extract=read_article)
            element.clear()
            while element.getprevious() is not None:  # otherwise the tree grows with the file
                del element.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise CorpusError(
            f"{path}: is cut off or not valid XML ({error}); fetch it again, or correct it"
        ) from error


def read_article(title: str, text: str) -> Document:
    """Return the document of MediaWiki markup, broken if too long or blank."""
    if len(text) > MAX_CHARACTERS:
        return Document(name=title, broken=Rejection.TOO_LONG)
    # The parser's time grows with the square of the number of unclosed brackets.
    blocks = text_blocks(text, BLOCK, ("\n==", "\n\n"))
    plain = "".join(mwparserfromhell.parse(block).strip_code() for block in blocks)
    return check_document(title, plain.replace("\n", "\n\n"))
