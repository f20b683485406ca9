"""eval-encoder filters: its figures, recomputed from the files by a slow implementation."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from encoder.words import Words
from eval.cli.encoder import eval_encoder
from miner.filters import FILTERS
from miner.mining import mine
from tests.eval.conftest import NumberEncoder, use_encoder, write_split

Captured = pytest.CaptureFixture[str]
Mined = list[tuple[float, bool, str, str]]

pytestmark = pytest.mark.usefixtures("number_encoder")


def write(folder: Path, split: str, *, first: int) -> None:
    """60 sentences a side, 20 of them in both, the last 5 of these in unlike lengths."""
    random = np.random.default_rng(first)
    sides: dict[str, list[str]] = {"de": [], "en": []}
    for row in range(100):
        numbers = " ".join(map(str, random.choice(300, size=4, replace=False) + first))
        end = " long" * 20 if 15 <= row < 20 else ""
        if row < 60:
            sides["de"].append(f"de-{row}\tDiese Zahlen hier sind {numbers}")
        if row < 20 or row >= 60:
            sides["en"].append(f"en-{row}\tThese are the numbers {numbers}{end}")
    # Some have a number in common, so that wrong pairs have scores as high as right ones.
    gold = "".join(f"de-{row}\ten-{row}\n" for row in range(20))
    source, target = ("\n".join(lines) + "\n" for lines in sides.values())
    write_split(folder / "de-en", "de-en", split, source=source, target=target, gold=gold)


def mined(folder: Path, split: str) -> Mined:
    sides = []
    for side in ("de", "en"):
        path = folder / "de-en" / f"de-en.{split}.{side}"
        sides.append([line.split("\t") for line in path.read_text().splitlines()])
    source, target = ([text for _, text in side] for side in sides)
    pairs = mine(NumberEncoder().encode(source), NumberEncoder().encode(target))
    return [
        (score, sides[0][i][0][3:] == sides[1][j][0][3:], source[i], target[j])
        for score, i, j in zip(
            pairs.score.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True
        )
    ]


def f1(found: Mined, threshold: float) -> float:
    kept = [right for score, right, *_ in found if score > threshold]
    return 2 * sum(kept) / (len(kept) + 20)


def best_threshold(found: Mined) -> float:
    """Between two scores, the lower the better of what is equally good."""
    scores = sorted({score for score, *_ in found})
    middles = [-1, *((one + other) / 2 for one, other in itertools.pairwise(scores))]
    return max(middles, key=lambda threshold: (f1(found, threshold), -threshold))


def without_lengths(found: Mined) -> Mined:
    ratios = np.log2([(len(source) + 1) / (len(target) + 1) for *_, source, target in found])
    usual: NDArray[np.float64] = np.median(ratios)
    return [pair for pair, ratio in zip(found, ratios, strict=True) if abs(ratio - usual) <= 0.7]


def report(folder: Path, capsys: Captured, *more: str) -> dict:
    assert eval_encoder(["filters", str(folder), "--encoder", "numbers", "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "training", first=1000)
    write(tmp_path, "sample", first=3000)
    return tmp_path


def test_figures(folder: Path, capsys: Captured) -> None:
    rules = report(folder, capsys)["rules"]
    assert list(rules) == ["margin", *FILTERS]
    tune, test = mined(folder, "sample"), mined(folder, "training")
    for name, change in (("margin", list), ("length", without_lengths)):
        told = rules[name]
        threshold = best_threshold(change(tune))
        assert told["f1"] == {"de-en": pytest.approx(f1(change(test), threshold))}
        oracle = f1(change(test), best_threshold(change(test)))
        assert told["oracle_f1"] == {"de-en": pytest.approx(oracle)}
        assert (told["mean_f1"], told["mean_oracle_f1"]) == (
            told["f1"]["de-en"],
            pytest.approx(oracle),
        )
        gone = [pair for pair in test if pair not in change(test)]
        assert told["rejected"] == len(gone)
        assert told["right"] == sum(right for _, right, *_ in gone)
    assert rules["length"]["right"] == 5


class WordEncoder(NumberEncoder):
    """Its words are the numbers; the first of a sentence weighs most."""

    def split(self, sentence: str) -> list[str]:
        return sentence.split()

    def words(self, sentences: Sequence[str]) -> Words:
        numbers = [[word for word in text.split() if word.isdecimal()] for text in sentences]
        flat = [word for one in numbers for word in one]
        weights = [2.0 if place == 0 else 1.0 for one in numbers for place in range(len(one))]
        return Words(
            vectors=self.encode(flat),
            weights=np.array(weights, dtype=np.float32),
            ids=np.arange(len(flat), dtype=np.int32),
            offsets=np.cumsum([0, *map(len, numbers)]),
        )


def test_words_score_as_in_bucc(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = WordEncoder()
    use_encoder(monkeypatch, lambda spec: encoder)
    told = report(folder, capsys)["rules"]["words"]
    arguments = ["bucc", str(folder), "--tune", "sample", "--test", "training", "--json", "--align"]
    assert eval_encoder([*arguments, "--encoder", "numbers"]) == 0
    expected = json.loads(capsys.readouterr().out)["pairs"]["de-en"]["test"]
    assert told["f1"]["de-en"] == pytest.approx(expected["f1"])
    assert told["rejected"] == 0


def test_table(folder: Path, capsys: Captured) -> None:
    assert eval_encoder(["filters", str(folder), "--encoder", "numbers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["rule", "de-en", "mean"]
    assert [line.split()[0] for line in lines[1 : 2 + len(FILTERS)]] == ["margin", *FILTERS]
    assert lines[-1].startswith("filters|pairs:de-en|tune:sample|test:training|sha256:")
