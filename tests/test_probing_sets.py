"""Sets for probing: what is swapped and replaced, and that words alone betray nothing."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tests.benchmark import benchmark

probing_sets = benchmark("probing_sets")


@pytest.fixture(scope="module")
def text() -> list[str]:
    """Sentences of made-up words, of which some are frequent, each drawn by the one before."""
    random = np.random.default_rng(3)
    letters = np.array(list("abcdefghij"))
    words = [
        "".join(letters[[n // 100, n // 10 % 10, n % 10]]) for n in random.permutation(1000)[:240]
    ]
    often = 1 / np.arange(2, len(words) + 2)
    made: dict[str, None] = {}
    while len(made) < 4000:
        drawn = random.choice(words, size=7, p=often / often.sum())
        made[f"The {' '.join(drawn)}, word."] = None
    return list(made)


def words(sentence: str) -> frozenset[tuple[str, int]]:
    return frozenset(Counter(sentence.split()).items())


def test_two_neighbours_are_swapped_in_every_second_sentence(text: list[str]) -> None:
    text = [*text[:300], "Words", "the same same word", "He can't go- on, then."]
    made = probing_sets.bigram_shift(text, seed=1)
    assert (
        made == probing_sets.bigram_shift(text, seed=1) != probing_sets.bigram_shift(text, seed=2)
    )
    assert [label for label, _ in made] == ["O", "I"] * 150
    assert {one for label, one in made if label == "O"} < set(text)
    by_words = {words(one): one for one in text}
    for original, swapped in ((by_words[words(one)], one) for label, one in made if label == "I"):
        assert swapped not in text
        before, after = original.split(), swapped.split()
        (first, second) = [n for n in range(len(before)) if before[n] != after[n]]
        assert second == first + 1
        assert after[first : first + 2] == before[first : first + 2][::-1]
    assert len({words(one) for _, one in made}) == len(made)


def tokens(sentence: str) -> list[str]:
    return ["", *re.findall(r"\w+|[.,]", sentence), ""]


def test_words_are_exchanged_whose_bigrams_are_as_frequent(text: list[str]) -> None:
    sentences = text[:2000]
    made = probing_sets.odd_man_out(sentences, text, seed=1)
    assert (
        made
        == probing_sets.odd_man_out(sentences, text, seed=1)
        != probing_sets.odd_man_out(sentences, text, seed=2)
    )
    assert len(made) > 200
    assert "".join(label for label, _ in made).startswith("OOCCOOCC")
    assert len({one for _, one in made}) == len(made)
    assert {one for label, one in made if label == "O"} <= set(sentences)
    once = Counter(token for one in text for token in tokens(one) if token)
    frequent = {word for word, _ in once.most_common(probing_sets.FREQUENT)}
    bigrams = Counter(pair for one in text for pair in pairwise(tokens(one)))

    def exchange(after: list[str]) -> tuple[str, str]:
        """Return the word taken away and the one added, where both are as they should be."""
        for before in map(tokens, sentences):
            places = [n for n, (x, y) in enumerate(zip(before, after, strict=False)) if x != y]
            if len(before) == len(after) and len(places) == 1:
                (place,) = places
                old, new = (list(pairwise(one[place - 1 : place + 2])) for one in (before, after))
                own = [bigrams[pair].bit_length() for pair in old]  # of itself and the others
                if own == [(1 + bigrams[pair]).bit_length() for pair in new]:
                    assert all(
                        once[word] >= probing_sets.RARE and word not in frequent
                        for word in (before[place], after[place])
                    )
                    return before[place], after[place]
        raise AssertionError(f"{after}: made of no sentence")

    changed = [one for label, one in made if label == "C"]
    assert not set(changed) & set(text)
    for one, other in zip(changed[::2], changed[1::2], strict=True):
        assert exchange(tokens(one)) == exchange(tokens(other))[::-1]
