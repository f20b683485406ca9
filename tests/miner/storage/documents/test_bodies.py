"""Bodies of web pages: every coding and encoding, wrong labels, and what is damaged."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("chardetng_py")

from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents.bodies import CodingError, decode_body, decode_text
from tests.miner.storage.documents.test_documents import ARTICLE, WIKI, page, split

TEXTS = {
    "windows-1250": "Řidiči měli potíže. Žáci zůstali doma, šťastní a veselí.",
    "iso-8859-2": "Zażółć gęślą jaźń. Święto było piękne, a śnieg świecił.",
    "windows-1254": "Şişli'de yağmur yağdı. İstanbul ıslandı, çocuklar eğlendi.",
    "windows-1252": "Où est passée l’élève ? Elle coûte 5 € à l’œil.",
    "shift_jis": "雨が降って川の水が増えた。①髙い山に登った。",
    "euc-jp": "雨が降って川の水が増えた。①橋は閉じられた。",
    "iso-2022-jp": "雨が降って川の水が増えた。",
    "gb2312": "昨天下午全城开始下大雪。朱镕基說話了。",
    "gb18030": "昨天下午全城开始下大雪。㐀𠀀。",
    "big5": "昨天下午全城開始下大雪。",
    "euc-kr": "어제 오후에 눈이 내렸다. 똠방각하.",
    "koi8-r": "Вчера после обеда пошёл густой снег.",
    "windows-1251": "Вчера после обеда пошёл густой снег.",
    "windows-1253": "Χθες το απόγευμα άρχισε να χιονίζει.",
    "windows-1255": "אתמול אחר הצהריים ירד שלג.",
    "windows-1256": "نزل المطر طوال الليل. پاکستان",
    "windows-1257": "Vakar po pietų mieste pradėjo snigti. Žmonės liko namie.",
    "tis-620": "เมื่อวานบ่ายหิมะตกทั่วเมือง",
    "utf-8": "Včera 雨 снег.",
}
PYTHON = {"gb2312": "gb18030", "shift_jis": "cp932", "euc-jp": "euc_jis_2004", "euc-kr": "cp949"}


def encoded(label: str, head: str = "") -> bytes:
    html = f"<html><head>{head}<title>t</title></head><body><p>{TEXTS[label]}</p></body></html>"
    return html.encode(PYTHON.get(label, label))


def reads(label: str, content_type: str = "text/html", head: str = "", url: str = "") -> bool:
    return TEXTS[label] in decode_text(encoded(label, head), content_type, url)


@pytest.mark.parametrize("label", TEXTS)
def test_the_header_names_the_encoding(label: str) -> None:
    for form in (
        "text/html; charset={}",
        'text/html;charset="{}"',
        "text/html; charset='{}'",
        "text/html; boundary=x ; CharSet = {} ; x=y",
    ):
        assert reads(label, form.format(label))
        assert reads(label, form.format(f"{label.upper()}"))
    # A header is believed before the page.
    if label != "iso-2022-jp":
        assert reads(label, f"text/html; charset={label}", '<meta charset="windows-1258">')


@pytest.mark.parametrize("label", TEXTS)
@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="{}">',
        "<META CHARSET={} />",
        "<!-- <meta charset=ibm866> --><meta\nname=x><meta charset=' {} '>",
        '<script>"<meta charset=ibm866>"</script><meta charset={}>',
        '<meta http-equiv="Content-Type" content="text/html; charset={}">',
        "<meta content='text/html;charset=\"{}\"' HTTP-EQUIV=content-type>",
        "<style>" + "p{{}} " * 500 + '</style><meta charset="{}">',
    ],
)
def test_the_page_names_the_encoding(label: str, head: str) -> None:
    head = head.format(label)
    assert reads(label, head=head)
    assert reads(label, "text/html; charset=none-such", head)
    assert reads(label, "text/html; charset=", head)


@pytest.mark.parametrize("label", sorted({*TEXTS} - {"tis-620", "gb18030"}))
@pytest.mark.parametrize("wrong", ["", "utf-8", "x-unknown", "utf-16", "iso-2022-kr", "'"])
def test_where_nothing_names_it_rightly_it_is_guessed(label: str, wrong: str) -> None:
    assert reads(label, f"text/html; charset={wrong}", f"<meta charset={wrong}>")


def test_the_country_of_an_address_helps_to_guess() -> None:
    html = "<p>Snieg i žena.".encode("windows-1250")
    assert "žena" in decode_text(html, url="http://example.cz/a")
    for url in ("http://[", "http://1.2.3.4/", "x.html", "http://EXAMPLE.РФ/", ""):
        decode_text(html, url=url)


@pytest.mark.parametrize("label", ["iso-8859-1", "gb2312", "windows-1251", "utf-16le"])
def test_what_is_utf_8_in_all_its_parts_is_utf_8(label: str) -> None:
    """Unlike in browsers: servers that call every page Latin-1 are frequent."""
    assert reads("utf-8", f"text/html; charset={label}", f"<meta charset={label}>")


def test_a_damaged_character_changes_no_encoding() -> None:
    html = "<p>Žluťoučký kůň úpěl ďábelské ódy. ".encode() * 3 + b"\xc5</p>"
    for content_type in ("text/html", "text/html; charset=utf-8", "text/html; charset=latin1"):
        assert "Žluťoučký kůň" in decode_text(html, content_type)
        assert "Žluťoučký kůň" in decode_text(html[:-5], content_type)  # cut within a character
    html = encoded("windows-1253").replace(b"<p>", b"<p>\xd2")
    assert TEXTS["windows-1253"] in decode_text(html, "text/html; charset=windows-1253")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_mark_is_believed_first(encoding: str) -> None:
    text = "<meta charset=koi8-r><p>Řidiči měli potíže."
    assert decode_text(text.encode(encoding), "text/html; charset=big5") == text


@pytest.mark.parametrize("order", ["le", "be"])
def test_wide_characters_without_a_mark(order: str) -> None:
    html = "<p>Řidiči měli 雨.".encode(f"utf-16-{order}")
    assert "Řidiči měli 雨." in decode_text(html, f"text/html; charset=UTF-16{order}")


def test_xhtml_names_its_encoding() -> None:
    html = "<?xml version='1.0' encoding='iso-8859-2'?>\n<p>Včera sněžilo, žáci".encode(
        "iso-8859-2"
    )
    assert "Včera sněžilo, žáci" in decode_text(html)


def test_local_pages(tmp_path: Path) -> None:
    pytest.importorskip("trafilatura")
    expected = {}
    for number, label in enumerate(["iso-8859-2", "windows-1254", "shift_jis"]):
        html = page(f"<p>{TEXTS[label]}</p>")
        named = html.replace("<head>", f"<head><meta charset={label}>")
        (tmp_path / f"{number}-named.html").write_bytes(named.encode(PYTHON.get(label, label)))
        (tmp_path / f"{number}.htm").write_bytes(html.encode(PYTHON.get(label, label)))
        expected |= dict.fromkeys((f"{number}-named.html", f"{number}.htm"), TEXTS[label])
    found: dict[str, str] = {}
    for row in split(tmp_path)[0]:
        found[row["doc"]] = found.get(row["doc"], "") + row["text"].replace(" ", "")
    assert found == {name: text.replace(" ", "") for name, text in expected.items()}


@given(st.binary(max_size=300), st.text(max_size=40), st.text(max_size=40))
@example(b"\xff<meta charset=replacement>", "charset=x-user-defined", "http://a.cz")
@example(b"", "charset=utf-16", "")
@example(b"\0\xff\0", "charset=utf-16", "")
def test_any_bytes_are_some_text(html: bytes, label: str, url: str) -> None:
    for content_type in (label, f"text/html; charset={label}"):
        assert isinstance(decode_text(html, content_type, url), str)
        decode_text(b"<meta charset='" + label.encode("utf-8", "replace") + b"'>" + html)


def test_a_dump_in_another_encoding(tmp_path: Path) -> None:
    pytest.importorskip("mwparserfromhell")
    dump = WIKI.format(ARTICLE.format("Sníh", 0, "", "Včera sněžilo."))
    xml = f"<?xml version='1.0' encoding='iso-8859-2'?>{dump}"
    (tmp_path / "dump.xml").write_bytes(xml.encode("iso-8859-2"))
    assert [row["text"] for row in split(tmp_path)[0]] == ["Včera sněžilo."]


# --- codings


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


def arrow(codec: str) -> Callable[[bytes], bytes]:
    return lambda data: bytes(pa.compress(data, codec=codec, asbytes=True))


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": arrow("brotli"),
    "zstd": arrow("zstd"),
    "identity": bytes,
}
MOST = 1 << 20
HTML = page("<p>It rains today in the mountains.</p>" * 40).encode()


@pytest.mark.parametrize("coding", CODINGS)
def test_codings(coding: str) -> None:
    body = CODINGS[coding](HTML)
    assert decode_body(body, [coding], MOST) == HTML
    assert decode_body(raw_deflate(HTML), ["deflate"], MOST) == HTML
    for second, pack in CODINGS.items():
        assert decode_body(pack(body), [coding, second], MOST) == HTML


@pytest.mark.parametrize("coding", [*CODINGS, "compress", "sdch", "utf-8", "none", "text/html", ""])
def test_pages_that_are_plain_whatever_the_header_says(coding: str) -> None:
    for html in (HTML, b"\xef\xbb\xbf" + HTML, "<p>雨".encode("utf-16"), b"", b"<p>\x1b$B"):
        assert decode_body(html, [coding], MOST) == html


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("label", ["br", "deflate", "identity", "unknown"])
def test_codings_under_the_label_of_another(coding: str, label: str) -> None:
    assert decode_body(CODINGS[coding](HTML), [label], MOST) == HTML
    assert decode_body(CODINGS[coding](HTML), [], MOST) == HTML


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_what_is_cut_short_is_read_as_far_as_it_goes(coding: str) -> None:
    html = b"<html>" + b"".join(b"<p>Paragraph %d, %x.</p>" % (n, n**9) for n in range(40_000))
    body = CODINGS[coding](html)
    begin = decode_body(body[: len(body) // 2], [coding], 1 << 24)
    assert html.startswith(begin)
    assert len(begin) > len(html) / 5


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_no_more_is_unpacked_than_is_asked_for(coding: str) -> None:
    bomb = CODINGS[coding](b"<" + bytes(64 << 20))
    assert MOST < len(decode_body(bomb, [coding], MOST)) < 2 * MOST
    assert len(decode_body(CODINGS[coding](bomb), [coding] * 2, MOST)) < 2 * MOST
    with pytest.raises(CodingError):
        decode_body(bomb, [coding] * 9, MOST)


def test_bodies_in_unknown_codings() -> None:
    for coding in ("compress", "dcb", "exi", "br"):
        with pytest.raises(CodingError):
            decode_body(bytes(range(256)) * 9, [coding], MOST)


@given(
    st.sampled_from([*CODINGS]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    st.integers(0, 400),
    st.lists(st.sampled_from([*CODINGS, "", "x"]), max_size=3),
)
def test_damaged_bodies_raise_nothing_else(
    coding: str, changes: list[tuple[int, int]], stop: int, labels: list[str]
) -> None:
    body = bytearray(CODINGS[coding](HTML))
    for place, value in changes:
        body[place % len(body)] = value
    for damaged in (bytes(body), bytes(body[:stop]), bytes(body) + b"\r\n"):
        try:
            assert len(decode_body(damaged, [*labels, coding], MOST)) <= 2 * MOST
        except CodingError:
            pass


# --- archives


def response(body: bytes, *headers: str) -> bytes:
    head = "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode()
    warc = [
        *("WARC/1.0", "WARC-Type: response", "WARC-Target-URI: http://a.example/"),
        *(
            "Content-Type: application/http; msgtype=response",
            f"Content-Length: {len(head + body)}",
        ),
    ]
    return "\r\n".join([*warc, "", ""]).encode() + head + body + b"\r\n\r\n"


GOOD = response(HTML, "Content-Type: text/html")


@pytest.mark.parametrize(
    "label", ["windows-1250", "iso-8859-2", "windows-1254", "euc-jp", "gb2312"]
)
def test_the_charset_of_a_record(tmp_path: Path, label: str) -> None:
    pytest.importorskip("warcio")
    body = page(f"<p>{TEXTS[label]}</p>").encode(PYTHON.get(label, label))
    for number, header in enumerate((f"Content-Type: text/html; charset={label}", "X: y")):
        packed = gzip.compress(body) if number == 0 else body
        lines = [header, "content-type: text/html", "Content-Encoding: GZIP"][: 3 - number]
        if number == 0:
            lines.remove("content-type: text/html")
        (tmp_path / f"{number}.warc").write_bytes(response(packed, *lines))
        rows, _ = split(tmp_path / f"{number}.warc")
        assert "".join(row["text"] for row in rows).replace(" ", "") == TEXTS[label].replace(
            " ", ""
        )


def test_codings_of_records(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    chunked = b"".join(
        b"%x\r\n%s\r\n" % (len(piece), piece)
        for piece in (gzip.compress(HTML)[:50], gzip.compress(HTML)[50:], b"")
    )
    kind = "Content-Type: text/html"
    records = [
        *(
            response(pack(HTML), kind, f"Content-Encoding: {name}")
            for name, pack in CODINGS.items()
        ),
        response(arrow("brotli")(gzip.compress(HTML)), kind, "Content-Encoding: gzip, BR"),
        response(
            arrow("zstd")(gzip.compress(HTML)),
            *(kind, "Content-Encoding: gzip", "Content-Encoding: zstd"),
        ),
        response(chunked, kind, "Content-Encoding: gzip", "Transfer-Encoding: Chunked"),
        response(chunked, kind, "Transfer-Encoding: gzip, chunked"),
        response(bytes(range(256)) * 9, kind, "Content-Encoding: exi"),
        response(gzip.compress(bytes(32 << 20)), kind, "Content-Encoding: gzip"),
        response(arrow("brotli")(bytes(32 << 20)), kind, "Content-Encoding: br"),
        GOOD,
    ]
    (tmp_path / "a.warc").write_bytes(b"".join(records))
    rows, counts = split(tmp_path / "a.warc")
    assert counts.broken == {Rejection.UNDECODABLE: 1, Rejection.TOO_LONG: 2}
    assert counts.documents == len(records)
    assert len({row["text"] for row in rows}) == 1


@given(
    st.sampled_from([*CODINGS]),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), max_size=5),
    st.binary(max_size=30),
)
def test_damaged_archives_raise_nothing_but_a_corpus_error(
    tmp_path_factory: pytest.TempPathFactory,
    coding: str,
    changes: list[tuple[int, int]],
    inserted: bytes,
) -> None:
    from miner.storage.documents.records import extract
    from miner.storage.documents.web import read

    html = CODINGS[coding](page("<p>It rains.</p>").encode())
    headers = ("Content-Type: text/html; charset=x", f"Content-Encoding: {coding}")
    data = bytearray(response(html, *headers, "Transfer-Encoding: chunked") + GOOD)
    for place, value in changes:
        data[place % len(data)] = value
    place = sum(value for _, value in changes)
    path = tmp_path_factory.getbasetemp() / "damaged.warc"
    path.write_bytes(data[:place] + inserted + data[place:])
    try:
        for found in read(path, "damaged.warc"):
            extract(found)
    except CorpusError as error:
        assert str(error).isprintable()
