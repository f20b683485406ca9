import errno
import json
import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage import pairs, writers
from miner.storage.atomic import OutputError
from miner.storage.pairs import pairs_schema
from miner.storage.writers import Origin

SUFFIXES = [".tsv", ".jsonl", ".parquet", ".tmx", ".tsv.gz", ".jsonl.zst"]
ORIGIN = Origin(languages=("de", "en"))
write_pairs = partial(pairs.write_pairs, origin=ORIGIN)
check_output = partial(pairs.check_output, origin=ORIGIN)
BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"


def record(number=0, **changes):
    return {
        "score": 1.5 - number / 7,
        "source_id": f"s{number}",
        "target_id": f"t{number}",
        "source_doc": "",
        "target_doc": "doc",
        "source_text": f"Satz {number} ß",
        "target_text": f'sentence "{number}"',
        "source_row": number,
        "target_row": number + 2**40,
        "cosine": 0.5,
        "source_mean": 0.1,
        "target_mean": 0.2,
        "rank": 1,
        "direction": "both",
        "source_duplicates": [],
        "target_duplicates": ["t8", "t9"],
    } | changes


def table(*records):
    return pa.Table.from_pylist(list(records), schema=pairs_schema())


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_schema_is_the_published_one():
    assert str(pairs_schema()) == (
        "score: double\nsource_id: string\ntarget_id: string\nsource_doc: string\n"
        "target_doc: string\nsource_text: string\ntarget_text: string\nsource_row: int64\n"
        "target_row: int64\ncosine: float\nsource_mean: double\ntarget_mean: double\n"
        "rank: int32\ndirection: string\nsource_duplicates: list<item: string>\n"
        "  child 0, item: string\ntarget_duplicates: list<item: string>\n"
        "  child 0, item: string"
    )


def test_judged_pairs_have_their_probability_and_margin_beside_the_score():
    names = pairs_schema(judged=True, reasons=True).names
    assert names[:4] == ["score", "probability", "margin", "source_id"]
    assert names[-1] == "reason"
    assert [name for name in names if name in pairs_schema().names] == pairs_schema().names


def test_tsv(tmp_path):
    path = tmp_path / "out.tsv"
    score = 1.0000000000000002
    assert write_pairs(path, [table(record(score=score), record(1, score=-0.5))]) == 2
    assert (
        path.read_bytes()
        == ('1.0000000000000002\tSatz 0 ß\tsentence "0"\n-0.5\tSatz 1 ß\tsentence "1"\n').encode()
    )


@pytest.mark.parametrize("character", BREAKS)
def test_tsv_keeps_its_lines_and_cells(tmp_path, character):
    path = tmp_path / "out.tsv"
    write_pairs(path, [table(record(source_text=f"a{character}b", target_text=character))])
    assert path.read_text(encoding="utf-8") == "1.5\ta b\t \n"


def test_jsonl(tmp_path):
    path = tmp_path / "out.jsonl"
    records = [record(), record(1, direction="forward")]
    assert write_pairs(path, [table(*records)]) == 2
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == records
    assert list(json.loads(lines[0])) == pairs_schema().names
    assert '"source_text": "Satz 0 ß"' in lines[0]


@pytest.mark.parametrize("name", ["source_text", "target_id", "source_doc", "direction"])
def test_jsonl_is_a_line_for_every_reader(tmp_path, name):
    path = tmp_path / "out.jsonl"
    write_pairs(path, [table(record(**{name: BREAKS}), record(source_duplicates=[BREAKS]))])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0])[name] == BREAKS
    assert json.loads(lines[1])["source_duplicates"] == [BREAKS]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_jsonl_without_nan(tmp_path, value):
    path = tmp_path / "out.jsonl"
    write_pairs(path, [table(record(score=value, cosine=value), record(1))])
    first, second = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(first)["score"] is json.loads(first)["cosine"] is None
    assert json.loads(first)["source_mean"] == 0.1
    assert json.loads(second)["score"] == record(1)["score"]


def test_parquet(tmp_path):
    path = tmp_path / "out.parquet"
    records = [record(number) for number in range(3)]
    assert write_pairs(path, [table(*records[:2]), table(records[2])]) == 3
    read = pq.read_table(path)
    assert read.schema == pairs_schema()
    assert read.to_pylist() == records


@given(st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_every_format_says_the_same(tmp_path_factory, source, target, score):
    folder = tmp_path_factory.mktemp("pairs")
    row = record(source_text=source, target_text=target, score=score)
    for suffix in SUFFIXES[:3]:
        write_pairs(folder / f"out{suffix}", [table(row)])
    assert pq.read_table(folder / "out.parquet").to_pylist() == [row]
    (line,) = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == row
    (line,) = (folder / "out.tsv").read_text(encoding="utf-8").splitlines()
    cells = line.split("\t")
    assert float(cells[0]) == score
    for cell, text in zip(cells[1:], (source, target), strict=True):
        assert cell == "".join(" " if character in BREAKS else character for character in text)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_do_not_depend_on_the_batches(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(writers.Format, "rows", 16)
    whole = table(*[record(number) for number in range(100)])
    written = set()
    for sizes in ([100], [1] * 100, [0, 15, 1, 0, 17, 67], [33, 67]):
        starts = [sum(sizes[:position]) for position in range(len(sizes))]
        path = tmp_path / f"out{suffix}"
        slices = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
        assert write_pairs(path, slices) == 100
        written.add(path.read_bytes())
    assert len(written) == 1
    if suffix == ".parquet":
        metadata = pq.read_metadata(tmp_path / "out.parquet")
        groups = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
        assert groups == [16] * 6 + [4]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_record_batches_and_other_types_of_the_same_columns(tmp_path, suffix):
    plain = table(record(), record(1))
    other = plain.set_column(13, "direction", plain["direction"].dictionary_encode())
    other = other.set_column(5, "source_text", plain["source_text"].cast(pa.large_string()))
    other = other.select(reversed(plain.schema.names))
    for name, parts in (("a", [plain]), ("b", other.to_batches())):
        assert write_pairs(tmp_path / f"{name}{suffix}", parts) == 2
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_pairs(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    assert write_pairs(path, []) == 0
    if suffix == ".parquet":
        assert pq.read_table(path) == pairs_schema().empty_table()
    elif suffix in (".tsv", ".jsonl"):
        assert path.read_bytes() == b""


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_keeps_what_was_there(tmp_path, monkeypatch, suffix, error):
    monkeypatch.setattr(writers.Format, "rows", 1)
    path = tmp_path / f"out{suffix}"
    path.write_text("old")

    def failing():
        yield table(record())
        raise error

    with pytest.raises(error):
        write_pairs(path, failing())
    assert path.read_text() == "old"
    assert names(tmp_path) == [path.name]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="the system has no /dev/full")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_full_disk(tmp_path, monkeypatch, suffix):
    def open_full(_path, mode):
        return open("/dev/full", mode)

    monkeypatch.setattr(pairs, "open", open_full, raising=False)
    path = tmp_path / f"out{suffix}"
    path.write_text("old")
    with pytest.raises(OutputError) as caught:
        write_pairs(path, [table(record())])
    assert (
        str(caught.value)
        == f"{path}: cannot be written: {os.strerror(errno.ENOSPC)}; free space on its disk"
    )
    assert path.read_text() == "old"
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["out", "out.txt", "out.tsv.xz", "out.parquet.gz", "out.gz"])
def test_unknown_suffix(tmp_path, name):
    for call in (check_output, lambda path: write_pairs(path, [])):
        with pytest.raises(ValueError, match=r"use one of \.tsv, \.jsonl, \.parquet"):
            call(tmp_path / name)
    assert names(tmp_path) == []


def test_check_output(tmp_path):
    for suffix in (*SUFFIXES, ".TSV"):
        check_output(tmp_path / f"out{suffix}")
    with pytest.raises(OutputError, match="folder not found:"):
        check_output(tmp_path / "none" / "out.tsv")
    assert names(tmp_path) == []
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        check_output(tmp_path / "folder.tsv")


def test_upper_case_suffix(tmp_path):
    write_pairs(tmp_path / "out.TSV", [table(record())])
    assert names(tmp_path) == ["out.TSV"]
