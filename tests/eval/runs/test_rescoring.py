"""mine-corpus rescore: a second score for the pairs of a run, by those that are known."""

import json
from pathlib import Path

import numpy as np
import pytest

from eval.runs.marks import read_judged
from eval.runs.rescoring import FOLDS, compare, rescore
from eval.runs.store import open_run
from miner.rescoring import Rescorer, features
from pipelines.cli.main import adit

Captured = pytest.CaptureFixture[str]


def test_each_pair_is_scored_by_a_model_that_has_not_seen_it(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    gold = read_judged(finished_run / "gold", run)
    rescored = rescore(run, gold)
    known, right = features(run.pairs, run.suspects), gold.right
    for place in (0, 3, 57, len(run.pairs) - 1):
        others = [row for row in range(len(right)) if (row - place) % FOLDS]
        model = Rescorer.trained(known[others], right[others])
        assert rescored.unseen[place] == pytest.approx(model.scores(known[[place]])[0])
    whole = Rescorer.trained(known, right)
    np.testing.assert_array_equal(rescored.scores, whole.scores(known))


def test_how_many_known_pairs_are_at_the_top(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    gold = read_judged(finished_run / "gold", run)
    rescored = rescore(run, gold)
    rows = compare(run, gold, rescored)
    assert len(rows) == 6
    for share, kept, by_margin, by_second in rows:
        assert kept == int(share * len(run.pairs))
        assert by_margin == sum(gold.right[:kept])
        best = sorted(range(len(run.pairs)), key=lambda place: -rescored.unseen[place])[:kept]
        assert by_second == sum(gold.right[place] for place in best)


def test_command(finished_run: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out.jsonl"
    arguments = [finished_run / "work", "--known", finished_run / "gold", "-o", out]
    assert adit(["rescore", *map(str, arguments)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["kept", "pairs", "known", "by", "margin", "by", "second", "score"]
    assert [line.split()[0] for line in lines[1:]] == ["1%", "2%", "5%", "10%", "20%", "50%"]
    pairs = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    mined = [json.loads(line) for line in (finished_run / "pairs.jsonl").open(encoding="utf-8")]
    scores = [pair["score"] for pair in pairs]
    assert scores == sorted(scores, reverse=True)
    assert {(pair["source_id"], pair["target_id"], pair["margin"]) for pair in pairs} == {
        (pair["source_id"], pair["target_id"], pair["score"]) for pair in mined
    }


def test_nothing_is_known(finished_run: Path, tmp_path: Path, capsys: Captured) -> None:
    known = tmp_path / "known"
    known.write_text("a\tb\n")
    out = tmp_path / "out.jsonl"
    arguments = [finished_run / "work", "--known", known, "-o", out]
    assert adit(["rescore", *map(str, arguments)]) == 2
    assert "give more known pairs" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("command", [["rescore", "--known", "x"], ["calibrate"]])
def test_output_is_json_lines(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    assert adit([*command, str(tmp_path), "-o", "out.tsv"]) == 2
    assert "out.tsv: these pairs are written as JSON lines; name it .jsonl" in (
        capsys.readouterr().err
    )
