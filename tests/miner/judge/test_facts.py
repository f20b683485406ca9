"""Contradicting words against a slow comparison of all words, and in real sentences."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge import facts
from miner.judge.facts import LEAST, MOST, NEAR, PARTS, Meanings, contradictions, meanings_of
from tests.miner.judge.words import Ragged, words_of

LENGTHS = ([3, 0, 5, 2, 1, 2, 3] * 9, [4, 2, 2, 0, 1, 2, 3] * 9)


def whole(vectors: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(vectors * PARTS), -MOST, MOST).astype(np.int64)


def made_meanings(dim: int) -> Meanings:
    random = np.random.default_rng(5)
    vectors = random.standard_normal((11, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Meanings(
        vectors=whole(vectors).astype(np.float32),
        meanings=np.array([0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7]),
        groups=np.array([0, 0, 0, 1, 1, 2, 2, 2]),
        least=np.array([0.1, 0.2, 0.05], dtype=np.float32),
    )


def levels_of(vectors: np.ndarray, known: Meanings) -> tuple[dict, dict]:
    """Return the best cosine of any word with each meaning, and of those that say it."""
    cosines, claims = {}, {}
    for vector in vectors:
        products = [int(whole(vector) @ each.astype(np.int64)) for each in known.vectors]
        for product, meaning in zip(products, known.meanings.tolist(), strict=True):
            cosine = max(LEAST, product / PARTS**2)
            cosines[meaning] = max(cosines.get(meaning, LEAST), cosine)
            if product >= max(products) - NEAR * PARTS**2:
                claims[meaning] = max(claims.get(meaning, LEAST), cosine)
    return cosines, claims


def slowly(sides: tuple[np.ndarray, np.ndarray], known: Meanings) -> float:
    (cosines, claims), (others, other_claims) = (levels_of(side, known) for side in sides)
    found = []
    for group, least in enumerate(known.least.tolist()):
        meanings = np.flatnonzero(known.groups == group).tolist()
        only = [
            max(0, *(claim.get(m, LEAST) - level.get(m, LEAST) for m in meanings))
            for claim, level in ((claims, others), (other_claims, cosines))
        ]
        found.append(min(only) - least)
    return max(found)


def made_sides(known: Meanings) -> list[Ragged]:
    """Return words near those that are listed."""
    random, sides = np.random.default_rng(6), []
    for seed, lengths in enumerate(LENGTHS):
        words = words_of(lengths, seed)
        listed = known.vectors[random.integers(0, len(known.vectors), sum(lengths))] / PARTS
        words.vectors = (listed + words.vectors / 4).astype(np.float32)
        words.vectors /= np.linalg.norm(words.vectors, axis=1, keepdims=True)
        sides.append(words)
    return sides


def test_contradictions_are_those_of_a_slow_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    known = made_meanings(6)
    sides = made_sides(known)
    found = contradictions(*sides, known)
    parts = [np.split(side.vectors, side.offsets[1:-1]) for side in sides]
    expected = [slowly(pair, known) for pair in zip(*parts, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (found > 0).any()
    assert (found < 0).any()
    monkeypatch.setattr(facts, "ROWS", 5)
    assert contradictions(*sides, known).tobytes() == found.tobytes()
    assert contradictions(*sides[::-1], known).tobytes() == found.tobytes()


@pytest.mark.parametrize(
    ("language", "source", "same", "other"),
    [
        ("de", "Er kam am Dienstag.", "He came on Tuesday.", "He came on Friday."),
        ("fr", "Le prix est de sept dollars.", "It costs seven dollars.", "It costs nine dollars."),
        ("ru", "Это было в октябре.", "It was in October.", "It was in March."),
        ("it", "Sono tre ore.", "It is three hours.", "It is three days."),
        ("fi", "Minulla on kolme.", "I have three.", "I have nine."),
        ("zh", "他住在北部。", "He lives in the north.", "He lives in the south."),
    ],
)
def test_another_word_of_a_kind_contradicts(
    language: str, source: str, same: str, other: str
) -> None:
    makers = word_encoders(load_encoder(), (language, "en"))
    texts = [[source] * 3, [same, other, "Nothing of the kind was said."]]
    words = [own.words(part) for own, part in zip(makers, texts, strict=True)]
    found = contradictions(*words, meanings_of(makers[1])) > 0
    assert found.tolist() == [False, True, False]


def test_no_word_is_twice_in_a_group() -> None:
    for line in facts.LIST.splitlines():
        least, *words = line.split("\t")
        listed = [word for same in words for word in same.split(",")]
        assert 0 < float(least) < 1
        assert len(words) > 1
        assert len(set(listed)) == len(listed)
