"""Near-copies against slow oracles: similarities of sets, and tables of what agrees in a band."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from miner.near_copies import BAND, HASHES, SIMILARITY, near_copies, signatures


def grams(*texts: str) -> set[tuple[int, str]]:
    plain = [" ".join(text.casefold().split()) for text in texts]
    return {
        (side, text[start : start + 4])
        for side, text in enumerate(plain)
        for start in range(max(1, len(text) - 3))
    }


def table_oracle(found: NDArray[np.uint32]) -> list[bool]:
    """The definition: as the best of those that agree in a band, and 80 % alike."""
    copies = [False] * len(found)
    for first in range(0, HASHES, BAND):
        best: dict[tuple[int, ...], int] = {}
        for place, signature in enumerate(found.tolist()):
            other = best.setdefault(tuple(signature[first : first + BAND]), place)
            agree = np.mean(found[place] == found[other])
            copies[place] |= other != place and bool(agree >= SIMILARITY)
    return copies


@pytest.mark.parametrize("held", [1, 7, 1 << 20])
def test_against_a_table(held: int) -> None:
    random = np.random.default_rng(3)
    found = random.integers(0, 3, (40, HASHES), dtype=np.uint32)[random.integers(0, 40, 300)]
    changed = random.random(found.shape) < random.choice([0, 0.1, 0.2, 0.4], (300, 1))
    found[changed] = random.integers(0, 1 << 32, changed.sum(), dtype=np.uint32)
    expected = table_oracle(found)
    assert 20 < sum(expected) < 280
    assert near_copies(found, held=held).tolist() == expected


def test_none() -> None:
    assert near_copies(np.empty((0, HASHES), np.uint32)).tolist() == []


def test_signatures_estimate_how_alike_texts_are(sample_pairs: list[tuple[str, str]]) -> None:
    changed = [
        (f"{one} Und noch mehr.", other[: 2 * len(other) // 3]) for one, other in sample_pairs
    ]
    both = [signatures(*zip(*pairs, strict=True)) for pairs in (sample_pairs, changed)]
    for pair, other, one, two in zip(sample_pairs, changed, *both, strict=True):
        exact = len(grams(*pair) & grams(*other)) / len(grams(*pair) | grams(*other))
        assert abs((one == two).mean() - exact) < 0.3  # five standard deviations


def test_copies_of_texts(sample_pairs: list[tuple[str, str]]) -> None:
    """Case, blanks and a word more make no other text; another translation does."""
    (one, other), (third, fourth) = sample_pairs[:2]
    pairs = [
        (one, other),
        (third, fourth),
        (one.upper(), f"  {other}"),
        (f"{one} Ja.", other),
        (one, fourth),
        (other, one),
        ("", ""),
        ("", " "),
    ]
    assert near_copies(signatures(*zip(*pairs, strict=True))).tolist() == [
        *(False, False, True, True, False, False, False, True),
    ]


@pytest.fixture
def sample_pairs() -> list[tuple[str, str]]:
    return [
        (
            "Der Turm steht seit vielen Jahren am Rand der Stadt und wartet auf Besuch.",
            "For many years the tower has stood at the edge of town, waiting for visitors.",
        ),
        (
            "Bei der Wahl am Sonntag verlor die Partei ein Drittel ihrer Stimmen.",
            "The party lost a third of its votes in Sunday's election.",
        ),
        ("Es regnet.", "It is raining."),
        ("東京は今日も雨だった。", "It rained in Tokyo again today."),
    ]
