"""Decoding of web pages, from codings such as gzip to encodings of text."""

import codecs
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import pyarrow as pa
import webencodings
from chardetng_py import EncodingDetector
from lxml import etree

# The standard's decoders that Python has under other names than webencodings looks up.
_CODECS = {"gbk": "gb18030", "euc-jp": "euc_jis_2004", "iso-2022-jp": "iso2022_jp_ext"}
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']+))""", re.IGNORECASE)
_XML = re.compile(rb"""\s*<\?xml[^>]{1,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_TOP_DOMAIN = re.compile(r"[a-z]{2,24}")
_HEAD_BYTES = 1 << 16  # of a page, where its encoding is named
# The share of characters beyond ASCII that the right encoding may fail to decode.
_MAX_LACKING = 0.1

_MAX_CODINGS = 5
_PIECE_BYTES = 1 << 16
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BY_MAGIC = {_GZIP: "gzip", _ZSTD: "zstd"}
_PLAIN = re.compile(rb"[^\x01-\x08\x0e-\x1a\x1c-\x1f]*")  # NUL is in UTF-16, ESC in ISO-2022-JP
_SAMPLE_BYTES = 1024


class CodingError(ValueError):
    """A body that is in no coding that is known, or damaged."""


def decode_body(body: bytes, codings: Sequence[str], most: int) -> bytes:
    """Undo the codings of a body, up to somewhat more than ``most`` bytes.

    Codings are also known by their first bytes, and a body that is plain in spite of its header is
    returned as it is. A body that was cut short ends where it was cut.

    Raises:
        CodingError: The body is damaged, or in another coding.
    """
    if len(codings) > _MAX_CODINGS:
        raise CodingError(f"{len(codings)} codings")
    for coding in (*reversed(codings), ""):
        seen = next((own for magic, own in _BY_MAGIC.items() if body.startswith(magic)), "")
        if seen or not _is_plain(body):
            try:
                body = _decoded(body, seen or coding, most)
            except (OSError, ValueError, NotImplementedError, zlib.error) as error:
                raise CodingError(f"{coding}: {error}") from error
    return body


def _is_plain(body: bytes) -> bool:
    sample = body[:_SAMPLE_BYTES]
    return _PLAIN.fullmatch(sample) is not None and (not sample or b"<" in sample)


def _decoded(body: bytes, coding: str, most: int) -> bytes:
    match coding:
        case "gzip" | "x-gzip":
            return _inflated(body, zlib.MAX_WBITS + 16, most)
        case "deflate":
            try:
                return _inflated(body, zlib.MAX_WBITS, most)
            except zlib.error:  # without zlib's header, as some servers send it
                return _inflated(body, -zlib.MAX_WBITS, most)
        case "br" | "zstd":
            return _streamed(body, {"br": "brotli"}.get(coding, coding), most)
        case "" | "identity":
            return body
        case _:
            raise CodingError("is not known")


def _inflated(body: bytes, bits: int, most: int) -> bytes:
    data = bytearray()
    while body and len(data) <= most:
        stream = zlib.decompressobj(bits)
        try:
            data += stream.decompress(body, most + 1 - len(data))
        except zlib.error:
            if not data:
                raise
            break  # padding after the last member
        body = stream.unused_data
    return bytes(data)


def _streamed(body: bytes, codec: str, most: int) -> bytes:
    data = bytearray()
    try:
        stream = pa.CompressedInputStream(io.BytesIO(body), codec)
        while len(data) <= most and (piece := stream.read(_PIECE_BYTES)):
            data += piece
    except OSError as error:
        if not data or "Truncated" not in str(error):
            raise
    return bytes(data)


def decode_text(html: bytes, content_type: str = "", url: str = "") -> str:
    """Decode a page by its mark, header, declaration, or else a guess.

    Other than in browsers, a page that is UTF-8 in all its parts is read as UTF-8 whatever it
    says, and an encoding that lacks many of a page's characters is passed over.

    Args:
        html: the page.
        content_type: the header of that name.
        url: the page's address, whose country helps to guess.
    """
    for mark, encoding in _MARKS.items():
        if html.startswith(mark):
            return html[len(mark) :].decode(encoding, "replace")
    texts: list[tuple[float, int, str]] = []
    for codec in _candidates(html, content_type, url):
        text = html.decode(codec, "replace")
        beyond = sum(map(len, re.findall(r"[^\x00-\x7f]+", text)))
        lost = text.count("\ufffd") + text.count("\x1b")  # the latter in ISO-2022-JP alone
        lacking = lost / max(beyond, lost, 1)
        if lacking <= _MAX_LACKING:
            return text
        texts.append((lacking, len(texts), text))
    return min(texts)[-1]


def _candidates(html: bytes, content_type: str, url: str) -> Iterator[str]:
    """Yield Python's names of a page's possible encodings, best first."""
    if not html.isascii():
        yield "utf-8"
    for label in (*_charsets(content_type), *_declared(html[:_HEAD_BYTES]), _guess(html, url)):
        encoding = webencodings.lookup(label)
        if encoding is None or encoding.name in ("replacement", "x-user-defined"):
            continue
        if b"\0" in html or not encoding.name.startswith("utf-16"):
            yield _CODECS.get(encoding.name, encoding.codec_info.name)


def _charsets(text: str) -> Iterator[str]:
    if match := _CHARSET.search(text):
        yield match[1] or match[2] or match[3] or ""


def _declared(head: bytes) -> Iterator[str]:
    """Yield the encodings that a page says it is in."""
    if match := _XML.match(head):
        yield match[1].decode()
    tree = etree.HTML(head.replace(b"\0", b""), etree.HTMLParser(encoding="iso-8859-1"))
    for meta in () if tree is None else tree.iter("meta"):
        if label := meta.get("charset"):
            yield label
        elif (meta.get("http-equiv") or "").strip().lower() == "content-type":
            yield from _charsets(meta.get("content") or "")


def _guess(html: bytes, url: str) -> str:
    """Guess an encoding as Firefox does."""
    detector = EncodingDetector()
    detector.feed(html, last=True)
    try:
        domain = (urlsplit(url).hostname or "").rpartition(".")[2]
    except ValueError:
        domain = ""
    known = _TOP_DOMAIN.fullmatch(domain)
    return str(detector.guess(tld=domain.encode() if known else None, allow_utf8=False))
