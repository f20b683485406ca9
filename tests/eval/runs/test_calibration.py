"""adit calibrate: thresholds by the probabilities of a run's pairs."""

import json
from pathlib import Path

import numpy as np
import pytest

from eval.runs.calibration import Estimates, estimates_from_judge, thresholds
from eval.runs.store import open_run
from pipelines.cli.main import adit

Captured = pytest.CaptureFixture[str]


def test_rates_are_the_least_of_any_threshold() -> None:
    scores = np.array([5.0, 4.0, 4.0, 3.0, 2.0])
    likely = np.array([0.9, 0.4, 0.4, 1.0, 0.1])
    found = Estimates(scores=scores, probabilities=likely)
    shares = [0.1, 1.3 / 3, 1.3 / 3, 1.3 / 4, 2.2 / 5]
    assert found.rates.tolist() == pytest.approx([0.1, *[1.3 / 4] * 3, 2.2 / 5])
    assert [found.kept(rate) for rate in (0.05, 0.1, 0.33, 0.5)] == [0, 1, 4, 5]
    assert found.threshold(0.05) == np.inf
    assert (scores > found.threshold(0.33)).sum() == 4
    assert shares[3] <= 0.33


def test_calibrated_pairs(judged_run: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "pairs.jsonl"
    arguments = ["calibrate", str(judged_run), "-o", str(out)]
    assert adit(arguments) == 0
    told = capsys.readouterr().out.splitlines()
    run = open_run(judged_run)
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    mined = (judged_run.parent / "judged.jsonl").read_text(encoding="utf-8").splitlines()
    for record, pair in zip(records, map(json.loads, mined), strict=True):
        for name in ("score", "probability", "source_id", "target_text", "target_duplicates"):
            assert record[name] == pair[name]
    assert [record["fdr"] for record in records] == estimates_from_judge(run).rates.tolist()
    for line, (wanted, threshold, kept, right, _) in zip(
        told[1:5], thresholds(estimates_from_judge(run)), strict=True
    ):
        assert line.split() == [f"{wanted:.0%}", repr(threshold), str(kept), f"{right:.0f}"]
    assert told[5] == f"{len(records)} of {len(records)} pairs written"
    assert adit([*arguments, "--fdr", "0.01"]) == 0
    assert 0 < len(out.read_text(encoding="utf-8").splitlines()) < len(records)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.jsonl"], "rerun with --score words"),
        (["-o", "x.tsv"], "x.tsv: the output is JSON lines; name it with .jsonl"),
    ],
)
def test_bad_input(
    finished_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert adit(["calibrate", str(finished_run / "work"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("adit calibrate: error: ")
    assert message in error
    assert not list(tmp_path.iterdir())


def test_a_share_is_between_0_and_1(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        adit(["calibrate", ".", "-o", "x.jsonl", "--fdr", "5"])
    assert "expected a share between 0 and 1, not '5'" in capsys.readouterr().err
