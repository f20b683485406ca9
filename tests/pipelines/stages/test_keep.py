"""mine-corpus: the pairs that are likely right, or as many as keep to a share of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus
from pipelines.stages import judge
from tests.pipelines.conftest import SAMPLE, Refused
from tests.pipelines.worlds import read_jsonl, snapshot

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command line without its output; all its pairs by score are in ``all.jsonl``."""
    folder = tmp_path_factory.mktemp("rating")
    inputs = [str(SAMPLE / "de-en" / f"de-en.training.{language}") for language in ("de", "en")]
    command = [*inputs, "--work-dir", str(folder / "work")]
    assert mine_corpus([*command, "-q", "--all", "-o", str(folder / "all.jsonl")]) == 0
    return command


def all_pairs(command: list[str]) -> list[dict]:
    return read_jsonl(Path(command[-1]).parent / "all.jsonl")


def summary(command: list[str]) -> dict:
    return json.loads((Path(command[-1]) / "run.json").read_text(encoding="utf-8"))


def test_what_is_likely_right_is_kept(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    pairs = all_pairs(command)
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-o", str(out)]) == 0
    expected = [pair for pair in pairs if pair["probability"] >= 0.5]
    assert read_jsonl(out) == expected
    assert 50 < len(expected) < len(pairs) / 2
    kept = summary(command)["kept"]
    assert (kept["pairs"], kept["judged"], kept["by"]) == (len(expected), len(pairs), "probability")
    wrong = sum(1 - pair["probability"] for pair in expected)
    assert kept["wrong"] == pytest.approx(wrong)
    lines = capsys.readouterr().err.splitlines()
    assert f"estimated error rate: {wrong / len(expected):.1%}" in lines
    (line,) = [line for line in lines if line.startswith("not written: ")]
    assert line.startswith(f"not written: {len(pairs) - len(expected):,} pairs")
    assert "add --all to write them" in line


def test_as_many_as_keep_to_a_share_of_wrong_ones(command: list[str], tmp_path: Path) -> None:
    pairs = all_pairs(command)
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(out)]) == 0
    found = read_jsonl(out)
    wrong = np.cumsum([1 - pair["probability"] for pair in pairs])
    count = int(np.flatnonzero(wrong <= 0.1 * np.arange(1, len(pairs) + 1))[-1]) + 1
    assert found == pairs[:count]
    assert 50 < count < len(pairs) / 2
    assert summary(command)["kept"]["threshold"] < found[-1]["score"]


def test_it_is_of_what_filters_let_pass(command: list[str], tmp_path: Path) -> None:
    """The share is that of the pairs that are written, and so is the number of the best ones."""
    out = tmp_path / "out.jsonl"
    for more, filters in (
        (["--filters", "numbers"], True),
        (["--top", "7"], False),
        (["--top", "480", "--filters", "numbers"], True),
    ):
        assert mine_corpus([*command, "-q", "--fdr", "0.8", *more, "-o", str(out)]) == 0
        pairs, told = read_jsonl(out), summary(command)
        rejected = read_jsonl(tmp_path / "out.rejected.jsonl") if filters else []
        scores = sorted((pair["score"] for pair in [*pairs, *rejected]), reverse=True)
        best = [pair["score"] for pair in all_pairs(command)]  # equal ones are interchangeable
        assert scores == best[: len(scores)]
        assert bool(rejected) is filters
        wrong = sum(1 - pair["probability"] for pair in pairs)
        assert wrong <= 0.8 * len(pairs)
        assert told["kept"]["wrong"] == pytest.approx(wrong)
        assert told["pairs"] == told["kept"]["pairs"] == len(pairs)
        assert len(pairs) == {"7": 7, "480": 480}.get(more[1], len(pairs))


def test_nothing_is_made_again(command: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(out)]) == 0
    before, first = snapshot(Path(command[-1]) / "kept"), out.read_bytes()
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(out)]) == 0
    assert snapshot(Path(command[-1]) / "kept") == before
    assert out.read_bytes() == first


def test_top_is_of_all_pairs(command: list[str], tmp_path: Path) -> None:
    pairs = all_pairs(command)
    out = tmp_path / "out.jsonl"
    count = len(pairs) - 3
    assert mine_corpus([*command, "-q", "--top", str(count), "-o", str(out)]) == 0
    assert read_jsonl(out) == pairs[:count]


def test_unrelated_texts(tmp_path: Path, capsys: Captured) -> None:
    """German news against the English of other news: at most a few pairs."""
    source = SAMPLE / "de-en" / "de-en.training.de"
    target = SAMPLE / "zh-en" / "zh-en.training.en"
    out = tmp_path / "out.jsonl"
    assert mine_corpus([str(source), str(target), "-o", str(out)]) == 0
    assert len(read_jsonl(out)) < 5
    assert "--all" in capsys.readouterr().err


def test_parallel_texts(tmp_path: Path) -> None:
    """Where all pairs are right, they are kept."""
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
    for rule in ([], ["--fdr", "0.05"]):
        assert mine_corpus([*inputs, "-q", *rule, "-o", str(out)]) == 0
        assert len(read_jsonl(out)) > 0.95 * len(gold)


def test_calibrate_says_what_the_run_did(
    command: list[str], tmp_path: Path, capsys: Captured
) -> None:
    assert mine_corpus([*command, "-q", "--all", "-o", str(tmp_path / "all.jsonl")]) == 0
    out = tmp_path / "good.jsonl"
    assert adit(["calibrate", command[-1], "-o", str(out), "--fdr", "0.1"]) == 0
    calibrated = read_jsonl(out)
    assert mine_corpus([*command, "-q", "--fdr", "0.1", "-o", str(tmp_path / "out.jsonl")]) == 0
    mined = read_jsonl(tmp_path / "out.jsonl")
    for name in ("score", "probability", "source_id", "target_id"):
        assert [pair[name] for pair in calibrated] == [pair[name] for pair in mined]
    assert all(pair["fdr"] <= 0.1 for pair in calibrated)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fdr", "1.5"], "--fdr 1.5: must be between 0 and 1"),
        (["--fdr", "0.05", "--threshold", "1", "--align"], "--fdr conflicts with --threshold"),
        (["--fdr", "0.05"], "omit --score margin"),  # which the world's run has
        (
            ["--fdr", "0.05", "--align", "--src-lang", "tlh"],
            "--fdr: embeddings have no word vectors",
        ),
        (["--all", "--fdr", "0.05", "--align"], "--all conflicts with --fdr"),
        (["--all", "--threshold", "2"], "--all conflicts with --threshold"),
        (["--top", "0"], "--top 0: must be at least 1"),
    ],
)
def test_bad_input(refused: Refused, run: list[str], arguments: list[str], message: str) -> None:
    assert message in refused([*run, *arguments])


def test_no_pair_is_likely() -> None:
    nothing = np.empty((0, 4), dtype=np.int64)
    assert judge._best_margins(None, "source", nothing).shape == (0, 4)
