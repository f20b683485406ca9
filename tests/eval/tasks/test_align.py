"""eval-encoder align on a document of five sentences."""

import json
from pathlib import Path

import pytest

from eval.cli.encoder import eval_encoder

GERMAN = ["Der Hund schläft.", "Es regnet.", "Das Museum öffnet um neun.", "Es schließt um fünf."]
ENGLISH = ["The dog is asleep.", "It rains.", "The museum opens at nine and closes at five."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, lines in (
        ("a.de", GERMAN),
        ("a.en", ENGLISH),
        ("a.deen", ["[0]:[0]", "[1]:[1]", "[2, 3]:[2]"]),
        ("b.dede", ["[0]:[0]"]),  # without documents
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert eval_encoder(["align", str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (name,) = record["documents"]
    measured = record["documents"][name]
    assert (name, measured["source"], measured["target"], measured["gold"]) == ("a.deen", 4, 3, 3)
    assert measured["strict"]["f1"] == measured["lax"]["f1"] == 1


def test_gold_of_other_files_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.deen").write_text("[0]:[7]\n", encoding="utf-8")
    assert eval_encoder(["align", str(folder)]) == 2
    assert "a.deen" in capsys.readouterr().err


def test_a_folder_without_gold_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert eval_encoder(["align", str(tmp_path)]) == 2
    assert "NAME.deen" in capsys.readouterr().err
