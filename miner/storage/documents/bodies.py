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

# Decoders of the Encoding Standard that Python has under other names than webencodings.
_CODECS = {"gbk": "gb18030", "euc-jp": "euc_jis_2004", "iso-2022-jp": "iso2022_jp_ext"}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']+))""", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"""\s*<\?xml[^>]{1,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_TOP_DOMAIN = re.compile(r"[a-z]{2,24}")
_HEAD_BYTES = 1 << 16  # the start of a page, which declares the encoding
# The largest share of non-ASCII characters that the correct encoding fails to decode.
_MAX_LOST_SHARE = 0.1

_MAX_CODINGS = 5
_READ_BYTES = 1 << 16
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PLAIN = re.compile(rb"[^\x01-\x08\x0e-\x1a\x1c-\x1f]*")  # NUL is in UTF-16, ESC in ISO-2022-JP
_SAMPLE_BYTES = 1024


class CodingError(ValueError):
    """An error about a damaged body, or one in an unknown coding."""


def decode_body(body: bytes, codings: Sequence[str], max_bytes: int) -> bytes:
    """Undo the codings of an HTTP response's body, the last one first.

    ``codings`` are in lower case. A body that begins like gzip or zstd is decoded as such. One that
    is plain HTML in spite of its header is returned unchanged, and a truncated body ends where it
    was cut. A result longer than ``max_bytes`` may be incomplete.

    Raises:
        CodingError: The body is damaged, in an unknown coding, or in more than five.
    """
    if len(codings) > _MAX_CODINGS:
        raise CodingError(f"{len(codings)} codings")
    for coding in (*reversed(codings), ""):
        actual = next((name for magic, name in _MAGIC.items() if body.startswith(magic)), "")
        sample = body[:_SAMPLE_BYTES]
        is_plain = _PLAIN.fullmatch(sample) and (not sample or b"<" in sample)
        if actual or not is_plain:
            try:
                body = _undo_coding(body, actual or coding, max_bytes)
            except (OSError, ValueError, NotImplementedError, zlib.error) as error:
                raise CodingError(f"{coding}: {error}") from error
    return body


def _undo_coding(body: bytes, coding: str, max_bytes: int) -> bytes:
    match coding:
        case "gzip" | "x-gzip":
            return _inflate(body, zlib.MAX_WBITS + 16, max_bytes)
        case "deflate":
            try:
                return _inflate(body, zlib.MAX_WBITS, max_bytes)
            except zlib.error:  # some servers omit zlib's header
                return _inflate(body, -zlib.MAX_WBITS, max_bytes)
        case "br" | "zstd":
            return _decompress_stream(body, {"br": "brotli"}.get(coding, coding), max_bytes)
        case "" | "identity":
            return body
        case _:
            raise CodingError("is not known")


def _inflate(body: bytes, bits: int, max_bytes: int) -> bytes:
    data = bytearray()
    while body and len(data) <= max_bytes:
        stream = zlib.decompressobj(bits)
        try:
            data += stream.decompress(body, max_bytes + 1 - len(data))
        except zlib.error:
            if not data:
                raise
            break  # padding after the last member
        body = stream.unused_data
    return bytes(data)


def _decompress_stream(body: bytes, codec: str, max_bytes: int) -> bytes:
    data = bytearray()
    try:
        stream = pa.CompressedInputStream(io.BytesIO(body), codec)
        while len(data) <= max_bytes and (block := stream.read(_READ_BYTES)):
            data += block
    except OSError as error:
        if not data or "Truncated" not in str(error):
            raise
    return bytes(data)


def decode_text(html: bytes, content_type: str = "", url: str = "") -> str:
    """Decode a web page from bytes.

    A byte order mark is removed, and decides the encoding. Otherwise, candidates are UTF-8, unless
    all bytes are ASCII, then that of the HTTP header ``content_type``, of the page's declaration,
    and of a guess with the top-level domain of ``url``. The first that decodes 90% of characters
    beyond ASCII is used, or else the best. Undecodable bytes become U+FFFD.
    """
    for byte_order_mark, encoding in _BYTE_ORDER_MARKS.items():
        if html.startswith(byte_order_mark):
            return html[len(byte_order_mark) :].decode(encoding, "replace")
    texts: list[tuple[float, int, str]] = []
    for codec in _candidate_codecs(html, content_type, url):
        text = html.decode(codec, "replace")
        non_ascii = sum(map(len, re.findall(r"[^\x00-\x7f]+", text)))
        lost = text.count("\ufffd") + text.count("\x1b")  # ESC remains only in ISO-2022-JP
        lost_share = lost / max(non_ascii, lost, 1)
        if lost_share <= _MAX_LOST_SHARE:
            return text
        texts.append((lost_share, len(texts), text))
    return min(texts)[-1]


def _candidate_codecs(html: bytes, content_type: str, url: str) -> Iterator[str]:
    if not html.isascii():
        yield "utf-8"
    for label in (*_charsets(content_type), *_declarations(html[:_HEAD_BYTES]), _guess(html, url)):
        encoding = webencodings.lookup(label)
        if encoding is None or encoding.name in ("replacement", "x-user-defined"):
            continue
        if b"\0" in html or not encoding.name.startswith("utf-16"):
            yield _CODECS.get(encoding.name, encoding.codec_info.name)


def _charsets(text: str) -> Iterator[str]:
    if match := _CHARSET.search(text):
        yield match[1] or match[2] or match[3] or ""


def _declarations(head: bytes) -> Iterator[str]:
    if match := _XML_DECLARATION.match(head):
        yield match[1].decode()
    tree = etree.HTML(head.replace(b"\0", b""), etree.HTMLParser(encoding="iso-8859-1"))
    for meta in () if tree is None else tree.iter("meta"):
        if label := meta.get("charset"):
            yield label
        elif (meta.get("http-equiv") or "").strip().lower() == "content-type":
            yield from _charsets(meta.get("content") or "")


def _guess(html: bytes, url: str) -> str:
    detector = EncodingDetector()
    detector.feed(html, last=True)
    try:
        domain = (urlsplit(url).hostname or "").rpartition(".")[2]
    except ValueError:
        domain = ""
    is_top_domain = _TOP_DOMAIN.fullmatch(domain)
    return str(detector.guess(tld=domain.encode() if is_top_domain else None, allow_utf8=False))
