"""Pairs marked by a person: read, and what calibrate makes of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from eval.data.sentences import read_gold
from eval.runs.gold import Gold
from eval.runs.marks import by_marks, read_judged
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
    whole = read_judged(gold, run)
    assert whole.places.tolist() == list(range(len(run.pairs)))
    assert whole.right.tolist() == Gold.of(run, read_gold(gold)).judgements.correct.tolist()
    some = read_judged(write_marks(tmp_path / "marks", run, gold, [3, 5, 100]), run)
    assert some.places.tolist() == [3, 5, 100]
    assert some.right.tolist() == whole.right[[3, 5, 100]].tolist()


def test_isotonic_estimates(run: Run, finished_run: Path, tmp_path: Path) -> None:
    """With all pairs marked, they are near the counts, and never rise with the score."""
    judged = read_judged(finished_run / "gold", run)
    found = by_marks(run, judged)
    assert (np.diff(found.probabilities) <= 1e-12).all()
    assert found.probabilities.sum() == pytest.approx(judged.right.sum())
    counted = np.cumsum(~judged.right) / np.arange(1, len(run.pairs) + 1)
    for fdr in (0.4, 0.5):
        kept, interval = found.kept(fdr), found.interval(fdr)
        assert kept > 20
        assert found.probabilities[:kept].mean() >= 1 - fdr
        assert interval is not None
        assert interval[0] < counted[kept - 1] < interval[1] < counted[kept - 1] + 0.2
    assert found.interval(1e-9) is None or found.kept(1e-9)


def test_calibrate(run: Run, finished_run: Path, tmp_path: Path, capsys: Captured) -> None:
    places = list(range(0, len(run.pairs), 3))
    marks = write_marks(tmp_path / "marks.tsv", run, finished_run / "gold", places)
    out = tmp_path / "out.jsonl"
    more = ["--known", str(marks), "-o", str(out)]
    assert adit(["calibrate", str(finished_run / "work"), *more, "--fdr", "0.5"]) == 0
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    expected = by_marks(run, read_judged(marks, run))
    assert len(written) == expected.kept(0.5) > 10
    assert [pair["probability"] for pair in written] == pytest.approx(
        expected.probabilities[: len(written)].tolist()
    )
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{len(written)} of ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\tgood\n", "line 1: expected SOURCE_ID TAB TARGET_ID TAB right or wrong, not 'a"),
        ("a\tb\tright\nc\n", "line 2: expected"),
        ("a\tb\tright\n", "none of its 1 pairs, such as 'a' and 'b', is among those of the run"),
        ("few", "29 marked pairs are too few to estimate how many are wrong; mark at "),
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
