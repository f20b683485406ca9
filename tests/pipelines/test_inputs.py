"""Corpora of every format, compressed or not; lines that are not what they should be."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import World, make_world, mined_in_memory, read_jsonl, records_of


def mine_source(world: World, name: str, *options: str) -> list[dict]:
    """Mine with the file ``name`` as the source."""
    arguments = [str(world.path(name)), *world.inputs()[1:]]
    out = world.path("out.jsonl")
    assert mine_corpus([*arguments, "-o", str(out), "-q", *options]) == 0
    return read_jsonl(out)


@pytest.fixture
def plain(world: World) -> list[dict]:
    """What should be mined from the source's sentences in any format."""
    return records_of(mined_in_memory(world), world.source, world.target)


def with_names(plain: list[dict], *, doc: bool) -> list[dict]:
    return [
        record
        | {"source_id": f"de-{record['source_row']:09d}"}
        | ({"source_doc": f"doc{record['source_row'] // 10}"} if doc else {})
        for record in plain
    ]


def test_bucc(world: World, plain: list[dict]) -> None:
    lines = [f"de-{row:09d}\t{text}\n" for row, text in enumerate(world.source)]
    world.path("de.training").write_text("".join(lines), encoding="utf-8")
    assert mine_source(world, "de.training") == with_names(plain, doc=False)


@pytest.mark.parametrize("columns", [2, 3])
def test_tsv(world: World, plain: list[dict], columns: int) -> None:
    lines = [
        "\t".join([f"de-{row:09d}", *([f"doc{row // 10}"] if columns == 3 else []), text]) + "\n"
        for row, text in enumerate(world.source)
    ]
    world.path("source.tsv").write_text("".join(lines), encoding="utf-8")
    assert mine_source(world, "source.tsv") == with_names(plain, doc=columns == 3)


def test_jsonl(world: World, plain: list[dict]) -> None:
    lines = [
        json.dumps({"text": text, "doc": f"doc{row // 10}", "id": f"de-{row:09d}"}) + "\n"
        for row, text in enumerate(world.source)
    ]
    world.path("source.jsonl").write_text("".join(lines), encoding="utf-8")
    assert mine_source(world, "source.jsonl") == with_names(plain, doc=True)


def test_parquet(world: World, plain: list[dict]) -> None:
    rows = range(len(world.source))
    columns = {
        "id": [f"de-{row:09d}" for row in rows],
        "doc": [f"doc{row // 10}" for row in rows],
        "text": world.source,
    }
    pq.write_table(pa.table(columns), world.path("source.parquet"), row_group_size=7)
    assert mine_source(world, "source.parquet") == with_names(plain, doc=True)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".bz2", bz2.compress),
        (".zst", lambda data: pa.compress(data, codec="zstd", asbytes=True)),
    ],
)
def test_compressed(
    world: World, plain: list[dict], suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    name = f"src.txt{suffix}"
    world.path(name).write_bytes(compress(world.path("src.txt").read_bytes()))
    assert mine_source(world, name) == plain


def test_the_format_can_be_forced(world: World) -> None:
    lines = [f"de-{row:09d}\t{text}\n" for row, text in enumerate(world.source)]
    world.path("source.txt").write_text("".join(lines), encoding="utf-8")
    records = mine_source(world, "source.txt", "--input-format", "lines")
    assert {record["source_text"] for record in records} <= {line[:-1] for line in lines}


ODD_LINES = {
    1: b"",
    2: b"   \t ",
    4: b"not UTF-8: caf\xe9",
    6: b"a NUL \0 inside",
    8: b"x" * 1_000_000,
    9: b"y" * 3_000_000,
    10: "two \u2028 lines, some say; \x85 \x0b \x0c \x1c three".encode(),
    12: b"carriage \r return",
    14: b"DOS line\r",
    38: b"\xff\xfe",
}
REJECTED = {1: "blank", 2: "blank", 4: "undecodable", 6: "NUL", 8: "too long", 9: "too long"}


def test_row_numbers_never_shift(world: World) -> None:
    lines = [text.encode() for text in world.source]
    for row, line in ODD_LINES.items():
        lines[row] = line
    lines[0] = b"\xef\xbb\xbf" + lines[0]
    # The last line has no end, and is a line all the same.
    world.path("src.txt").write_bytes(b"\n".join(lines))
    out = world.mine("out.jsonl", "--retrieval", "forward", "--work-dir", str(world.path("work")))

    as_others_count = world.path("src.txt").read_bytes().split(b"\n")
    assert len(as_others_count) == len(world.source)
    rejected = {**REJECTED, 38: "undecodable"}
    kept = [row for row in range(len(lines)) if row not in rejected]
    records = read_jsonl(out)
    assert sorted(record["source_row"] for record in records) == kept
    for record in records:
        line = as_others_count[record["source_row"]].decode("utf-8-sig")
        assert record["source_text"] == line.removesuffix("\r")
        assert record["source_id"] == str(record["source_row"] + 1)
    texts = [line.decode("utf-8-sig", "replace").removesuffix("\r") for line in as_others_count]
    expected = mined_in_memory(world, source_rows=kept, retrieval="forward")
    assert records == records_of(expected, texts, world.target)

    told = json.loads(world.path("work/run.json").read_bytes())["source"]
    assert told["rejected"] == {"blank": 2, "undecodable": 2, "NUL": 1, "too long": 2}
    assert told["first_rejected"] == {"blank": 1, "undecodable": 4, "NUL": 6, "too long": 8}
    assert told["read"] == 40


def test_line_breaks_within_texts_do_not_break_the_tsv(world: World) -> None:
    lines = [text.encode() for text in world.source]
    lines[10], lines[12] = ODD_LINES[10], ODD_LINES[12]
    world.path("src.txt").write_bytes(b"\n".join(lines))
    found = world.mine("out.tsv", "--retrieval", "forward").read_bytes().decode()
    assert len(found.splitlines()) == found.count("\n") == 40
    assert all(line.count("\t") == 2 for line in found.splitlines())
    assert "\tcarriage   return\t" in found


def test_odd_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(tmp_path / "ein Ordner 源")
    expected = world.mine("out.jsonl").read_bytes()
    monkeypatch.chdir(world.folder)
    os.rename("src.txt", "quelle ä 'x'.txt")
    not_utf8 = os.fsdecode(b"cibl\xe9.txt")
    os.rename("tgt.txt", not_utf8)
    vectors = ["--src-embeddings", "src.npy", "--tgt-embeddings", "tgt.npy"]
    for output, work_dir in (("a b.jsonl", "work dir ß"), ("b.jsonl", "."), ("w2/c.jsonl", "w2")):
        world.path(work_dir).mkdir(exist_ok=True)
        arguments = ["quelle ä 'x'.txt", not_utf8, *vectors, "-o", output, "--work-dir", work_dir]
        assert mine_corpus([*arguments, "--score", "margin", "-q"]) == 0
        assert world.path(output).read_bytes() == expected
        told = json.loads((Path(work_dir) / "run.json").read_bytes())
        assert told["target"]["path"] == not_utf8


def test_a_read_only_source_and_a_linked_output(world: World) -> None:
    expected = world.mine("out.tsv").read_bytes()
    world.path("src.txt").chmod(0o444)
    world.path("elsewhere").mkdir()
    link = world.path("link.tsv")
    link.symlink_to(world.path("elsewhere/real.tsv"))
    world.mine("link.tsv")
    assert link.is_symlink()
    assert world.path("elsewhere/real.tsv").read_bytes() == expected


def test_embeddings_count_every_line_the_bad_ones_too(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [text.encode() for text in world.source]
    lines[3] = b""
    world.path("src.txt").write_bytes(b"\n".join(lines) + b"\n")
    np.save(world.path("src.npy"), np.delete(world.source_vectors, 3, axis=0))
    assert mine_corpus([*world.inputs(), "-o", str(world.path("out.tsv")), "-q"]) == 2
    assert "has 39 rows, but" in capsys.readouterr().err
