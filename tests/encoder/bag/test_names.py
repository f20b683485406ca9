"""Names in sentences, and what an encoder has beside its own words for them."""

import numpy as np
import pytest

from encoder.bag.encoder import KNOWN_FROM, BagEncoder, find_names
from encoder.tokenizer import Tokenizer
from encoder.words import Words, join_words

DIM = 24


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Igår träffade Anna Bo i Lund.", "Anna Bo Lund."),
        ("“Anna” sade (Bo) och «Ärla»", "(Bo) «Ärla»"),
        ("Вчера Юрий был в Цюрихе", "Юрий Цюрихе"),
        ("წუხელ ანა", ""),
        ("เมื่อวาน Anna อยู่", "Anna"),
        ("om iPhone, 5G", ""),
        ("Anna", ""),
        ("Anna Bo", "Bo"),
        ("Anna Bo Lund", ""),
        ("IGÅR TRÄFFADE ANNA BO", ""),
        ("", ""),
    ],
)
def test_names_are_words_with_capitals_inside(sentence: str, found: str) -> None:
    assert find_names([sentence, "a B"]) == [found, "B"]


@pytest.fixture
def bags(tokenizer: Tokenizer) -> tuple[BagEncoder, BagEncoder]:
    generator = np.random.default_rng(5)
    tables = generator.standard_normal((2, len(tokenizer), DIM), dtype=np.float32)
    own, other = (BagEncoder(name="test", tokenizer=tokenizer, table=table) for table in tables)
    return own, other


@pytest.fixture
def named(sentences: list[str]) -> list[str]:
    return [" ".join([*text.split()[:3], "Anna", *text.split()[3:], "Bo"]) for text in sentences]


@pytest.mark.parametrize("times", [1, 1 + KNOWN_FROM // 80])
def test_a_sentence_is_its_words_and_the_others_of_its_names(
    bags: tuple[BagEncoder, BagEncoder], sentences: list[str], named: list[str], times: int
) -> None:
    own, other = bags
    texts = [*sentences, *named] * times
    sums = own.encode(texts, normalize=False) + other.encode(find_names(texts), normalize=False)
    both = own.with_names(other)
    assert both.encode(texts, normalize=False).tobytes() == sums.tobytes()
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(both.encode(texts), sums / lengths, atol=1e-6)
    np.testing.assert_array_equal(own.encode(texts, normalize=False)[:3], sums[:3])


def test_names_have_the_mean_vectors_of_both(bags: tuple[BagEncoder, BagEncoder]) -> None:
    own, other = bags
    texts = ["Bo said Anna and Anna", "", "Tom", "a Bo, said  Bo", " Anna Bo", "no name"]
    words = own.with_names(other).words(texts)
    np.testing.assert_array_equal(words.offsets, own.words(texts).offsets)
    places = iter(words.ids.tolist())
    for text in texts:
        for number, word in enumerate(text.split()):
            place, expected = next(places), vector_of(own, word)
            if (number or text[0] == " ") and word[0].isupper():
                expected = expected + vector_of(other, word)
            expected = expected / np.linalg.norm(expected)
            np.testing.assert_allclose(words.vectors[place], expected, atol=1e-6)
            assert words.weights[place] == own.words([word]).weights[0]


def vector_of(bag: BagEncoder, word: str) -> np.ndarray:
    return bag.words([word]).vectors[0]


def test_names_follow_words_that_spaces_do_not_separate(
    bags: tuple[BagEncoder, BagEncoder],
) -> None:
    own, other = bags
    text = "one\u00b4s own Anna"  # the tokeniser makes a space of the accent
    words = own.with_names(other).words([text, "a b"])
    found = words.vectors[words.ids[: words.offsets[1]]]
    expected = [*own.words([text]).vectors, vector_of(other, "Anna")]
    assert len(expected) == 5
    np.testing.assert_array_equal(found[-1], expected[-1])
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))


def test_words_are_joined_by_sentence() -> None:
    generator = np.random.default_rng(2)
    counts = generator.integers(0, 4, size=(2, 30))
    first, second = (made_up_words(generator, lengths) for lengths in counts)
    both = join_words(first, second)
    for number in range(30):
        expected = [
            (part.weights[each], *part.vectors[each])
            for part in (first, second)
            for each in part.ids[part.offsets[number] : part.offsets[number + 1]]
        ]
        ids = both.ids[both.offsets[number] : both.offsets[number + 1]]
        assert [(both.weights[each], *both.vectors[each]) for each in ids] == expected
    assert both.ids.dtype == np.int32 and both.offsets.dtype == np.int64


def made_up_words(generator: np.random.Generator, lengths: np.ndarray) -> Words:
    offsets = np.append(0, lengths.cumsum())
    return Words(
        vectors=generator.standard_normal((7, 2), dtype=np.float32),
        weights=generator.random(7, dtype=np.float32),
        ids=generator.integers(0, 7, offsets[-1], dtype=np.int32),
        offsets=offsets,
    )
