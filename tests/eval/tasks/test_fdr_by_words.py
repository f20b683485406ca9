"""The part of eval-encoder fdr on pairs scored by words, on the bundled sample."""

import json
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from eval.cli.encoder import eval_encoder
from eval.data.bucc import load_bucc
from eval.tasks.fdr_by_words import DECOYS, MARGINS, SCORES, margin_thresholds
from eval.tasks.mined_splits import mine_split
from miner.arrays import Pairs
from miner.mining import mine
from miner.score_calibration import Calibration
from tests.eval.conftest import write_split

SAMPLE = Path(__file__).parents[3] / "eval" / "assets" / "sample"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled sample in two splits: a quarter of its pairs and sentences are the decoys."""
    folder = tmp_path_factory.mktemp("bucc")
    whole = SAMPLE / "de-en" / "de-en.training"
    source, target, gold = (
        [
            line.split("\t")
            for line in whole.with_suffix(f".training.{name}").read_text("utf-8").splitlines()
        ]
        for name in ("de", "en", "gold")
    )
    decoys = {name for row, pair in enumerate(gold) if row % 4 == 0 for name in pair}
    known = {name for pair in gold for name in pair}
    for lines in (source, target):
        decoys |= {name for row, (name, _) in enumerate(lines) if row % 4 == 0} - known
    for split, is_in in (
        ("sample", decoys.__contains__),
        ("training", lambda name: name not in decoys),
    ):
        texts = {
            name: "".join("\t".join(line) + "\n" for line in lines if is_in(line[0]))
            for name, lines in (("source", source), ("target", target), ("gold", gold))
        }
        write_split(folder, "de-en", split, **texts)
    return folder


def test_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert eval_encoder(["fdr", str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["pairs"]["de-en"]["by words"]
    data = load_bucc(folder, "de-en", "training")
    mined = mine_split(data, encoder=load_encoder(), mine=mine, align=True)
    calibration = Calibration.of(mined.judgements.scores)
    thresholds = record["thresholds"]
    assert [one["by"] for one in thresholds] == [DECOYS] * 4 + [MARGINS] * 4 + [SCORES] * 4
    for one in thresholds[8:]:
        kept = mined.judgements.scores > calibration.threshold(one["wanted"])
        right = np.asarray(mined.judgements.correct)[kept].sum()
        assert one["extracted"] == kept.sum()
        assert one["fdr"] == (pytest.approx(1 - right / kept.sum()) if kept.any() else 0)
        low, high = one["interval"]
        assert 0 <= low <= high <= 1
    assert thresholds[-1]["extracted"] > 0


def test_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert eval_encoder(["fdr", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(row for row, line in enumerate(lines) if line.startswith("by words"))
    names = [line.split()[0] for line in lines[first + 1 : -1]]
    assert names == ["de-en"] * 12 + ["mean", "error", "highest"] * 12


def test_margins_by_their_definition() -> None:
    random = np.random.default_rng(2)
    scores, likely = np.sort(random.integers(0, 40, 60) / 20)[::-1], random.random(60)
    source, order = random.permutation(60), random.permutation(60)
    by_margin = made_pairs(source, scores)
    by_words = made_pairs(source[order], scores[order])
    wanted = [0.1, 0.3, 0.45, 0.5]
    found = margin_thresholds(by_margin, by_words, likely[order], wanted)
    for rate, threshold in zip(wanted, found, strict=True):
        good = [at for at in np.unique(scores) if (1 - likely[scores >= at]).mean() <= rate]
        assert (scores > threshold).tolist() == (scores >= min(good, default=np.inf)).tolist()
    assert np.isinf(found[0])
    assert np.isfinite(found[-1])


def made_pairs(source: np.ndarray, scores: np.ndarray) -> Pairs:
    nothing = np.zeros(len(source))
    return Pairs(
        source=source,
        target=source,
        score=scores,
        cosine=nothing.astype(np.float32),
        source_mean=nothing,
        target_mean=nothing,
        rank=nothing.astype(np.int32),
        direction=nothing.astype(np.uint8),
    )
