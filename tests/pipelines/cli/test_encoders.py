"""``adit encoders``: what is installed, the parts of joined encoders, their languages."""

from __future__ import annotations

import pytest

from encoder.joined import read_joined_coverage
from pipelines.cli.encoders import encoders
from tests.pipelines.worlds import one_line


@pytest.fixture(autouse=True)
def no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time next to nothing."""
    monkeypatch.setattr("pipelines.cli.encoders.BATCH", 2)
    monkeypatch.setattr("pipelines.cli.encoders.TRIAL_SECONDS", 0.001)


@pytest.mark.usefixtures("best")
def test_the_best_is_listed_by_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert encoders([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "best: mini+use"
    heads = {line.partition(":")[0]: row for row, line in enumerate(lines) if line[0] != " "}
    assert 1 < heads["mini"] < heads["use"]
    assert " ko " in lines[heads["use"] + 1]


def test_a_single_encoder_is_compared_with_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert encoders(["mini"]) == 0
    assert "use: lower search errors than mini's, in fewer languages\n" in capsys.readouterr().out


def test_a_language_is_as_good_as_its_best_part() -> None:
    both, mini = read_joined_coverage("mini+use"), read_joined_coverage("mini")
    assert both["ko"].error < mini["ko"].error
    assert both["sv"] == mini["sv"]


def test_what_is_no_encoder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert encoders(["mini+nothing-there"]) == 2
    assert "nothing-there" in one_line(capsys.readouterr().err, "adit encoders")
