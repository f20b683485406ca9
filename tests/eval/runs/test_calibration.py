"""mine-corpus calibrate: probabilities of a run's pairs, by decoys."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import WordEncoder
from eval.runs.calibration import Estimates, fit_null, thresholds
from eval.runs.store import open_run
from miner.fdr import Null, false_discovery_rates, probabilities, threshold_at
from miner.knn.core.rescore import unit_rows
from miner.word_match import align_texts, aligned_scores
from pipelines.cli.main import adit

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("folder", ["work", "aligned"])
def test_the_null_is_of_the_decoys_that_would_be_mined(
    finished_run: Path, aligned_run: Path, decoys: Path, folder: str
) -> None:
    run = open_run(finished_run / folder)
    null = fit_null(run, decoys, None)
    lines = [line for line in decoys.read_text().splitlines() if line.strip("\u200b")]
    encoder = load_encoder()
    assert isinstance(encoder, WordEncoder)
    encode = encoder.encode
    texts = [
        [side.text(row) for row in side.searched.tolist()] for side in (run.source, run.target)
    ]
    source, target, queries = (unit_rows(encode(part)) for part in (*texts, lines))
    taken = dict(
        zip(run.chosen.pairs.target.tolist(), run.chosen.pairs.score.tolist(), strict=True)
    )
    near, expected = np.sort(source @ target.T, axis=0)[-4:], []
    for line, query in zip(lines, queries, strict=True):
        cosines = target @ query
        best = np.argsort(-cosines)[:4]
        means = [np.sort([*near[:, place], cosines[place]])[-4:].mean() for place in best]
        margins = cosines[best] / ((cosines[best].mean() + np.array(means)) / 2)
        row, score = int(run.target.searched[best[margins.argmax()]]), float(margins.max())
        if score > taken.get(row, -np.inf):
            if folder == "aligned":
                one = align_texts([encoder, encoder], [line], [run.target.text(row)])
                usual = run.summary["usual_log_ratio"]
                score = float(aligned_scores(np.array([score]), one, usual=usual)[0])
            expected.append(score)
    assert len(null.scores) == pytest.approx(len(expected), abs=2)
    # The run's vectors are kept in float16, which may turn an order round.
    nearest = [np.abs(null.scores - score).min() for score in expected]
    assert np.quantile(nearest, 0.98) < 2e-3


def test_calibrated_pairs(
    finished_run: Path, decoys: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "pairs.jsonl"
    arguments = ["calibrate", str(finished_run / "work"), "--decoys-src", str(decoys)]
    assert adit([*arguments, "-o", str(out)]) == 0
    told = capsys.readouterr().out.splitlines()
    run = open_run(finished_run / "work")
    null = fit_null(run, decoys, None)
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    mined = [
        json.loads(line)
        for line in (finished_run / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for record, pair in zip(records, mined, strict=True):
        for name in ("score", "source_id", "target_id", "source_text", "target_duplicates"):
            assert record[name] == pair[name]
    assert [record["probability"] for record in records] == pytest.approx(
        probabilities(run.pairs.score, null).tolist()
    )
    assert [record["fdr"] for record in records] == pytest.approx(
        false_discovery_rates(run.pairs.score, null).tolist()
    )
    for line, wanted in zip(told[1:5], (0.01, 0.05, 0.1, 0.2), strict=True):
        threshold = threshold_at(run.pairs.score, null, fdr=wanted)
        kept = [record for record in records if record["score"] > threshold]
        right = sum(record["probability"] for record in kept)
        assert line.split() == [
            f"{wanted:.0%}",
            f"{threshold:.4f}",
            str(len(kept)),
            f"{right:.0f}",
        ]
    assert told[5] == f"{len(records)} of {len(records)} pairs written"

    assert adit([*arguments, "-o", str(out), "--fdr", "0.2"]) == 0
    kept = out.read_text(encoding="utf-8").splitlines()
    threshold = threshold_at(run.pairs.score, null, fdr=0.2)
    assert 0 < len(kept) == (run.pairs.score > threshold).sum()


def test_the_report_shows_the_estimates(finished_run: Path, decoys: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    arguments = [finished_run / "work", "-o", page, "--decoys-src", decoys]
    assert adit(["report", *map(str, arguments)]) == 0
    text = re.sub(r"<td [^>]*>", "<td>", page.read_text(encoding="utf-8"))
    run = open_run(finished_run / "work")
    estimates = Estimates.by(fit_null(run, decoys, None), run.pairs.score)
    for wanted, threshold, kept, right, _ in thresholds(estimates):
        row = f"<td>{wanted:.0%}</td><td>{threshold:.4f}</td><td>{kept:,}</td><td>{right:,.0f}</td>"
        assert (row in text) == (kept > 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.jsonl"], "mine with --score words"),
        (["-o", "x.tsv", "--decoys-src", "D"], "x.tsv: these pairs are written as JSON lines"),
        (["-o", "x.jsonl", "--decoys-src", "D", "--fdr", "1e-9"], "no threshold has an estimated"),
        (["-o", "x.jsonl", "--decoys-tgt", "few"], "decoys; at least 100 are needed"),
    ],
)
def test_bad_input(
    finished_run: Path,
    decoys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("few").write_text("One penguin.\n")
    arguments = [str(decoys) if argument == "D" else argument for argument in arguments]
    assert adit(["calibrate", str(finished_run / "work"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("adit calibrate: error: ")
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["few"]


def test_an_encoder_that_was_changed_is_refused(finished_run: Path, decoys: Path) -> None:
    run = open_run(finished_run / "work")
    name = run.summary["encoder"]
    run.summary["encoder"] = "mini@0123456789ab"
    with pytest.raises(ValueError, match=rf"{name}, but the run used mini@0123456789ab"):
        fit_null(run, decoys, None)


@pytest.mark.parametrize("change", ["copies", "near-copies"])
def test_sentences_of_the_run_are_no_decoys(
    finished_run: Path, decoys: Path, tmp_path: Path, change: str, capsys: Captured
) -> None:
    corpus = (finished_run / "corpus.de").read_text(encoding="utf-8").splitlines()
    own = sorted((line.partition("\t")[2] for line in corpus), key=len)[-30:]
    if change == "copies":
        own = [text.upper().replace(" ", "  ") + "!" for text in own]
    else:
        own = [" ".join([*text.split()[:4], *text.split()[5:]]) for text in own]
    mixed = tmp_path / "decoys"
    mixed.write_text("\n".join([*own, *decoys.read_text().splitlines()]), encoding="utf-8")
    out = tmp_path / "pairs.jsonl"
    arguments = [finished_run / "work", "--decoys-src", mixed, "-o", out]
    assert adit(["calibrate", *map(str, arguments)]) == 2
    assert re.search(r"\d\d of 28\d decoys are sentences of the run", capsys.readouterr().err)
    assert not out.exists()


def test_a_share_is_between_0_and_1(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        adit(["calibrate", ".", "-o", "x.jsonl", "--fdr", "5"])
    assert "expected a share between 0 and 1, not '5'" in capsys.readouterr().err


def test_the_null_has_a_start() -> None:
    assert Null.fitted(np.linspace(1, 2, 101)).start == pytest.approx(1.75)
