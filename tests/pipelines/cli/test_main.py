"""The command adit: which subcommand runs, and what is a corpus rather than a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.cli.main import COMMANDS, WORK_FOLDER_COMMANDS, adit
from pipelines.cli.mine import mine_corpus


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in which a corpus is called report."""
    for name, word in (("report", "Haus"), ("report.en", "house")):
        lines = "".join(f"{word} {row}\n" for row in range(8))
        (tmp_path / name).write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_corpus_called_like_a_command_can_be_mined(corpora: Path) -> None:
    assert adit(["mine", "report", "report.en", "-o", "out.tsv", "-q"]) == 0
    assert (corpora / "out.tsv").read_text(encoding="utf-8").count("\n") == 8
    assert mine_corpus(["./report", "report.en", "-o", "again.tsv", "-q"]) == 0
    assert (corpora / "again.tsv").read_bytes() == (corpora / "out.tsv").read_bytes()


def test_the_precision_of_the_encoder(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mine", "report", "report.en", "-o", "out.tsv", "-q", "--precision"]
    assert adit([*command, "float32"]) == 0
    assert adit([*command, "int8"]) == 2  # a bag has no network
    assert "int8" in capsys.readouterr().err


def test_what_may_be_either_is_refused(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mine_corpus(["report", "report.en", "-o", "out.tsv"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("mine-corpus: error: report is both a command and an existing path")
    assert "./report" in error
    assert "adit report" in error
    assert sorted(path.name for path in corpora.iterdir()) == ["report", "report.en"]


@pytest.mark.parametrize("command", WORK_FOLDER_COMMANDS)
def test_the_commands_of_a_work_folder(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = {
        "why": ["a", "b"],
        "report": ["-o", "out.html"],
        "calibrate": ["-o", "out.jsonl", "--known", "x"],
    }.get(command, [])
    rest = [str(tmp_path / one) if one.startswith("out") else one for one in rest]
    for run, program in (
        (lambda arguments: adit([command, *arguments]), f"adit {command}"),
        (lambda arguments: mine_corpus([command, *arguments]), f"mine-corpus {command}"),
    ):
        assert run([str(tmp_path), *rest]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"{program}: error: {tmp_path}: contains no ")
        assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_encoders_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert mine_corpus(["encoders"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"\nmini: 256 dimensions, about [\d,]+ news sentences per second", told)
    assert " de 0." in told


@pytest.mark.parametrize("arguments", [[], ["digg"], ["mine"]])
def test_a_wrong_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        adit(arguments)
    assert stop.value.code == 2
    assert "usage: adit" in capsys.readouterr().err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        adit(["--help"])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:3] > "  "]
    assert set(COMMANDS) <= set(listed)
