"""Documents that are made to break their reader: counted or one line, in little memory and time."""

from __future__ import annotations

import gzip
import json
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from miner.storage.corpus.records import CorpusError, Rejection
from tests.growth import assert_linear
from tests.miner.storage.documents.test_documents import ARTICLE, WIKI, page, split

PAGE = page("<p>It rains today in the mountains.</p>").encode()
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE

SECONDS = 20  # of processor time: a second would do


def warc(content: bytes = RESPONSE, length: object = None, *extra: str) -> bytes:
    headers = [
        *("WARC/1.0", "WARC-Type: response", "WARC-Target-URI: http://a/"),
        *("Content-Type: application/http; msgtype=response", *extra),
        f"Content-Length: {len(content) if length is None else length}",
    ]
    return "\r\n".join([*headers, "", ""]).encode() + content + b"\r\n\r\n"


def is_one_line(error: pytest.ExceptionInfo) -> bool:
    message = str(error.value)
    return message.isprintable() and len(message) < 400


@pytest.mark.parametrize(
    "make",
    [
        lambda size: b"# Heading " + b" " * size + b"x",
        lambda size: b"<!--" * (size // 4),
        lambda size: b"```\n" * (size // 8) + b"~~~",
        lambda size: b"[" * (size // 2) + b"](",
        lambda size: b"[a](" * (size // 4),
        lambda size: b"**" * (size // 2),
    ],
)
def test_markdown_takes_linear_time(tmp_path: Path, make: Callable[[int], bytes]) -> None:
    (tmp_path / "a.md").write_text("# Heading", encoding="utf-8")
    split(tmp_path)  # loads all that reads Markdown

    def split_made(size: int) -> None:
        (tmp_path / "a.md").write_bytes(make(size))
        assert split(tmp_path)[1].documents == 1

    assert_linear(split_made, 1 << 14, 1 << 17)


@pytest.mark.parametrize(
    "record",
    [
        b'{"text": ' + b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        b'{"id": ' + b"9" * 10_000 + b', "text": "x"}',
        b'{"text": "a\\ud800"}',
        b'{"text": "' + b"x" * (3 << 20) + b'"}',
        b'{"text": 1e999}',
        b'"text"',
        b"caf\xe9",
    ],
)
def test_a_broken_line_is_counted(tmp_path: Path, record: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(record + b'\n{"text": "Good."}\n')
    rows, counts = split(tmp_path)
    assert [row["text"] for row in rows] == ["Good."]
    assert (counts.documents, counts.broken.total()) == (2, 1)


def test_names_are_one_line_of_text(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>\n\ttitle\u2028\u0000"
    record = {"title": script, "text": "It rains."}
    (tmp_path / "a.jsonl").write_text(json.dumps(record), encoding="utf-8")
    path = os.fsencode(tmp_path) + b"/caf\xe9\n.txt"
    Path(os.fsdecode(path)).write_text("It pours.", encoding="utf-8")
    rows, _ = split(tmp_path)
    assert [row["doc"] for row in rows] == [
        "<script>alert(1)</script>  title  ",
        "caf\\udce9 .txt",
    ]
    assert all(row["id"].startswith(row["doc"]) for row in rows)


def test_parquet_with_other_types(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    invalid = pa.array([b"a\xff", b"Good."], pa.binary()).view(pa.string())
    columns = {
        "whole": pa.array([1, 2]),
        "nested": pa.array([{"a": [1]}, None]),
        "invalid": invalid,
        "bytes": pa.array([b"Good.", None], pa.binary()),
        "dictionary": pa.array(["Good.", None]).dictionary_encode(),
    }
    expected = {"whole": 2, "nested": 2, "invalid": 1, "bytes": 1, "dictionary": 1}
    for name, column in columns.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"id": pa.array([1.5, 2.5]), "text": column}), path)
        rows, counts = split(path)
        assert (counts.documents, counts.broken.total()) == (2, expected[name])
        assert [row["text"] for row in rows] == ["Good."] * (2 - expected[name])
    double = pa.table([columns["bytes"], columns["bytes"]], names=["text", "text"])
    pq.write_table(double, tmp_path / "double.parquet")
    with pytest.raises(CorpusError, match="has 2 columns 'text'"):
        split(tmp_path / "double.parquet")


def test_links_that_lead_back_and_what_is_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("It rains.", encoding="utf-8")
    (folder / "deep" / "up").symlink_to(folder)
    (folder / "self").symlink_to(folder / "self")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.txt").write_text("It pours.", encoding="utf-8")
    (folder / "other").symlink_to(tmp_path / "other")
    os.mkfifo(folder / "pipe.txt")
    (folder / "zero.txt").symlink_to("/dev/zero")
    rows, _ = split(folder)
    assert [row["doc"] for row in rows] == ["a.txt", "other/b.txt"]


def test_bombs(tmp_path: Path) -> None:
    zeros = gzip.compress(bytes(24 << 20), compresslevel=1)
    (tmp_path / "a.txt.gz").write_bytes(zeros)
    (tmp_path / "b.html.gz").write_bytes(zeros)
    (tmp_path / "c.jsonl.gz").write_bytes(zeros)
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(zeros))  # the inner one stays closed
    tracemalloc.start()
    _, counts = split(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()
    assert counts.broken == {Rejection.TOO_LONG: 2, Rejection.UNREADABLE: 2}


@pytest.mark.parametrize(
    "archive",
    [
        warc(length=10**6),
        warc(length=60) + warc(),
        warc(length=-5) + warc(),
        warc(length="abc") + warc(),
        warc(length=10**30) + warc(),
        warc() + bytes(1 << 16) + warc(),
        b"abc\n" * 100 + warc(),
        warc()[:-60],
        warc(b"no HTTP") + warc(),
        warc(
            RESPONSE.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n", 1)
        ),
        warc(RESPONSE, None, *[f"X-{number}: x" for number in range(5000)]),
    ],
)
def test_archives_with_wrong_records(
    tmp_path: Path, archive: bytes, capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip("warcio")
    (tmp_path / "a.warc").write_bytes(archive)
    (tmp_path / "b.txt").write_text("It pours.", encoding="utf-8")
    rows, counts = split(tmp_path)
    assert rows[-1]["text"] == "It pours."
    assert counts.documents >= len(rows) - 1
    try:
        split(tmp_path / "a.warc")
    except CorpusError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 400
        assert counts.broken[Rejection.UNREADABLE] == 1
    assert capsys.readouterr().err == ""


LONG = "x" * (3 << 20)


@pytest.mark.parametrize(
    "archive",
    [
        LONG.encode(),
        warc(RESPONSE, None, f"X: {LONG}"),
        warc(RESPONSE, None, *["X: x"] * (1 << 19)),
        warc(RESPONSE.replace(b"\r\n", f"\r\nX: {LONG}\r\n".encode(), 1)),
        warc() + b"\r\n" * (3 << 19),
        warc() + LONG.encode(),
    ],
)
def test_archives_with_endless_headers(
    tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("warcio")
    # An eighth of what they are, as are the archives: tracing memory takes its time.
    monkeypatch.setattr("miner.storage.documents.web.MAX_HEADER_BYTES", 1 << 17)
    monkeypatch.setattr("miner.storage.streams.CHUNK_BYTES", 1 << 19)
    (tmp_path / "good.warc").write_bytes(warc())
    split(tmp_path / "good.warc")  # loads all that reads archives
    (tmp_path / "a.warc").write_bytes(archive)
    start = time.process_time()
    tracemalloc.start()
    with pytest.raises(CorpusError, match="is a damaged web archive"):
        split(tmp_path / "a.warc")
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    assert time.process_time() - start < SECONDS


def test_a_page_in_many_small_chunks(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = page("<p>It rains today in the mountains.</p>" + " " * (1 << 18)).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    (tmp_path / "a.warc").write_bytes(warc(head + chunks + b"0\r\n\r\n") + warc())
    rows, counts = split(tmp_path)
    assert (len(rows), counts.broken.total()) == (2, 0)


def test_a_compressed_page_that_is_a_bomb(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    bomb = head + gzip.compress(bytes(32 << 20), compresslevel=1)
    (tmp_path / "a.warc").write_bytes(warc(bomb) + warc())
    rows, counts = split(tmp_path)
    assert [row["text"] for row in rows] == ["It rains today in the mountains."]
    assert counts.broken == {Rejection.TOO_LONG: 1}


def test_files_that_entities_name_are_not_read(tmp_path: Path) -> None:
    pytest.importorskip("mwparserfromhell")
    (tmp_path / "secret").write_text("A secret.", encoding="utf-8")
    entity = f'<!DOCTYPE m [<!ENTITY a SYSTEM "file://{tmp_path}/secret">]>'
    dump = WIKI.format(ARTICLE.format("T", 0, "", "It rains. &a;"))
    (tmp_path / "dump.xml").write_text(entity + dump, encoding="utf-8")
    rows, _ = split(tmp_path / "dump.xml")
    assert "secret" not in "".join(row["text"] for row in rows)


@pytest.mark.parametrize("markup", ["<ref>", "[[a|{{", "[http://a "])
def test_markup_that_is_never_closed(markup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mwparserfromhell")
    from miner.storage.documents import web

    monkeypatch.setattr(web, "BLOCK", 1 << 12)

    def read(characters: int) -> None:
        web.read_article("T", markup * (characters // len(markup)))

    assert_linear(read, 1 << 12, 1 << 16)


def test_long_articles_are_parsed_by_section() -> None:
    pytest.importorskip("mwparserfromhell")
    from miner.storage.documents import web

    section = "\n== Heading ==\n{{Box|a=1\n\n|b=2}}Rain is [[water|wet]].\n"
    long = section * (web.BLOCK // len(section) * 3)
    parts = web.read_article("T", section).text
    assert web.read_article("T", long).text.split() == parts.split() * long.count("Heading")
    assert web.read_article("T", "x" * (web.MAX_CHARACTERS + 1)).broken == Rejection.TOO_LONG
