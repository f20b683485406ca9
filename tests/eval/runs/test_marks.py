"""Pairs marked by a person: read, and what calibrate makes of them."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from eval.data.bucc import read_gold
from eval.runs import calibration
from eval.runs.calibration import Gold, LabelledPairs, estimates_from_marks, read_labels
from eval.runs.store import Run, open_run
from pipelines.cli.main import adit

Captured = pytest.CaptureFixture[str]


def write_marks(path: Path, run: Run, gold: Path, places: list[int]) -> Path:
    right = Gold.of(run, read_gold(gold)).judgements.correct
    ids = run.source.ids(run.pairs.source), run.target.ids(run.pairs.target)
    lines = [
        f"{ids[0][place]}\t{ids[1][place]}\t{'right' if right[place] else 'wrong'}\n"
        for place in reversed(places)
    ]
    path.write_text("".join([*lines, "gone\tgone\twrong\n", "\n"]), encoding="utf-8")
    return path


@pytest.fixture
def run(finished_run: Path) -> Run:
    return open_run(finished_run / "work")


def test_marks_are_of_some_pairs_and_gold_of_all(
    run: Run, finished_run: Path, tmp_path: Path
) -> None:
    gold = finished_run / "gold"
    whole = read_labels(gold, run)
    assert whole.positions.tolist() == list(range(len(run.pairs)))
    assert whole.correct.tolist() == Gold.of(run, read_gold(gold)).judgements.correct.tolist()
    some = read_labels(write_marks(tmp_path / "marks", run, gold, [3, 5, 100]), run)
    assert some.positions.tolist() == [3, 5, 100]
    assert some.correct.tolist() == whole.correct[[3, 5, 100]].tolist()


def test_estimates_by_margin_alone(run: Run, finished_run: Path) -> None:
    """With all pairs marked, they are near the counts, and never rise with the score."""
    judged = read_labels(finished_run / "gold", run)
    found = estimates_from_marks(run, judged)
    assert (np.diff(found.probabilities) <= 1e-12).all()
    assert found.probabilities.sum() == pytest.approx(judged.correct.sum(), rel=0.02)
    counted = np.cumsum(~judged.correct) / np.arange(1, len(run.pairs) + 1)
    for fdr in (0.4, 0.5):
        kept, interval = found.kept(fdr), found.interval(fdr)
        assert kept > 20
        assert found.probabilities[:kept].mean() >= 1 - fdr
        assert interval is not None
        assert interval[0] < counted[kept - 1] < interval[1] < counted[kept - 1] + 0.2
    assert found.interval(1e-9) is None or found.kept(1e-9)


def test_marks_correct_what_the_judge_says() -> None:
    """Of a judge that is off by a factor in all odds, and of one that is not."""
    random = np.random.default_rng(4)
    scores = np.sort(random.normal(0, 3, 4000))[::-1]
    true = 1 / (1 + np.exp(-scores))
    right = random.random(4000) < true
    for off in (0.0, 2.0):
        said = 1 / (1 + np.exp(-(scores + off)))
        pairs = SimpleNamespace(score=scores)
        errors = {}
        for count in (30, 300):
            places = np.sort(random.choice(4000, count, replace=False))
            found = estimates_from_marks(
                SimpleNamespace(pairs=pairs, probabilities=said, best_unwritten_score=-np.inf),
                LabelledPairs(positions=places, correct=right[places]),
            )
            errors[count] = np.abs(found.probabilities - true).mean()
        before = np.abs(said - true).mean()
        assert errors[300] < 0.04
        assert errors[30] < (0.6 * before if off else 0.08)


def test_the_correction_is_the_likeliest() -> None:
    """Against all slopes and shifts of a grid."""
    random = np.random.default_rng(1)
    odds = random.normal(0, 2, 60)
    right = random.random(60) < 1 / (1 + np.exp(-(0.7 * odds + 1)))

    def value(slope: float, shift: float) -> float:
        signed = np.where(right, 1, -1) * (slope * odds + shift)
        first, second = calibration.PRIOR_PRECISION
        held = first * (slope - 1) ** 2 + second * shift**2
        return float(-np.log1p(np.exp(-signed)).sum() - held / 2)

    slope, shift = calibration._fit_odds(odds, right, calibration.PRIOR_PRECISION)
    grid = [(a, b) for a in np.linspace(0, 3, 61) for b in np.linspace(-3, 3, 61)]
    assert value(slope, shift) >= max(value(*one) for one in grid)


def test_calibrate(run: Run, finished_run: Path, tmp_path: Path, capsys: Captured) -> None:
    places = list(range(0, len(run.pairs), 3))
    marks = write_marks(tmp_path / "marks.tsv", run, finished_run / "gold", places)
    out = tmp_path / "out.jsonl"
    more = ["--known", str(marks), "-o", str(out)]
    assert adit(["calibrate", str(finished_run / "work"), *more, "--fdr", "0.5"]) == 0
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    expected = estimates_from_marks(run, read_labels(marks, run))
    assert len(written) == expected.kept(0.5) > 10
    assert [pair["probability"] for pair in written] == pytest.approx(
        expected.probabilities[: len(written)].tolist()
    )
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{len(written)} of ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\tgood\n", "line 1: expected SOURCE_ID TAB TARGET_ID TAB right (or wrong), not 'a"),
        ("a\tb\tright\nc\n", "line 2: expected"),
        ("a\tb\tright\n", "no marked pair, such as 'a' and 'b', is a pair of the run"),
        ("few", "too few labelled pairs of this run, 29, to estimate error rates; mark 30"),
    ],
)
def test_bad_marks(
    run: Run, finished_run: Path, tmp_path: Path, content: str, message: str, capsys: Captured
) -> None:
    marks, out = tmp_path / "marks.tsv", tmp_path / "out.jsonl"
    if content == "few":
        write_marks(marks, run, finished_run / "gold", list(range(29)))
    else:
        marks.write_text(content, encoding="utf-8")
    command = ["calibrate", finished_run / "work", "--known", marks, "-o", out]
    assert adit([str(word) for word in command]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
