import bz2
import gzip
import io
import json
import lzma
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from miner.storage import streams
from miner.storage.corpus import joined, lines, records
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError, Rejection
from tests.miner.storage.oracle import read_lines


def read(path, input_format="auto"):
    """All records as (row, id, doc, text, reason); the text of a rejected one left out."""
    found = []
    for batch in open_corpus(path, input_format=input_format):
        ids = batch.ids()
        assert len(ids) == len(batch.docs) == len(batch.texts) == len(batch) > 0
        assert list(batch.rejected) == sorted(batch.rejected)
        for position in range(len(batch)):
            reason = batch.rejected.get(position)
            text = batch.texts[position] if reason is None else None
            row = batch.first_row + position
            found.append((row, ids[position], batch.docs[position], text, reason))
    return found


def read_bytes(tmp_path, data, name="corpus.txt", input_format="auto"):
    path = tmp_path / name
    path.write_bytes(data)
    return read(path, input_format)


def texts(found):
    return [text for _, _, _, text, _ in found]


def reasons(found):
    return [reason for _, _, _, _, reason in found]


def error_of(path, input_format="auto"):
    with pytest.raises(CorpusError) as caught:
        for _ in open_corpus(path, input_format=input_format):
            pass
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# --- lines


def test_lines_are_numbered_from_row_0_and_id_1(tmp_path):
    assert read_bytes(tmp_path, b"one\ntwo\n") == [
        (0, "1", "", "one", None),
        (1, "2", "", "two", None),
    ]


def test_last_line_may_lack_its_newline(tmp_path):
    assert texts(read_bytes(tmp_path, b"one\ntwo")) == ["one", "two"]


def test_only_a_newline_ends_a_line(tmp_path):
    inner = "a\rb\vc\fd\x1ce\x1df\x1eg\x85h\u2028i\u2029j"
    assert texts(read_bytes(tmp_path, f"{inner}\nnext\n".encode())) == [inner, "next"]


def test_one_carriage_return_is_removed_at_the_end(tmp_path):
    assert texts(read_bytes(tmp_path, b"one\r\ntwo\r\r\n\rthree\r")) == [
        "one",
        "two\r",
        "\rthree",
    ]


def test_text_is_verbatim(tmp_path):
    text = "  e\u0301 \ufb01 \u00a0 two  spaces\t\ufeff "
    assert texts(read_bytes(tmp_path, f"x\n{text}\n".encode())) == ["x", text]


def test_byte_order_mark_is_removed_at_the_start_only(tmp_path):
    found = read_bytes(tmp_path, b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")
    assert texts(found) == ["one", "\ufefftwo"]


def test_rejections_keep_their_numbers(tmp_path):
    data = b"a\n\n \t\xc2\xa0\n\xff\nx\0y\n" + b"z" * 10_001 + b"\nb\n"
    found = read_bytes(tmp_path, data)
    assert reasons(found) == [
        None,
        "blank",
        "blank",
        "undecodable",
        "NUL",
        "too long",
        None,
    ]
    assert found[-1][:4] == (6, "7", "", "b")


def test_the_limit_is_in_characters(tmp_path):
    at_limit = "\U0001f600" * 10_000
    found = read_bytes(tmp_path, f"{at_limit}\r\n{at_limit}x\n".encode())
    assert found[0][3] == at_limit
    assert reasons(found) == [None, "too long"]


def test_a_line_of_many_blocks_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 3000)
    data = b"a\n" + b"x" * 50_000 + b"\nb\n" + b"\xe2\x82\xac" * 4000 + b"\n" + b"y" * 2999 + b"\nc"
    found = read_bytes(tmp_path, data, input_format="lines")
    assert reasons(found) == [None, "too long", None, "too long", None, None]
    assert texts(found)[4:] == ["y" * 2999, "c"]


def test_a_huge_line_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 3000)
    path = tmp_path / "huge.txt"
    path.write_bytes(b"x" * 1_000_000 + b"\nb\n")
    longest = max(int(batch.lengths.max()) for batch in lines.line_batches(path))
    assert 3000 < longest <= 4002


def test_bytes_of_white_space():
    spaces = [chr(code).encode() for code in range(0xD800) if chr(code).isspace()]
    assert not any(chr(code).isspace() for code in range(0xD800, 0x110000))
    for table, place in ((joined.BEGINS_BLANK, 0), (joined.ENDS_BLANK, -1)):
        assert {space[place] for space in spaces} == set(np.flatnonzero(table).tolist())


def test_batches_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BATCH_ROWS", 100)
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(1050)))
    batches = list(open_corpus(path))
    assert [len(batch) for batch in batches] == [100] * 10 + [50]
    assert [batch.first_row for batch in batches] == list(range(0, 1050, 100))
    assert [text for batch in batches for text in batch.texts] == [str(n) for n in range(1050)]


def test_a_file_longer_than_a_chunk(tmp_path):
    expected = [f"sentence number {number} é" for number in range(300_000)]
    found = read_bytes(tmp_path, "\n".join(expected).encode())
    assert texts(found) == expected
    assert [row for row, *_ in found] == list(range(300_000))
    assert [own for _, own, *_ in found] == [str(n) for n in range(1, 300_001)]


LINE = st.one_of(
    st.binary(max_size=12),
    st.text(max_size=12).map(lambda text: text.encode("utf-8", "ignore")),
    st.sampled_from(
        [b"", b" ", b"\r", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\0", b"x" * 10_001]
    ),
)


# Of files that are refused as a whole.
SIGNATURES = (
    *(magic for magic, _ in streams.COMPRESSIONS.values()),
    *streams._CONTAINERS,
    streams.PARQUET_MAGIC,
)


@settings(max_examples=300)
@given(
    data=st.lists(LINE, min_size=1, max_size=20)
    .map(b"\n".join)
    .filter(lambda data: not data.startswith(SIGNATURES)),
    chunk_bytes=st.integers(1, 40),
    batch_rows=st.integers(1, 5),
)
@example(data=b"\n", chunk_bytes=1, batch_rows=1)
@example(data=b"\xef\xbb\xbf\n", chunk_bytes=1, batch_rows=1)
@example(data=b"a\xe2\x82\n\xacb\n", chunk_bytes=2, batch_rows=1)
def test_lines_equal_the_oracle(data, chunk_bytes, batch_rows):
    expected = read_lines(data)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(streams, "CHUNK_BYTES", chunk_bytes)
        patch.setattr(lines, "BATCH_ROWS", batch_rows)
        patch.setattr(lines, "_MIN_SAMPLE_BYTES", len(data) + 1)
        path = Path(folder, "corpus")
        path.write_bytes(data)
        # A mark in pieces smaller than itself is not seen; files come in chunks of 4 MiB.
        if chunk_bytes < 4 and data[:1] in (b"\xef", b"\xff", b"\xfe", b"\0"):
            return
        if not expected:
            assert "is empty" in error_of(path, "lines")
            return
        if any(data.startswith(mark) for mark in lines._OTHER_ENCODINGS):
            assert "iconv" in error_of(path, "lines")
            return
        found = read(path, "lines")
    assert [(row, own) for row, own, *_ in found] == [(n, str(n + 1)) for n in range(len(expected))]
    assert reasons(found) == [reason for _, reason in expected]
    assert texts(found) == [None if reason else text for text, reason in expected]


# --- formats


def test_bucc_is_known_by_its_ids_whatever_the_suffix(tmp_path):
    found = read_bytes(tmp_path, b"\nde-000000001\tEin\tSatz\nno tab\n\nde-1\t \n", name="x.de")
    assert found == [
        (0, "1", "", None, "blank"),
        (1, "de-000000001", "", "Ein\tSatz", None),
        (2, "3", "", None, "malformed"),
        (3, "4", "", None, "blank"),
        (4, "de-1", "", None, "blank"),
    ]


def test_plain_lines_with_tabs_are_not_taken_for_bucc(tmp_path):
    assert texts(read_bytes(tmp_path, b"DE-000000001\tx\ny\n")) == ["DE-000000001\tx", "y"]


def test_tsv_of_two_columns(tmp_path):
    found = read_bytes(tmp_path, b"a\tone\r\nb\ttwo\tthree\n\tfour\n\nplain\n", name="x.tsv")
    assert found == [
        (0, "a", "", "one", None),
        (1, "2", "", None, "malformed"),
        (2, "3", "", "four", None),
        (3, "4", "", None, "blank"),
        (4, "5", "", None, "malformed"),
    ]


def test_tsv_of_three_columns(tmp_path):
    found = read_bytes(tmp_path, b"a\tdoc\tone\nb\ttwo\nplain\n", input_format="tsv")
    assert found == [
        (0, "a", "doc", "one", None),
        (1, "2", "", None, "malformed"),
        (2, "3", "", None, "malformed"),
    ]


def test_tsv_columns_are_decided_once_for_all_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BATCH_ROWS", 1)
    found = read_bytes(tmp_path, b"a\tone\nb\ttwo\tthree\n", name="x.tsv")
    assert reasons(found) == [None, "malformed"]


@pytest.mark.parametrize(("line", "count"), [(b"plain", "1 column,"), (b"a\tb\tc\td", "4 columns")])
def test_tsv_of_other_widths_is_refused(tmp_path, line, count):
    path = tmp_path / "x.tsv"
    path.write_bytes(b"\n" + line + b"\n")
    message = error_of(path)
    assert f"line 2 has {count}" in message
    assert "--input-format lines" in message
    assert len(read(path, "lines")) == 2


def jsonl(*values):
    return "".join(f"{value}\n" for value in values).encode()


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.NDJSON", "x.txt"])
def test_jsonl(tmp_path, name):
    data = jsonl(
        '{"text": "one", "id": "a", "doc": "d", "other": [1]}',
        '{"id": 7, "text": "two\\nlines \\u00e9"}',
        '{"text": "three", "id": null, "doc": 12}',
    )
    assert read_bytes(tmp_path, data, name=name) == [
        (0, "a", "d", "one", None),
        (1, "7", "", "two\nlines é", None),
        (2, "3", "12", "three", None),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "a"}', "malformed"),
        ('{"text": 3}', "malformed"),
        ('{"text": null}', "malformed"),
        ('["text"]', "malformed"),
        ("7", "malformed"),
        ('{"text": "x"', "malformed"),
        ('{"text": "x", "id": true}', "malformed"),
        ('{"text": "x", "id": 1.5}', "malformed"),
        ('{"text": "x", "doc": ["d"]}', "malformed"),
        ('{"text": "x", "id": ' + "9" * 5000 + "}", "malformed"),
        ('{"text": ' + "[" * 100_000, "malformed"),
        ('{"text": "\\ud800"}', "undecodable"),
        ('{"text": "x", "id": "\\udfff"}', "undecodable"),
        ('{"text": "\\u0000"}', "NUL"),
        ('{"text": " \\u2003"}', "blank"),
        ('{"text": "' + "x" * 10_001 + '"}', "too long"),
        ('{"text": "x", "other": "' + "y" * (1 << 20) + '"}', "too long"),
        ("  ", "blank"),
    ],
)
def test_jsonl_rejections(tmp_path, line, reason):
    found = read_bytes(tmp_path, jsonl(line, '{"text": "next"}'), name="x.jsonl")
    assert reasons(found) == [reason, None]
    assert found[1][:2] == (1, "2")


def test_jsonl_longest_text_in_its_longest_spelling(tmp_path):
    line = json.dumps({"text": "\U0001f600" * 10_000})
    assert len(line) > 120_000
    assert texts(read_bytes(tmp_path, jsonl(line), name="x.jsonl")) == ["\U0001f600" * 10_000]


def test_a_sentence_that_starts_like_json_is_a_line(tmp_path):
    assert texts(read_bytes(tmp_path, b'{"id": 1}\n')) == ['{"id": 1}']
    assert texts(read_bytes(tmp_path, b"{curly}\n")) == ["{curly}"]


def test_unknown_format(tmp_path):
    with pytest.raises(ValueError, match=r"'xml' is unknown; use one of auto, lines"):
        open_corpus(tmp_path / "x", input_format="xml")


# --- compression


def compress(data, suffix):
    if suffix == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()
    return {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix](data)


SUFFIXES = sorted(streams.COMPRESSIONS)
DATA = b"".join(b"%d %s\n" % (number, os.urandom(20).hex().encode()) for number in range(5000))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed(tmp_path, suffix):
    expected = [line.decode() for line in DATA.splitlines()]
    assert texts(read_bytes(tmp_path, compress(DATA, suffix), name=f"x{suffix}")) == expected
    upper = f"x.txt{suffix.upper()}"
    assert texts(read_bytes(tmp_path, compress(DATA, suffix), name=upper)) == expected


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed_in_several_pieces(tmp_path, suffix):
    data = compress(b"one\ntw", suffix) + compress(b"o\nthree\n", suffix)
    assert texts(read_bytes(tmp_path, data, name=f"x{suffix}")) == ["one", "two", "three"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_format_is_by_the_suffix_below(tmp_path, suffix):
    data = compress(b"a\tdoc\tone\n", suffix)
    assert read_bytes(tmp_path, data, name=f"x.tsv{suffix}") == [(0, "a", "doc", "one", None)]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", ["truncated", "other", "garbage"])
def test_damaged_archives(tmp_path, suffix, damage):
    whole = compress(DATA, suffix)
    path = tmp_path / f"x{suffix}"
    path.write_bytes(
        {
            "truncated": whole[: len(whole) // 2],
            "other": b"plain sentences\n" * 10,
            "garbage": whole[: len(whole) // 2] + b"\0\xff" * 50 + whole[len(whole) // 2 + 100 :],
        }[damage]
    )
    message = error_of(path)
    assert message.startswith(f"is not a whole {suffix} file (")
    assert message.endswith("fetch or compress it again")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_by_its_last_bytes(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(compress(DATA, suffix)[:-3])
    assert "is not a whole" in error_of(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed_under_another_name(tmp_path, suffix):
    path = tmp_path / "x.txt"
    for data in (DATA, b"short\n"):
        path.write_bytes(compress(data, suffix))
        assert f"rename it to end in {suffix}" in error_of(path)


def test_text_that_starts_like_an_archive_is_text(tmp_path):
    assert texts(read_bytes(tmp_path, b"BZh is a beginning\nPAR1\n")) == [
        "BZh is a beginning",
        "PAR1",
    ]


# --- whole files


def test_missing(tmp_path):
    assert error_of(tmp_path / "none.txt") == "file not found; check its path"
    assert error_of(tmp_path / "none.parquet") == "file not found; check its path"


def test_folder(tmp_path):
    assert error_of(tmp_path).startswith("is a folder")


def test_errors_come_before_the_first_batch_is_asked_for(tmp_path):
    with pytest.raises(CorpusError):
        open_corpus(tmp_path / "none.txt")


@pytest.mark.parametrize("name", ["x.txt", "x.parquet"])
def test_no_permission(tmp_path, monkeypatch, name):
    def refuse(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(streams, "open", refuse, raising=False)
    assert error_of(tmp_path / name) == "cannot be read; check its permissions"


def test_other_failures_to_open(tmp_path):
    assert (
        error_of(tmp_path / ("x" * 300)) == "cannot be opened (File name too long); check its path"
    )


def test_failing_disk(tmp_path, monkeypatch):
    class Failing(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, _buffer):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(streams, "open", lambda *_: Failing(), raising=False)
    assert error_of(tmp_path / "x.txt") == "cannot be read (Input/output error); check its disk"


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("input_format", ["auto", "lines", "bucc", "tsv", "jsonl"])
def test_empty(tmp_path, data, input_format):
    path = tmp_path / "x"
    path.write_bytes(data)
    assert error_of(path, input_format).startswith("is empty")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_below_its_compression(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(compress(b"", suffix))
    assert error_of(path).startswith("is empty")


@pytest.mark.parametrize("input_format", ["auto", "lines", "bucc", "tsv", "jsonl"])
def test_only_blank_lines_are_lines(tmp_path, input_format):
    found = read_bytes(tmp_path, b"\n \n", name="x.tsv", input_format=input_format)
    assert reasons(found) == ["blank", "blank"]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32-le", "UTF-32"),
        ("utf-32-be", "UTF-32"),
    ],
)
def test_other_encodings(tmp_path, encoding, name):
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffein Satz\n".encode(encoding))
    assert error_of(path) == f"is {name}; convert it with iconv -f {name} -t UTF-8"


@pytest.mark.parametrize(
    "data",
    [
        "Съешь ещё этих мягких французских булок\n".encode("cp1251") * 100,
        "plain words in UTF-16 without a mark\n".encode("utf-16-le") * 100,
        bytes(range(256)) * 20,
        b"\0" * 5000,
    ],
)
@pytest.mark.parametrize("input_format", ["auto", "lines", "jsonl"])
def test_not_text(tmp_path, data, input_format):
    path = tmp_path / "x"
    path.write_bytes(data)
    assert error_of(path, input_format).startswith("is not UTF-8 text: of its first ")


def test_text_with_some_bad_lines_is_text(tmp_path):
    found = read_bytes(tmp_path, b"a good line\n\xff a bad one\n" * 49 + b"a good line\n" * 20000)
    assert reasons(found).count("undecodable") == 49


def test_a_sample_that_ends_within_a_character_is_text(tmp_path):
    found = read_bytes(tmp_path, b"x" + "é".encode() * 50_000 + b"\nnext\n")
    assert reasons(found) == ["too long", None]


def test_a_pipe_will_do(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"de-000000001\tone\n" * 100_000,))
    writer.start()
    found = read(path)
    writer.join()
    assert len(found) == 100_000
    assert found[-1] == (99_999, "de-000000001", "", "one", None)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system has no /proc")
def test_files_are_closed_when_reading_stops_early(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"one\n" * 100_000)
    before = len(os.listdir("/proc/self/fd"))
    batches = open_corpus(path)
    next(batches)
    del batches
    assert len(os.listdir("/proc/self/fd")) == before


# --- Parquet


def write_parquet(tmp_path, columns, name="x.parquet", **options):
    path = tmp_path / name
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_parquet(tmp_path):
    path = write_parquet(
        tmp_path,
        {
            "extra": [0.5] * 5,
            "text": ["one", None, " ", "x\0", "y" * 10_001],
            "id": [7, 8, None, 9, 10],
            "doc": ["d", None, "d", "d", "d"],
        },
    )
    assert read(path) == [
        (0, "7", "d", "one", None),
        (1, "8", "", None, "malformed"),
        (2, "3", "d", None, "blank"),
        (3, "9", "d", None, "NUL"),
        (4, "10", "d", None, "too long"),
    ]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_parquet_strings_of_every_kind(tmp_path, kind):
    columns = {name: pa.array(["a", "b"]).cast(kind) for name in ("id", "doc", "text")}
    path = write_parquet(tmp_path, columns)
    assert read(path) == [(0, "a", "a", "a", None), (1, "b", "b", "b", None)]


def test_parquet_text_alone_in_many_batches(tmp_path):
    expected = [f"sentence {number}\r" for number in range(records.BATCH_ROWS * 2 + 1)]
    path = write_parquet(tmp_path, {"text": expected}, row_group_size=10_000)
    found = read(path)
    assert texts(found) == expected
    assert [row for row, *_ in found] == list(range(len(expected)))
    assert found[-1][1] == str(len(expected))


def test_parquet_columns_of_nulls(tmp_path):
    path = write_parquet(tmp_path, {"text": ["one", "two"], "id": [None] * 2, "doc": [None] * 2})
    assert [record[:4] for record in read(path)] == [(0, "1", "", "one"), (1, "2", "", "two")]


def test_parquet_strings_that_are_not_utf8(tmp_path):
    bad = pa.array([b"a", b"\xff", None, b"c"])
    text = pa.Array.from_buffers(pa.string(), 4, bad.buffers(), null_count=1)
    path = write_parquet(tmp_path, {"text": text, "id": ["1", "2", "3", "4"]})
    assert reasons(read(path)) == [None, "undecodable", "malformed", None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sentence": ["a"], "n": [1]}, "has no column 'text', only sentence, n; rename one"),
        ({"text": [1]}, "column 'text' is int64, expected string; convert it"),
        ({"text": [["a"]]}, "expected string; convert it"),
        ({"text": ["a"], "id": [0.5]}, "column 'id' is double, expected string or integer"),
        ({"text": ["a"], "doc": [True]}, "column 'doc' is bool, expected string or integer"),
        ({"text": pa.array([], pa.string())}, "is empty"),
    ],
)
def test_wrong_parquet(tmp_path, columns, message):
    assert message in error_of(write_parquet(tmp_path, columns))


def test_parquet_with_a_column_twice(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["text", "text"]), path)
    assert "more than one column 'text'" in error_of(path)


def test_damaged_parquet(tmp_path):
    path = write_parquet(tmp_path, {"text": [os.urandom(8).hex() for _ in range(5000)]})
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"plain\n", b"", whole[:4] + whole[2000:]):
        path.write_bytes(data)
        assert "is not a whole Parquet file" in error_of(path)


def test_parquet_under_another_name(tmp_path):
    path = write_parquet(tmp_path, {"text": ["one"]}, name="x.bin")
    assert "--input-format parquet" in error_of(path)
    assert texts(read(path, "parquet")) == ["one"]


def test_parquet_compressed_as_a_whole(tmp_path):
    message = error_of(tmp_path / "x.parquet.gz")
    assert message == "Parquet within .gz is not read; decompress the file"


def test_rejections_are_strings():
    assert [str(reason) for reason in Rejection] == [
        "blank",
        "undecodable",
        "NUL",
        "too long",
        "malformed",
        "unreadable file",
        "in another language",
    ]
