"""adit pair: two folders in, pairs of documents out, which mining takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from miner.commandline import command_parser
from miner.document_pairing import THRESHOLD
from miner.storage.corpus.reader import read_document_pairs
from pipelines.cli.documents import add_pairing
from pipelines.cli.main import adit

SUBJECTS = ("rain clouds wind", "bread butter cheese", "trains stations tickets", "cats dogs mice")


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, order in zip(folders, ((0, 1, 2), (2, 3, 0)), strict=True):
        folder.mkdir()
        for place, subject in enumerate(order):
            words = SUBJECTS[subject].split()
            text = " ".join(f"The {word} were {word} of {words[0]}." for word in words)
            (folder / f"{place}.txt").write_text(text)
    return folders


def test_pairs_are_what_mining_takes(folders: list[Path], tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "out.tsv"
    assert adit(["pair", *map(str, folders), "-o", str(out)]) == 0  # recognised as documents
    given = [*map(str, folders), "--input-format", "documents"]
    assert adit(["pair", *given, "-o", str(pairs)]) == 0
    assert out.read_bytes() == pairs.read_bytes()
    assert sorted(read_document_pairs(pairs)) == [("0.txt", "2.txt"), ("2.txt", "0.txt")]
    assert adit(["pair", *given, "-o", f"{pairs}.gz"]) == 0
    assert read_document_pairs(Path(f"{pairs}.gz")) == read_document_pairs(pairs)
    assert Path(f"{pairs}.gz").read_bytes() != pairs.read_bytes()
    scores = [float(line.split("\t")[2]) for line in pairs.read_text().splitlines()]
    assert scores == sorted(scores, reverse=True)
    within = ["--scope", "document", "--document-pairs", str(pairs), "-o", str(out), "-q"]
    assert adit(["mine", *given, *within, "--keep-identical"]) == 0
    assert len(out.read_text().splitlines()) == 6


def test_sentences_without_documents_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One.\nTwo.\n")
    assert adit(["pair", str(path), str(path), "-o", str(tmp_path / "out")]) == 2
    assert "--input-format documents" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_threshold_is_the_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_parser(add_pairing, "adit pair").get_default("document_threshold") == THRESHOLD
    with pytest.raises(SystemExit):
        adit(["pair", "a", "b", "-o", "out", "--threshold", "nan"])
    assert "argument --threshold: expected a number, not 'nan'" in capsys.readouterr().err
