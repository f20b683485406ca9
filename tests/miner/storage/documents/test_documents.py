"""Files of documents to sentences: every format, and what is wrong with them."""

import gzip
import io
import json
import time
import tracemalloc
from collections import Counter

import pytest

from miner.languages import identifier
from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents import records
from miner.storage.documents.records import Document
from miner.storage.documents.sentences import clean_sentence, document_sentences, is_wrapped
from miner.storage.documents.split import (
    SplitCounts,
    document_files,
    read_documents,
    split_documents,
)
from tests.growth import assert_linear

PROSE = "It rains. Dr. No stays at home.\n\nWhy not?"
SENTENCES = ["It rains.", "Dr. No stays at home.", "Why not?"]


def split(path):
    counts = SplitCounts()
    tables = split_documents(read_documents(document_files(path)), counts, language="en")
    rows = [row for table in tables for row in table.to_pylist()]
    assert counts.sentences == len(rows)
    return rows, counts


def texts(path):
    return [row["text"] for row in split(path)[0]]


def page(body):
    return f"<html><head><title>T</title></head><body><article>{body}</article></body></html>"


def test_a_folder_with_several_formats_and_folders(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").write_text(PROSE)
    (tmp_path / "deep" / "b.md").write_text(
        "# Heading\n\nIt *really* [rains](x.html).\n\n```\ncode. More code.\n```\n- An item\n"
    )
    with gzip.open(tmp_path / "c.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": "one", "text": PROSE}) + "\n" + json.dumps({"text": "Two."}))
    (tmp_path / "README.md").write_text("About the files.")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    rows, counts = split(tmp_path)
    assert [row["doc"] for row in rows] == [
        *["a.txt"] * 3,
        *["one"] * 3,
        "c.jsonl.gz:2",
        *["deep/b.md"] * 3,
    ]
    assert [row["text"] for row in rows][-3:] == ["Heading", "It really rains.", "An item"]
    assert counts.documents == 4
    assert not counts.broken


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "  \n"])
def test_wrapped_lines_of_chinese_are_joined_without_spaces(tmp_path, line_end):
    path = tmp_path / "a.txt"
    path.write_text(line_end.join(["雨" * 40] * 3) + "。", encoding="utf-8", newline="")
    rows, _ = split(path)
    assert [row["text"] for row in rows] == ["雨" * 120 + "。"]


def test_ids_say_where_a_sentence_is(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\ufeffOne\u00ad  is.\r\n\r\nZwei ist.", encoding="utf-8", newline="")
    rows, _ = split(path)
    assert [row["text"] for row in rows] == ["One is.", "Zwei ist."]
    text = path.read_bytes().decode("utf-8-sig")
    for row, expected in zip(rows, ["One\u00ad  is.", "Zwei ist."], strict=True):
        name, _, place = row["id"].rpartition("#char=")
        start, end = map(int, place.split(","))
        assert (name, text[start:end]) == ("a.txt", expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "This is a line of a text that was wrapped by\nits writer at a certain width. It ends\n"
            "here, and so on, and on, and on, and on.\n\nA second paragraph.",
            3,
        ),
        ("A headline\nA first sentence.\nA second one, without a full stop\n", 3),
        ("One a line, as a list\nTwo a line, as a list\n", 2),
    ],
)
def test_wrapped_lines_are_joined_and_others_are_not(text, expected):
    assert len(list(document_sentences(Document(name="x", text=text)))) == expected


def test_wrapped_chinese_gets_no_spaces():
    text = "\n".join(["这是一个很长的句子" * 4] * 3) + "。"
    assert is_wrapped(text)
    (sentence,) = document_sentences(Document(name="x", text=text))
    assert " " not in sentence.text


def test_cleaned():
    assert clean_sentence("e\u0301a\u0000b\u00adc\u200b  d\n e ") == "éa bc d e"


def test_cirrus(tmp_path):
    path = tmp_path / "wiki-cirrussearch-content.json"
    lines = [{"index": {"_id": "7"}}, {"title": "Rain", "text": PROSE, "namespace": 0}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows, counts = split(path)
    assert ({row["doc"] for row in rows}, counts.documents) == ({"Rain"}, 1)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "text": [PROSE, None]}), path)
    rows, counts = split(path)
    assert [row["doc"] for row in rows] == ["1"] * 3
    assert counts.broken == {Rejection.MALFORMED: 1}


def test_html(tmp_path):
    pytest.importorskip("trafilatura")
    (tmp_path / "a.html").write_text(
        page(
            "<h1>Weather</h1><p>It <b>rains</b> today. It pours.</p><script>alert(1.)</script>"
            + "<p>The mountains are in clouds, and the roads are wet.</p>" * 3
        )
    )
    assert texts(tmp_path)[:4] == [
        "Weather",
        "It rains today.",
        "It pours.",
        "The mountains are in clouds, and the roads are wet.",
    ]


BEFORE = "<p>The mountains are in clouds today, and the roads of the valley are wet.</p>"
AFTER = "<p>By the evening the sun will have come back, and the roads will be dry.</p>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<pre>x = 1. y = 2.\nz = 3.</pre>", []),
        ("<div class='highlight'><pre><span>x</span> = 1.</pre></div>", []),
        ("<table><tr><td><pre>1\n2</pre></td><td><pre>a.b()</pre></td></tr></table>", []),
        ("<p>Call <code>a.b()</code> or <tt>c</tt> now.</p>", ["Call a.b() or c now."]),
        ("<p>Run this:<br></p><p><code>one<br>two</code></p>", ["Run this:"]),
        ("<ul><li><code>-a</code>, <code>-b</code></li><li>It rains.</li></ul>", ["It rains."]),
        ("<ul><li>The <code>-a</code> option.</li></ul>", ["The -a option."]),
        ("<p>It rains\n   in <b>the</b>\nmountains.</p>", ["It rains in the mountains."]),
        (
            "<table><tr><th>Name</th><th>Meaning</th></tr><tr><td>One</td><td>Two</td></tr></table>",
            ["Name", "Meaning", "One", "Two"],
        ),
        ("<ol><li>One<ul><li>Two</li></ul></li></ol>", ["One", "Two"]),
    ],
)
def test_listings_of_html_are_left_out_and_prose_is_whole(tmp_path, body, expected):
    pytest.importorskip("trafilatura")
    (tmp_path / "a.html").write_text(page(BEFORE + body + AFTER), encoding="utf-8")
    assert texts(tmp_path)[1:-1] == expected


def test_html_of_listings_takes_linear_time():
    web = pytest.importorskip("miner.storage.documents.web")
    for unit in ("<li><code>a</code>", "<td><code>", "<code><p>", "<pre>", "<p><kbd>a</kbd> b</p>"):

        def read(count: int, unit: str = unit) -> None:
            web.read_page("a", page(unit * count).encode())

        assert_linear(read, 250, 2000)


def test_deeply_nested_html_is_bounded(tmp_path):
    pytest.importorskip("trafilatura")
    (tmp_path / "deep.html").write_text(page("<div>" * 100_000 + "Text." + "</div>" * 100_000))
    (tmp_path / "good.html").write_text(page("<p>It rains today in the mountains.</p>"))
    start = time.process_time()
    rows, counts = split(tmp_path)
    assert time.process_time() - start < 30
    assert counts.documents == 2
    assert "It rains today in the mountains." in [row["text"] for row in rows]


def warc_file(path, pages):
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz")
        for url, kind, body in pages:
            headers = StatusAndHeaders("200 OK", [("Content-Type", kind)], protocol="HTTP/1.0")
            writer.write_record(
                writer.create_warc_record(
                    url, "response", payload=io.BytesIO(body), http_headers=headers
                )
            )


def test_warc(tmp_path):
    pytest.importorskip("warcio")
    path = tmp_path / "crawl.warc.gz"
    warc_file(
        path,
        [
            ("http://a/1", "text/html; charset=utf-8", page("<p>It rains.</p>").encode()),
            ("http://a/2", "image/png", b"\x89PNG"),
            ("http://a/3", "text/html", b""),
        ],
    )
    rows, counts = split(path)
    assert [(row["doc"], row["text"]) for row in rows] == [("http://a/1", "It rains.")]
    assert counts.broken == {Rejection.BLANK: 1}


def test_wet(tmp_path):
    pytest.importorskip("warcio")
    text = PROSE.encode()
    headers = [
        "WARC/1.0",
        "WARC-Type: conversion",
        "WARC-Target-URI: http://a/",
        f"Content-Length: {len(text)}",
    ]
    head = "\r\n".join([*headers, "", ""]).encode()
    (tmp_path / "a.warc.wet").write_bytes(head + text + b"\r\n\r\n")
    assert texts(tmp_path / "a.warc.wet") == SENTENCES


WIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{}</mediawiki>"""
ARTICLE = "<page><title>{}</title><ns>{}</ns>{}<revision><text>{}</text></revision></page>"


def test_wiki(tmp_path):
    pytest.importorskip("mwparserfromhell")
    pages = [
        ARTICLE.format("Rain", 0, "", "'''Rain''' is [[water|wet]].{{cite}}\n\n== More ==\nYes."),
        ARTICLE.format("Talk:Rain", 1, "", "Talk."),
        ARTICLE.format("Regen", 0, '<redirect title="Rain"/>', "#REDIRECT [[Rain]]"),
    ]
    (tmp_path / "dump.xml").write_text(WIKI.format("".join(pages)))
    rows, _ = split(tmp_path / "dump.xml")
    assert [(row["doc"], row["text"]) for row in rows] == [
        ("Rain", text) for text in ("Rain is wet.", "More", "Yes.")
    ]


def test_a_billion_laughs_are_not_laughed(tmp_path):
    pytest.importorskip("mwparserfromhell")
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)
    )
    dump = WIKI.format(ARTICLE.format("Ha", 0, "", "&a11;"))
    (tmp_path / "dump.xml").write_text(f"<!DOCTYPE mediawiki [{entities}]>{dump}")
    tracemalloc.start()
    try:
        rows, _ = split(tmp_path / "dump.xml")
    except CorpusError:
        rows = []
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()
    assert sum(len(row["text"]) for row in rows) < 1000


def test_what_is_too_long_is_counted_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr("miner.storage.documents.files.MAX_BYTES", 1 << 20)
    with gzip.open(tmp_path / "bomb.txt.gz", "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    (tmp_path / "line.jsonl").write_bytes(
        b'{"text": "' + b"x" * (6 << 20) + b'"}\n{"text": "Yes."}'
    )
    identifier()  # whose model counts for all documents
    tracemalloc.start()
    rows, counts = split(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()
    assert [row["text"] for row in rows] == ["Yes."]
    assert counts.broken == {Rejection.TOO_LONG: 2}
    assert counts.documents == 3


def test_broken_documents_are_counted_and_the_others_are_read(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9.")
    (tmp_path / "b.txt").write_text("\n \n")
    (tmp_path / "c.jsonl").write_text('{"text": "a\\ud800"}\n{"x": 1}\n[\n{"text": "Good."}\n')
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x."}\n' * 100)[:-9])
    rows, counts = split(tmp_path)
    assert "Good." in [row["text"] for row in rows]
    assert counts.broken == Counter(
        {
            Rejection.UNDECODABLE: 2,
            Rejection.BLANK: 1,
            Rejection.MALFORMED: 2,
            Rejection.UNREADABLE: 1,
        }
    )


def test_a_single_damaged_file_and_none_at_all_are_errors(tmp_path):
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(b"not gzip")
    with pytest.raises(CorpusError, match=r"d\.jsonl\.gz"):
        split(path)
    path.unlink()
    with pytest.raises(CorpusError, match="no documents"):
        split(tmp_path)
