"""align-documents: two files in, an alignment out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from miner.monotone.blocks import joined
from miner.storage.streams import read_lines
from pipelines.cli.align_documents import align_documents

GERMAN = [
    "Der Hund schläft.",
    "Es regnet, und wir bleiben heute zu Hause.",
    "Das Museum öffnet um neun Uhr.",
    "Es schließt um fünf.",
    "Meine Schwester wohnt in Berlin.",
]
ENGLISH = [
    "The dog is asleep.",
    "It is raining.",
    "We are staying at home today.",
    "The museum opens at nine o'clock and closes at five.",
    "My sister lives in Berlin.",
]
GOLD = ["[0]:[0]", "[1]:[1, 2]", "[2, 3]:[3]", "[4]:[4]"]


@pytest.fixture
def documents(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "a.de", tmp_path / "a.en"]
    for path, lines in zip(paths, (GERMAN, ENGLISH), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [str(path) for path in paths]


def test_lines_are_vecaligns(documents: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert align_documents(documents) == 0
    lines = [line.rpartition(":") for line in capsys.readouterr().out.splitlines()]
    assert [bead for bead, _, _ in lines] == GOLD
    assert all(0 < float(cost) < 3 for _, _, cost in lines)


def test_json_lines_have_ids_and_merged_texts(documents: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert align_documents([*documents, "-o", str(out)]) == 0
    merged = json.loads(out.read_text(encoding="utf-8").splitlines()[2])
    assert (merged["source_ids"], merged["target_ids"]) == (["3", "4"], ["4"])
    assert merged["source_text"] == " ".join(GERMAN[2:4])
    assert merged["target_text"] == ENGLISH[3]


@pytest.mark.parametrize("name", ["out.jsonl", "out.txt"])
def test_outputs_are_compressed_by_their_suffix(
    documents: list[str], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in ("", ".gz", ".zst"):
        assert align_documents([*documents, "-o", str(tmp_path / f"{name}{suffix}")]) == 0
    plain = read_lines(tmp_path / name)
    assert len(plain) == len(GOLD)
    for suffix in (".gz", ".zst"):
        assert read_lines(tmp_path / f"{name}{suffix}") == plain
    assert align_documents([*documents, "-o", str(tmp_path / f"{name}.xz")]) == 2
    assert "cannot write .xz" in capsys.readouterr().err
    assert not (tmp_path / f"{name}.xz").exists()


def test_lines_without_a_sentence_keep_their_numbers(
    documents: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(documents[0]).write_bytes("\n".join([GERMAN[0], "", *GERMAN[1:]]).encode() + b"\n\xff")
    assert align_documents(documents) == 0
    lines = [line.rpartition(":") for line in capsys.readouterr().out.splitlines()]
    beads = ["[0]:[0]", "[1]:[]", "[2]:[1, 2]", "[3, 4]:[3]", "[5]:[4]", "[6]:[]"]
    assert [bead for bead, _, _ in lines] == beads


def test_a_line_without_a_sentence_within_a_bead(
    documents: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["", *GERMAN[:3], "", GERMAN[3], GERMAN[4], "", ""]
    Path(documents[0]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path(documents[1]).write_text("\n\n".join(ENGLISH) + "\n", encoding="utf-8")
    assert align_documents(documents) == 0
    lines = [line.rpartition(":")[0] for line in capsys.readouterr().out.splitlines()]
    beads = ["[1]:[0]", "[2]:[2, 4]", "[3, 5]:[6]", "[6]:[8]"]
    assert [line for line in lines if "[]" not in line] == beads
    gaps = ["[0]:[]", "[]:[1]", "[]:[3]", "[4]:[]", "[]:[5]", "[]:[7]", "[7]:[]", "[8]:[]"]
    assert sorted(line for line in lines if "[]" in line) == sorted(gaps)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        *((["a.", "b"], "a. b"), (["你好。", "世界"], "你好。世界"), ([], "")),
        *((["", "b"], "b"), (["a.", "", "b"], "a. b"), ([""], "")),
    ],
)
def test_joined(texts: list[str], expected: str) -> None:
    assert joined(texts) == expected


def test_a_missing_file_is_named(
    documents: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert align_documents([documents[0], str(tmp_path / "none.en")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "none.en" in line


def test_pairs_of_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in (("de", GERMAN), ("en", ENGLISH)):
        records = [
            {"id": f"{name}{n}", "doc": doc, "text": text}
            for doc in ("one", "two")
            for n, text in enumerate(lines if doc == "one" else lines[:1])
        ]
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(text)
    (tmp_path / "pairs.tsv").write_text("one\tone\t0.9\ntwo\ttwo\t0.8\nthree\tnone\n")
    given = [str(tmp_path / "de.jsonl"), str(tmp_path / "en.jsonl")]
    paired = [*given, "--document-pairs", str(tmp_path / "pairs.tsv")]
    assert align_documents([*paired, "-o", str(tmp_path / "out.jsonl")]) == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [record["source_doc"] for record in found] == ["one"] * 4 + ["two"]
    assert found[2]["source_ids"] == ["de2", "de3"]
    assert found[4]["target_ids"] == ["en0"]
    assert align_documents(paired) == 2
    (tmp_path / "pairs.tsv").write_text("three\tnone\n")
    assert align_documents([*paired, "-o", str(tmp_path / "no.jsonl")]) == 2
    assert not (tmp_path / "no.jsonl").exists()
    assert "pairs.tsv" in capsys.readouterr().err


def test_blank_lines_are_no_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "de").write_text("\n \n\n")
    (tmp_path / "en").write_text("\n".join(ENGLISH))
    out = tmp_path / "out.jsonl"
    assert align_documents([str(tmp_path / "de"), str(tmp_path / "en"), "-o", str(out)]) == 2
    assert "de: no line has a sentence; pass a document with text" in capsys.readouterr().err
    assert not out.exists()
    for name, lines in (("de", GERMAN), ("en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n\n" for line in lines))
    assert align_documents([str(tmp_path / "de"), str(tmp_path / "en"), "-o", str(out)]) == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) >= len(GERMAN) - 1
    assert all(record["source_text"] or record["target_text"] for record in records)
