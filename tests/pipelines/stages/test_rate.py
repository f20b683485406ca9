"""mine-corpus --fdr: as many pairs as keep to a share of wrong ones, with probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from encoder import load_encoder
from encoder.words import WordEncoder
from eval.runs.side import Side
from eval.runs.store import Run, open_run
from miner.left_out import CERTAIN
from miner.score_calibration import Calibration
from miner.storage.pairs import pairs_schema
from miner.word_match import align_texts, aligned_scores
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus
from pipelines.stages import left_out
from tests.pipelines.conftest import SAMPLE, Refused
from tests.pipelines.worlds import read_jsonl, snapshot

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command line without its output; all its pairs by score are in ``all.jsonl``."""
    folder = tmp_path_factory.mktemp("rating")
    inputs = [str(SAMPLE / "de-en" / f"de-en.training.{language}") for language in ("de", "en")]
    command = [*inputs, "--work-dir", str(folder / "work")]
    assert mine_corpus([*command, "-q", "--align", "-o", str(folder / "all.jsonl")]) == 0
    return command


def all_pairs(command: list[str]) -> list[dict]:
    return read_jsonl(Path(command[-1]).parent / "all.jsonl")


def summary(command: list[str]) -> dict:
    return json.loads((Path(command[-1]) / "run.json").read_text(encoding="utf-8"))


def test_the_pairs_above_the_threshold(command: list[str], tmp_path: Path) -> None:
    pairs = all_pairs(command)
    left_out = np.load(Path(command[-1]) / "left_out" / "scores.npy")
    assert len(left_out) > 100
    calibration = Calibration.of(np.array([pair["score"] for pair in pairs]), left_out)
    threshold = calibration.threshold(0.1)
    for pair in pairs:
        pair["probability"] = float(calibration.probability(np.array([pair["score"]]))[0])
    expected = [pair for pair in pairs if pair["score"] > threshold]
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(out)]) == 0
    found = read_jsonl(out)
    assert found == expected
    assert 50 < len(found) < len(pairs) / 2
    assert list(found[0])[:2] == ["score", "probability"]
    told = summary(command)
    assert told["pairs"] == told["fdr"]["pairs"] == len(expected)
    assert told["fdr"]["threshold"] == threshold
    assert told["fdr"]["wrong"] == pytest.approx(told["fdr"]["share"] * len(expected))
    low, high = told["fdr"]["interval"]
    assert 0 <= low <= told["fdr"]["share"] <= 0.1 < high < 0.3
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(tmp_path / "a.parquet")]) == 0
    assert pq.read_schema(tmp_path / "a.parquet") == pairs_schema(aligned=True, rated=True)


def test_what_is_left_of_certain_pairs(command: list[str], tmp_path: Path) -> None:
    """In two shards a side as in one, and as found one by one in the neighbour lists."""
    work = tmp_path / "work"
    out = ["-o", str(tmp_path / "out.jsonl"), "--work-dir", str(work)]
    assert mine_corpus([*command[:2], "-q", "--align", "--shards", "2", *out]) == 0
    scores = np.load(Path(command[-1]) / "left_out" / "scores.npy")
    np.testing.assert_array_equal(np.load(work / "left_out" / "scores.npy"), scores)
    run = open_run(work)
    likely = Calibration.of(run.pairs.score).probability(run.pairs.score)
    certain = int((likely >= CERTAIN).sum())
    encoder = load_encoder()
    assert isinstance(encoder, WordEncoder)
    expected = [
        score
        for sides in ((run.source, run.target), (run.target, run.source))
        for place in range(certain)
        for score in left_one_by_one(run, *sides, place, encoder)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def left_one_by_one(
    run: Run, own: Side, other: Side, place: int, encoder: WordEncoder
) -> list[float]:
    rows = {run.source: int(run.pairs.source[place]), run.target: int(run.pairs.target[place])}
    near = own.neighbours_at(own.positions([rows[own]]))
    listed = dict(zip(near.ids[0].tolist(), near.cosines[0].tolist(), strict=True))
    left = {row: cosine for row, cosine in listed.items() if row != rows[other]}
    again = [min(listed.values())] * (len(listed) - len(left))
    mean = float(np.mean([*left.values(), *again]))
    (best, margin) = max(
        (
            (row, cosine / ((mean + float(other.means_at(other.positions([row]))[0])) / 2))
            for row, cosine in left.items()
        ),
        key=lambda found: found[1],
    )
    mined = run.pairs.target if other is run.target else run.pairs.source
    if any(margin <= theirs for theirs in run.margins[mined == best]):
        return []
    texts = {own: [own.text(rows[own])], other: [other.text(best)]}
    aligned = align_texts([encoder, encoder], texts[run.source], texts[run.target])
    usual = run.summary["usual_log_ratio"]
    return aligned_scores(np.array([margin]), aligned, usual=usual).tolist()


def test_top_and_filters_come_after_it(command: list[str], tmp_path: Path) -> None:
    outputs = []
    for more in ([], ["--filters", "numbers"], ["--top", "7"]):
        out = tmp_path / "out.jsonl"
        assert mine_corpus([*command, "-q", "--fdr", "0.1", *more, "-o", str(out)]) == 0
        outputs.append([tuple(pair["source_id"]) for pair in read_jsonl(out)])
    whole, filtered, top = outputs
    rejected = read_jsonl(tmp_path / "out.rejected.jsonl")
    assert rejected[0]["probability"] <= 1
    assert sorted(filtered + [tuple(pair["source_id"]) for pair in rejected]) == sorted(whole)
    assert top == whole[:7]
    assert summary(command)["pairs"] == 7


def test_nothing_is_made_again(command: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(out)]) == 0
    before, first = snapshot(Path(command[-1]) / "rated"), out.read_bytes()
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(out)]) == 0
    assert snapshot(Path(command[-1]) / "rated") == before
    assert out.read_bytes() == first


def test_closing_lines(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    out = str(tmp_path / "out.tsv")
    for more in (["--fdr", "0.1"], ["--align"]):
        assert mine_corpus([*command, *more, "-o", out]) == 0
        told = summary(command)
        found = told["fdr"] if "--fdr" in more else told["advice"]
        (line,) = (
            line for line in capsys.readouterr().err.splitlines() if line.startswith("wrong: ")
        )
        assert f"{found['share']:.1%}" in line
        assert f"{found['pairs']:,}" in line
        assert f"{found['interval'][1]:.1%}" in line
    assert "fdr" not in told


def test_unrelated_texts(tmp_path: Path, capsys: Captured) -> None:
    """German news against the English of other news: at most a few pairs, or a refusal."""
    source = SAMPLE / "de-en" / "de-en.training.de"
    target = SAMPLE / "zh-en" / "zh-en.training.en"
    out = tmp_path / "out.jsonl"
    status = mine_corpus([str(source), str(target), "-q", "--fdr", "0.05", "-o", str(out)])
    if status == 0:
        assert len(read_jsonl(out)) < 5
    else:
        assert "cannot be estimated" in capsys.readouterr().err
        assert not out.exists()


def test_parallel_texts(tmp_path: Path, capsys: Captured) -> None:
    """Where all pairs are right, they are kept, or the estimate is refused."""
    sides = [
        dict(
            line.split("\t")
            for line in (SAMPLE / "de-en" / f"de-en.training.{language}")
            .read_text(encoding="utf-8")
            .splitlines()
        )
        for language in ("de", "en")
    ]
    gold = (SAMPLE / "de-en" / "de-en.training.gold").read_text(encoding="utf-8").splitlines()
    for row, side in enumerate(sides):
        lines = [side[line.split("\t")[row]] for line in gold]
        (tmp_path / f"{row}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    inputs = [str(tmp_path / f"{row}.txt") for row in (0, 1)]
    status = mine_corpus([*inputs, "-q", "--fdr", "0.05", "-o", str(out)])
    if status == 0:
        assert len(read_jsonl(out)) > 0.9 * len(gold)
    else:
        assert "cannot be estimated" in capsys.readouterr().err
        assert not out.exists()


def test_a_text_and_its_copy(tmp_path: Path, capsys: Captured) -> None:
    """Every sentence finds itself, which says nothing of translations."""
    text = SAMPLE / "de-en" / "de-en.training.en"
    copy = tmp_path / "copy.en"
    copy.write_bytes(text.read_bytes())
    out = tmp_path / "out.jsonl"
    assert mine_corpus([str(text), str(copy), "-q", "--fdr", "0.05", "-o", str(out)]) == 2
    assert "the corpora hold the same sentences" in capsys.readouterr().err
    assert not out.exists()


def test_calibrate_without_decoys(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    assert mine_corpus([*command, "-q", "--align", "-o", str(tmp_path / "all.jsonl")]) == 0
    out = tmp_path / "good.jsonl"
    arguments = ["calibrate", command[-1], "-o", str(out), "--fdr", "0.1"]
    assert adit(arguments) == 0
    rows = capsys.readouterr().out.splitlines()
    calibrated = read_jsonl(out)
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(tmp_path / "out.jsonl")]) == 0
    mined = read_jsonl(tmp_path / "out.jsonl")
    for name in ("score", "probability", "source_id", "target_id"):
        assert [pair[name] for pair in calibrated] == [pair[name] for pair in mined]
    assert all(pair["fdr"] <= 0.1 for pair in calibrated)
    low, high = summary(command)["fdr"]["interval"]
    assert rows[3].split()[-1] == f"{100 * low:.2f}-{100 * high:.2f}"
    assert adit(arguments) == 2
    assert "chosen by --fdr" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fdr", "1.5"], "--fdr 1.5: give a share between 0 and 1"),
        (["--fdr", "0.05", "--threshold", "1", "--align"], "leave out --threshold"),
        (["--fdr", "0.05"], "leave out --score margin"),  # which the world's run has
        (["--fdr", "0.05", "--align", "--src-lang", "tlh"], "--fdr: the encoder has no vectors of"),
        (["--fdr", "0.05", "--align", "--margin", "distance"], "--margin ratio"),
        (["--top", "0"], "--top 0: must be at least 1"),
    ],
)
def test_bad_input(refused: Refused, run: list[str], arguments: list[str], message: str) -> None:
    assert message in refused([*run, *arguments])


def test_no_pair_is_certain() -> None:
    nothing = np.empty((0, 4), dtype=np.int64)
    assert left_out._taken(None, "source", nothing).shape == (0, 4)
