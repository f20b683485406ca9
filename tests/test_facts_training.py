"""Training of the model of facts, on a made-up language whose words are those of English."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from encoder.training.reading import ParallelText
from miner.judge.facts import compare_facts, load_facts
from tests.benchmark import benchmark
from tests.miner.judge.words import Ragged

facts = benchmark("facts_training")

NAMES = ["not", "monday", "tuesday", "work", "rest", "red", "big", "old"]
_RANDOM = Random(1)
TEXTS = [" ".join(_RANDOM.sample(NAMES, _RANDOM.randint(2, 5))) for _ in range(300)]


def test_english_words() -> None:
    assert facts.english_words("He can't, and I don\u2019t: 5%") == [
        *("he", "not", "ca", "and", "i", "not", "do", "%"),
    ]
    assert facts.english_words("We cannot") == ["we", "not", "can"]


def test_meanings_are_listed_words_and_frequent_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MIN_COUNT", 2)
    monkeypatch.setattr(facts, "MEANINGS", 5)
    lines = [
        "On Monday the cat sat",
        "Monday: no cat, Tuesday: a dog",
        "Friday: the cat sat, never",
    ]
    assert facts.choose_meanings([lines[:2], lines[2:] * 2]) == [
        "friday",
        "monday",
        "never",
        "cat",
        "sat",
    ]


def test_no_word_is_twice_in_a_group() -> None:
    for group in facts.LISTED_GROUPS:
        words = [word for sense in group for word in sense]
        assert len(set(words)) == len(words)


class Maker:
    """Each word has a vector of its own, other than the same word on the other side."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        known = sorted({word for text in TEXTS for word in text.split()})
        vectors = np.random.default_rng(seed).standard_normal((len(known), 64))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self._rows = dict(zip(known, vectors.astype(np.float32), strict=True))

    def words(self, sentences: list[str]) -> Ragged:
        parts = [sentence.split() for sentence in sentences]
        vectors = np.stack([self._rows[word] for part in parts for word in part])
        return Ragged(vectors, np.ones(len(vectors)), np.cumsum([0, *map(len, parts)]))


def test_a_trained_model_knows_what_words_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "HIDDEN", 16)
    monkeypatch.setattr(facts, "BATCH", 32)
    makers = [Maker("own", 1), Maker("other", 2)]
    text = ParallelText(name="xx-en", source=TEXTS, target=TEXTS, corpus=["made"] * len(TEXTS))
    sides = [*facts.sides_of(text, makers, NAMES)]
    losses: list[float] = []
    monkeypatch.setattr(facts, "REPORT_STEPS", 100)
    learner = facts.train_facts(sides, NAMES, 500, lambda _, loss: losses.append(loss))
    assert losses[-1] < losses[0] / 5
    facts.save_facts(tmp_path / "facts.safetensors", learner, sides, NAMES, {"own", "other"})
    model = load_facts(tmp_path / "facts.safetensors")
    assert model.encoders == {"own", "other"}
    texts = ["monday old"] * 3, ["old monday", "tuesday old", "monday not old"]
    words = [makers[0].words(side) for side in texts]
    exchanged, _, missing = compare_facts(*words, model).T[:3]
    assert exchanged.argmax() == 1
    assert exchanged[1] > 0
    assert missing.argmax() == 2
    assert missing[2] > 0
    assert model.names == ["not", "monday", "tuesday"]


def test_a_sentence_without_words_changes_no_word() -> None:
    levels, places = np.zeros((2, 3), np.float32), np.full((2, 3), 7, np.int32)
    ids, offsets = np.array([1, 0], np.int32), np.array([0, 0, 2])
    facts.find_levels(np.eye(2, 3, dtype=np.float32), ids, offsets, np.float32(-1), levels, places)
    assert (levels[0] == -np.inf).all()
    assert (places[0] == -1).all()
    of_words = np.zeros((2, 3), np.float32)
    facts.spread_gradients(np.ones((2, 3), np.float32), places, ids, of_words)
    assert of_words.sum() == 3
