"""eval-encoder fdr: its figures, counted from the pairs that are kept."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from eval.cli.encoder import eval_encoder
from eval.data.bucc import load_bucc
from eval.tasks.fdr import WANTED, measure, reliability
from eval.tasks.mined_splits import mine_split

SAMPLE = Path(str(files("eval"))) / "assets" / "sample"


def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fdr", str(SAMPLE), "--pair", "de-en"]
    assert eval_encoder([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["pairs"]["de-en"]
    mined = mine_split(load_bucc(SAMPLE, "de-en", "training"), encoder=load_encoder(), judged=True)
    likely, right = mined.pairs.probability, mined.judgements.correct
    assert [one["wanted"] for one in record["kept"]] == [*WANTED, None]
    for one in record["kept"]:
        count = one["extracted"]
        assert one["correct"] == right[:count].sum()
        assert one["expected"] == pytest.approx(1 - likely[:count].mean() if count else 0)
        if one["wanted"] is None:
            assert count == (likely >= 0.5).sum()
        else:
            more = np.cumsum(1 - likely) / np.arange(1, len(likely) + 1)
            assert count == np.flatnonzero(more <= one["wanted"]).max(initial=-1) + 1
    assert sum(pairs for *_, pairs in record["reliability"]) == len(likely)
    assert eval_encoder(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["pair", "wanted", "true"]
    assert [line.split()[0] for line in lines[6:-1]] == [
        *["mean", "error", "highest"] * 4,
        "mean",
        "highest",
    ]


def test_reliability_is_a_count_by_tenths() -> None:
    mined = mine_split(load_bucc(SAMPLE, "de-en", "training"), encoder=load_encoder(), judged=True)
    likely, right = mined.pairs.probability, mined.judgements.correct
    expected = []
    for low in range(10):
        own = (likely >= low / 10) & ((likely < (low + 1) / 10) | (low == 9))
        if own.any():
            expected.append((likely[own].mean(), right[own].mean(), own.sum()))
    np.testing.assert_allclose(reliability(mined), expected)
    assert len(measure(mined, wanted=(0.1,))) == 2
