"""``--document-pairs auto``: documents are paired as they would be in memory, however they lie."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from miner.document_pairing import DocumentsInMemory, pair_sides
from miner.knn.core.rescore import unit_rows
from miner.storage.layout import WorkFolder
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import ON_BEAM, one_line, read_jsonl

DOCUMENTS, DIM = 12, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora whose documents' sentences are mixed, some without a document, and vectors."""
    folder = tmp_path_factory.mktemp("documents")
    random = np.random.default_rng(0)
    own = np.repeat(random.permutation(DOCUMENTS), 6)
    vectors = random.standard_normal((DOCUMENTS, DIM))[own] + random.standard_normal((72, DIM))
    for name, code, noise in (("s", "de", 0.0), ("t", "en", 0.4)):
        order = random.permutation(72)
        noisy = vectors[order] + noise * random.standard_normal((72, DIM))
        np.save(folder / f"{name}.npy", noisy.astype(np.float32))
        records = [
            {
                "id": str(row),
                "doc": "" if row % 9 == 8 else f"{code}/{own[row]}",
                "text": f"{name} {row}",
            }
            for row in order.tolist()
        ]
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def mine(folder: Path, name: str, *options: str) -> tuple[bytes, bytes]:
    """The output and the list of document pairs."""
    inputs = [str(folder / file) for file in ("s.jsonl", "t.jsonl")]
    for side, file in (("src", "s.npy"), ("tgt", "t.npy")):
        inputs += [f"--{side}-embeddings", str(folder / file)]
    out, work = folder / f"{name}.jsonl", folder / f"{name}-work"
    where = ["-o", str(out), "-q", "--work-dir", str(work), "--document-pairs", "auto"]
    assert mine_corpus([*inputs, *where, *options]) == 0
    listed = WorkFolder(work).document_pairs / "pairs.tsv"
    return out.read_bytes(), listed.read_bytes()


@pytest.fixture(scope="module")
def whole(folder: Path) -> tuple[bytes, bytes]:
    return mine(folder, "whole")


def test_the_list_is_what_arrays_give(folder: Path, whole: tuple[bytes, bytes]) -> None:
    sides = []
    for name in ("s", "t"):
        vectors = unit_rows(np.load(folder / f"{name}.npy"))
        rows: dict[str, list[int]] = {}
        for row, record in enumerate(read_jsonl(folder / f"{name}.jsonl")):
            if record["doc"]:
                rows.setdefault(record["doc"], []).append(row)
        sides.append(DocumentsInMemory([vectors[own] for own in rows.values()], list(rows)))
    found = pair_sides(*sides)
    expected = [
        f"{sides[0].names[p]}\t{sides[1].names[q]}\t{score:.4f}\n"
        for p, q, score in zip(found.source, found.target, found.scores, strict=True)
    ]
    assert whole[1].decode() == "".join(expected)
    assert len(expected) == DOCUMENTS
    summary = json.loads((folder / "whole-work/run.json").read_text(encoding="utf-8"))
    lowest = pytest.approx(float(found.scores[-1]))
    assert summary["documents"] == {"source": 12, "target": 12, "pairs": 12, "lowest": lowest}


@pytest.mark.parametrize("options", [["--shards", "7"], ["--shards", "2", *ON_BEAM]])
def test_shards_and_workers_change_no_byte(
    folder: Path, whole: tuple[bytes, bytes], options: list[str]
) -> None:
    assert mine(folder, "cut", *options) == whole


def test_another_k_pairs_no_document_again(folder: Path, whole: tuple[bytes, bytes]) -> None:
    work = folder / "whole-work"
    before = {path: path.stat().st_mtime_ns for path in work.glob("documents/**/seal.json")}
    assert len(before) == 3
    assert mine(folder, "whole", "-k", "2")[1] == whole[1]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_pair_is_found_in_its_documents(whole: tuple[bytes, bytes]) -> None:
    pairs = {tuple(line.split("\t")[:2]) for line in whole[1].decode().splitlines()}
    records = [json.loads(line) for line in whole[0].splitlines()]
    assert len(records) > 40
    assert {(record["source_doc"], record["target_doc"]) for record in records} == pairs


def test_the_command_finds_the_same(tmp_path: Path) -> None:
    texts = ["rain clouds wind", "bread butter cheese", "trains stations tickets"]
    for name in "st":
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(
                json.dumps({"doc": f"{name}{place}", "text": f"The {word} and the {text}."}) + "\n"
                for place, text in enumerate(texts)
                for word in text.split()
            )
        )
    inputs = [str(tmp_path / "s.jsonl"), str(tmp_path / "t.jsonl")]
    assert adit(["pair", *inputs, "-o", str(tmp_path / "pairs.tsv")]) == 0
    work = tmp_path / "work"
    mine = ["mine", *inputs, "-o", str(tmp_path / "o.tsv"), "-q", "--document-pairs", "auto"]
    assert adit([*mine, "--work-dir", str(work)]) == 0
    found = (WorkFolder(work).document_pairs / "pairs.tsv").read_text(encoding="utf-8")
    assert found == (tmp_path / "pairs.tsv").read_text(encoding="utf-8")
    assert [line.split("\t")[:2] for line in found.splitlines()] == [
        [f"s{place}", f"t{place}"] for place in (int(line[1]) for line in found.splitlines())
    ]


def test_without_documents_nothing_is_paired(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("one\ntwo\n")
    run = [str(plain), str(folder / "t.jsonl"), "-o", str(tmp_path / "o.tsv"), "-q"]
    assert mine_corpus([*run, "--scope", "document"]) == 2
    line = one_line(capsys.readouterr().err, "mine-corpus")
    assert "plain.txt: no sentence belongs to a document" in line


def test_unrelated_documents_are_not_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["-o", str(tmp_path / "o.tsv"), "-q", "--document-pairs", "auto"]
    for place, (name, side) in enumerate([("s", "src"), ("t", "tgt")]):
        record = json.dumps({"doc": name, "text": name})
        (tmp_path / f"{name}.jsonl").write_text(f"{record}\n")
        np.save(tmp_path / f"{name}.npy", np.eye(2, dtype=np.float32)[[place]])
        run += [f"--{side}-embeddings", str(tmp_path / f"{name}.npy")]
    assert mine_corpus([str(tmp_path / "s.jsonl"), str(tmp_path / "t.jsonl"), *run]) == 2
    line = one_line(capsys.readouterr().err, "mine-corpus")
    assert "matches a document of" in line
    assert not (tmp_path / "o.tsv").exists()
