"""eval-encoder fdr: every figure recomputed from the files."""

import json
from pathlib import Path

import numpy as np
import pytest

from eval.cli.encoder import eval_encoder
from miner.fdr import Null, threshold_at
from miner.knn.core.rescore import unit_rows
from miner.mining import mine
from tests.eval.conftest import NumberEncoder, write_split

pytestmark = pytest.mark.usefixtures("number_encoder")


def sentence(word: str, number: int) -> str:
    """Its own number, and two of fifty that many others have, too: what wrong pairs share."""
    return f"{word} {number} {number * 7 % 50} {number * 11 % 50}"


def write(folder: Path, split: str, *, first: int, rows: int, known: int) -> None:
    """``known`` sentences have translations, which share two of three numbers with them."""
    foreign, english, gold = [], [], []
    for row in range(rows):
        foreign.append(f"x{row}\t{sentence('Satz', first + row)} {row % 3}\n")
        other = first + row if row < known else first + rows + row
        english.append(f"e{row}\t{sentence('sentence', other)} {row % 4}\n")
    gold = [f"x{row}\te{row}\n" for row in range(known)]
    texts = {"source": "".join(foreign), "target": "".join(english), "gold": "".join(gold)}
    write_split(folder, "xx-en", split, **texts)


def read(folder: Path, split: str, side: str) -> list[list[str]]:
    lines = (folder / f"xx-en.{split}.{side}").read_text().splitlines()
    return [line.split("\t") for line in lines]


def vectors(rows: list[list[str]]) -> np.ndarray:
    return unit_rows(NumberEncoder().encode([text for _, text in rows]))


def added(base: np.ndarray, others: np.ndarray, queries: np.ndarray, taken: dict) -> list[float]:
    """Each query joined to ``others``, all mined again: its score if it were mined."""
    scores = []
    for query in queries:
        pairs = mine(np.concatenate([others, query[None]]), base, retrieval="forward")
        (place,) = np.flatnonzero(pairs.source == len(others))
        score = float(pairs.score[place])
        if score > taken.get(int(pairs.target[place]), -np.inf):
            scores.append(score)
    return scores


def test_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "training", first=1000, rows=150, known=40)
    write(tmp_path, "sample", first=5000, rows=200, known=10)
    assert eval_encoder(["fdr", str(tmp_path), "--encoder", "numbers", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["pairs"]["xx-en"]

    rows = {
        (split, side): read(tmp_path, split, side)
        for split in ("training", "sample")
        for side in ("xx", "en", "gold")
    }
    real = [vectors(rows["training", side]) for side in ("xx", "en")]
    other = [vectors(rows["sample", side]) for side in ("xx", "en")]
    pairs = mine(*real)
    found = list(
        zip(pairs.source.tolist(), pairs.target.tolist(), pairs.score.tolist(), strict=True)
    )
    decoys = [
        *added(real[1], real[0], other[0], {target: score for _, target, score in found}),
        *added(real[0], real[1], other[1], {source: score for source, _, score in found}),
    ]
    null = Null.fitted(np.array(decoys))
    both = [np.concatenate([own, more[:10]]) for own, more in zip(real, other, strict=True)]
    together = mine(*both)
    planted = {
        source: score
        for source, target, score in zip(
            together.source.tolist(), together.target.tolist(), together.score.tolist(), strict=True
        )
        if source >= 150 and source == target
    }
    for told, wanted in zip(record["thresholds"], (0.01, 0.05, 0.1, 0.2), strict=True):
        threshold = threshold_at(pairs.score, null, fdr=wanted)
        kept = [(source, target) for source, target, score in found if score > threshold]
        right = sum(source == target < 40 for source, target in kept)
        assert told["wanted"] == wanted
        assert told["extracted"] == len(kept)
        assert told["recall"] == right / 40
        assert told["fdr"] == (pytest.approx(1 - right / len(kept)) if kept else 0)
        share = sum(score > threshold for score in planted.values()) / 10
        assert told["planted_recall"] == pytest.approx(share)
        # Half of the planted pairs, and so half of the true ones, are above the middle.
        middle = sorted([*planted.values(), *[-np.inf] * (10 - len(planted))])[5]
        true = sum(score > middle for *_, score in found) / (
            sum(score > middle for score in planted.values()) / 10
        )
        explained = min(1, true * share / max(1, len(kept)))
        assert told["planted_fdr"] == pytest.approx(1 - explained)
        low, high = told["interval"]
        assert 0 <= low <= high <= 1
    assert 0 < record["thresholds"][-1]["recall"] <= 1
    f1 = [
        2 * sum(source == target < 40 for source, target, _ in found[:count]) / (count + 40)
        for count in range(1, len(found) + 1)
    ]
    assert record["best"]["f1"] == pytest.approx(max(f1))


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "training", first=1000, rows=150, known=40)
    write(tmp_path, "sample", first=5000, rows=200, known=10)
    assert eval_encoder(["fdr", str(tmp_path), "--encoder", "numbers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["pair", "wanted"]
    assert [line.split()[0] for line in lines[1:5]] == ["xx-en"] * 4
    assert [line.split()[0] for line in lines[5:-1]] == ["mean", "highest"] * 4
    assert lines[-1].startswith("fdr|pairs:xx-en|split:training|decoys:sample|sha256:")


def test_too_few_decoys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "training", first=1000, rows=150, known=40)
    write(tmp_path, "sample", first=5000, rows=20, known=10)
    assert eval_encoder(["fdr", str(tmp_path), "--encoder", "numbers"]) == 2
    assert "decoys; at least 100 are needed" in capsys.readouterr().err
