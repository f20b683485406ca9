"""adit split: documents in, a corpus of sentences out, which is mined like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from miner.storage.corpus.reader import open_corpus
from pipelines.cli.main import adit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("It rains. It pours.\n\nAm 1. Mai war Ruhe.")
    (folder / "b.txt").write_bytes(b"\xff")
    return folder


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_a_corpus(
    folder: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out{suffix}"
    assert adit(["split", str(folder), "-o", str(out)]) == 0
    (records,) = open_corpus(out)
    assert [*records.texts] == ["It rains.", "It pours.", "Am 1. Mai war Ruhe."]
    assert records.docs == ["a.txt"] * 3
    assert records.ids() == [f"a.txt#char={place}" for place in ("0,9", "10,19", "21,40")]
    (line,) = capsys.readouterr().err.splitlines()
    assert "2 documents, 3 sentences" in line
    assert "1 undecodable" in line


def test_one_document_is_counted_in_the_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("It rains.")
    assert adit(["split", str(tmp_path / "a.txt"), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert "out.jsonl: 1 document, 1 sentence" in capsys.readouterr().err


def test_each_sentence_has_its_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    english = "The committee will meet again in the new year to decide on the matter."
    german = "Der Ausschuss wird im neuen Jahr wieder zusammentreten und darüber entscheiden."
    folder, out = tmp_path / "in", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "a.txt").write_text(f"{english} {german} {english}", encoding="utf-8")
    assert adit(["split", str(folder), "-o", str(out)]) == 0
    found = [
        json.loads(line)["language"] for line in out.read_text(encoding="utf-8").split("\n")[:-1]
    ]
    assert found == ["en", "de", "en"]
    assert ": 1 document, 3 sentences (67% en, 33% de)" in capsys.readouterr().err


def test_bad_input(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").unlink()
    for arguments in (
        [str(folder), "-o", str(tmp_path / "out.jsonl")],
        [str(folder), "-o", str(tmp_path / "out.txt")],
        [str(tmp_path / "none.txt"), "-o", str(tmp_path / "out.jsonl")],
    ):
        assert adit(["split", *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("adit split: error: ")
    assert line.endswith("none.txt: file not found; check its path")
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("suffix", [".txt", ".html"])
def test_folders_of_documents_are_mined_in_one_command(
    tmp_path: Path, suffix: str, tiny_encoder: str
) -> None:
    sides = tmp_path / "de", tmp_path / "en"
    shared = [f"Number {n} is in both, {n * 7} times." for n in range(20)]
    for side in sides:
        side.mkdir()
        for part in range(4):
            text = " ".join(shared[5 * part : 5 * part + 5])
            page = f"<html><body><article><p>{text}</p></article></body></html>"
            (side / f"page{part}{suffix}").write_text(page if suffix == ".html" else text)
    (sides[0] / f"broken{suffix}").write_bytes(b"" if suffix == ".html" else b"\xff.")
    options = ["--scope", "corpus", "--keep-identical"]
    if suffix == ".txt":
        options += ["--input-format", "documents"]
    if suffix == ".html":
        pytest.importorskip("trafilatura")
    outputs = []
    for shards in ("1", "3"):
        out = tmp_path / f"out{shards}.jsonl"
        arguments = ["mine", *map(str, sides), "-o", str(out), "--encoder", tiny_encoder, "-q"]
        assert adit([*arguments, "--shards", shards, *options]) == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    pairs = [json.loads(line) for line in outputs[0].splitlines()]
    assert {pair["source_text"] for pair in pairs} == set(shared)
    for pair in pairs:
        assert pair["source_text"] == pair["target_text"]
        assert pair["source_id"].startswith(f"{pair['source_doc']}#char=")
