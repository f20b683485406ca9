"""Mining and tuning with an encoder, below the command line."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import WordEncoder
from eval.data.bucc import BuccFiles, BuccSplit, Sentences, load_bucc
from eval.metrics.bootstrap import RESAMPLES
from eval.metrics.bucc import Candidates, best_score, judge
from eval.tasks.mined_splits import (
    MinedSplit,
    choose_splits,
    likely_score,
    mine_split,
    scored_texts,
    tune_and_test,
)
from miner.arrays import JudgedPairs
from miner.judge.prior import LIKELY
from miner.mining import mine
from tests.eval.conftest import NumberEncoder

SAMPLE = Path(str(files("eval"))) / "assets" / "sample"
NO_FILES = BuccFiles(source=Path(), target=Path(), gold=Path())
NO_PAIRS = mine(np.eye(2), np.eye(2), threshold=9)
DATA = BuccSplit(
    pair="de-en",
    split="training",
    source=Sentences(
        ids=["d1", "d2", "d3", "d4", "d5"],
        texts=["Satz 1 11", "Satz\t2 12", "Satz 1  11", "nichts", "Satz 5 15"],
    ),
    target=Sentences(ids=["e1", "e2", "e6"], texts=["one 1 11", "two 2 12", "six 6 16"]),
    gold=frozenset({("d3", "e1"), ("d2", "e2"), ("d4", "e6")}),
    files=NO_FILES,
)


def test_mine_split() -> None:
    mined = mine_split(DATA, encoder=NumberEncoder())
    # d3 repeats d1 and stands behind it; d4 has no vector and is not mined.
    assert mined.ranked.sources[:2] in ([("d1", "d3"), ("d2",)], [("d2",), ("d1", "d3")])
    assert all("d4" not in same for same in mined.ranked.sources)
    assert mined.judgements.correct.tolist()[:2] == [True, True]
    assert mined.judgements.new_gold.sum() == 2
    assert mined.judgements.gold == 3
    assert (np.diff(mined.ranked.scores) <= 0).all()
    assert mined.seconds > 0


def test_words_count_where_there_are_some() -> None:
    data, encoder = load_bucc(SAMPLE, "de-en", "training"), load_encoder()
    assert isinstance(encoder, WordEncoder)
    plain, judged = (mine_split(data, encoder=encoder, judged=one) for one in (False, True))
    assert isinstance(judged.pairs, JudgedPairs)
    assert sorted(judged.pairs.margin.tolist()) == sorted(plain.pairs.score.tolist())
    assert (np.diff(judged.pairs.score) <= 0).all()
    assert (np.diff(judged.pairs.probability) <= 0).all()
    np.testing.assert_array_equal(judged.ranked.scores, judged.pairs.score)
    score = likely_score(judged)
    assert score.extracted == (judged.pairs.probability >= LIKELY).sum() > 0
    assert score.f1 > 0.8 * best_score(plain.judgements).f1
    with pytest.raises(ValueError, match="has no word vectors"):
        mine_split(replace(DATA, pair="tlh-en"), encoder=NumberEncoder(), judged=True)


def test_scored_texts_are_pairs_files() -> None:
    mined = mine_split(DATA, encoder=NumberEncoder())
    rows = [line.split("\t") for line in scored_texts(mined).splitlines()]
    assert {tuple(row[1:]) for row in rows[:2]} == {
        ("Satz 1 11", "one 1 11"),
        ("Satz 2 12", "two 2 12"),
    }
    assert [float(row[0]) for row in rows] == mined.ranked.scores.tolist()


def test_nothing_to_encode() -> None:
    blank = replace(DATA, target=Sentences(ids=["e1", "e2"], texts=["", "none"]))
    with pytest.raises(
        ValueError, match="encoder numbers: no sentence of de-en training target has a vect"
    ):
        mine_split(blank, encoder=NumberEncoder())


def mined_split(*rows: tuple[float, str]) -> MinedSplit:
    """Candidates (a, a), (b, b), ...; gold is those in lower case."""
    ranked = Candidates(
        scores=np.array([row[0] for row in rows]),
        sources=[(row[1],) for row in rows],
        targets=[(row[1],) for row in rows],
    )
    gold = {(row[1], row[1]) for row in rows if row[1].islower()}
    return MinedSplit(
        data=DATA,
        mined=None,
        pairs=NO_PAIRS,
        ranked=ranked,
        judgements=judge(ranked, gold),
        seconds=1.0,
    )


def test_the_threshold_of_one_split_is_applied_to_the_other() -> None:
    tune = mined_split((5.0, "a"), (4.0, "b"), (3.0, "X"))
    test = mined_split((6.0, "c"), (3.4, "d"), (3.2, "X"), (3.1, "Y"))
    tuned, tested = tune_and_test(tune, test)
    assert (tuned.score.threshold, tuned.score.f1, tuned.oracle) == (3.5, 1.0, tuned.score)
    assert (tested.score.threshold, tested.score.extracted) == (3.5, 1)
    assert tested.score.f1 == pytest.approx(2 / 3)
    assert (tested.oracle.threshold, tested.oracle.f1) == (pytest.approx(3.3), 1.0)


@pytest.mark.parametrize(
    ("available", "tune", "test", "expected"),
    [
        (["sample", "training", "dev"], None, None, ("training", "sample")),
        (["dev", "test"], None, None, ("dev", "test")),
        (["sample", "test"], None, None, ("test", "sample")),
        (["training", "test", "dev"], None, None, ("training", "test")),
        (["sample"], None, None, ("sample", "sample")),
        (["dev"], None, None, ("dev", "dev")),
        (["training"], None, None, ("training", "training")),
        (["sample", "training"], "sample", None, ("sample", "training")),
        (["sample", "training"], None, "training", ("sample", "training")),
        (["sample", "training"], "sample", "sample", ("sample", "sample")),
        (["sample", "training"], "dev", "test", ("dev", "test")),
    ],
)
def test_choose_splits(
    available: list[str], tune: str | None, test: str | None, expected: tuple[str, str]
) -> None:
    *chosen, remark = choose_splits(available, tune=tune, test=test)
    assert tuple(chosen) == expected
    asked_for = (tune or "training", test or "sample")
    assert (remark is None) == (expected == asked_for and expected[0] != expected[1])


def test_remarks() -> None:
    assert choose_splits(["dev", "test"], tune=None, test=None)[2] == (
        "tuned on 'dev' and tested on 'test', as its splits are dev, test"
    )
    assert choose_splits(["dev"], tune=None, test=None)[2] == (
        "tuned and tested on the same split 'dev', which flatters its F1"
    )


def test_f1_of_resampled_sentences() -> None:
    """Each resample, drawn again by its seed and counted sentence by sentence."""
    tune = mined_split((5.0, "a"), (4.0, "X"), (3.0, "b"), (2.0, "c"))
    names = ["a", "X", "b", "c"]
    data = replace(
        DATA, source=Sentences(ids=names, texts=names), gold=frozenset((n, n) for n in "abc")
    )
    result = tune_and_test(replace(tune, data=data), replace(tune, data=data))[0]
    assert result.score.extracted == 4
    random = np.random.default_rng([RESAMPLES, 0])
    for sampled in result.f1_samples.tolist():
        drawn = [names[place] for place in random.integers(4, size=4)]
        correct = sum(name in "abc" for name in drawn)
        # All drawn are extracted, and all correct ones are found.
        precision, recall = correct / 4, 1.0
        expected = 2 * precision * recall / (precision + recall) if correct else 0.0
        assert sampled == pytest.approx(expected)
