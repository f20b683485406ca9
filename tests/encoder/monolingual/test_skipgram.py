"""Skip-gram against a plain loop, and from a state on disk."""

from pathlib import Path

import numpy as np
import pytest

from encoder.bag.features import Features
from encoder.monolingual.compiled import NEGATIVES_PER_WORD, train_sentences
from encoder.monolingual.options import WordOptions
from encoder.monolingual.sides import feature_rows, learn_words
from encoder.monolingual.skipgram import NEGATIVES, SkipGram, read_vocabulary
from encoder.tokenizer import Tokenizer, train_tokenizer
from tests.encoder.monolingual.text import made_up_text, words_of

OPTIONS = WordOptions(dim=16, epochs=3, min_count=2, vocabulary_size=60, ngram_rows=50)
TEXT = made_up_text("ar", 400, seed=1)
MASK = (1 << 64) - 1


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_tokenizer(TEXT, vocabulary_size=OPTIONS.vocabulary_size))


def oracle(
    inputs: np.ndarray,
    outputs: np.ndarray,
    own: list[list[int]],
    sentences: list[list[int]],
    kept: np.ndarray,
    noise: np.ndarray,
    *,
    window: int,
    rate: float,
    state: int,
) -> int:
    """What ``train_sentences`` does, one plain step after another, in float64."""

    def drawn() -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        return state >> 33

    def learnt(hidden: np.ndarray, other: int, label: float, step: float) -> np.ndarray:
        error = step * (label - 1 / (1 + np.exp(-(hidden @ outputs[other]))))
        gradient = error * outputs[other]
        outputs[other] += error * hidden
        return gradient

    for sentence in sentences:
        left = [word for word in sentence if drawn() / (1 << 31) < kept[word]]
        for place, word in enumerate(left):
            reach = 1 + drawn() % window
            around = left[max(0, place - reach) : place] + left[place + 1 : place + reach + 1]
            if not around:
                continue
            hidden = inputs[own[word]].mean(axis=0)
            gradient = np.zeros_like(hidden)
            for other in around:
                gradient += learnt(hidden, other, 1, rate)
            for _ in range(NEGATIVES_PER_WORD):
                wrong = noise[drawn() % len(noise)]
                gradient += learnt(hidden, wrong, 0, rate * 5 / NEGATIVES_PER_WORD * len(around))
            for row in own[word]:  # a row that is there twice changes twice
                inputs[row] += gradient
    return state


def test_the_compiled_loop_does_what_a_plain_one_does() -> None:
    generator = np.random.default_rng(3)
    own = [[0, 5, 6, 6], [1], [2, 7], [3, 5, 8], [4, 6]]
    sentences = [generator.integers(5, size=size).tolist() for size in (9, 1, 0, 4, 12)]
    kept = np.array([0.4, 1, 1, 0.7, 1], np.float32)
    noise = np.array([0, 0, 0, 1, 1, 2, 3, 4], np.int32)
    inputs = generator.standard_normal((9, 6)).astype(np.float32)
    outputs = generator.standard_normal((5, 6)).astype(np.float32)
    slow = inputs.astype(np.float64), outputs.astype(np.float64)
    last = oracle(*slow, own, sentences, kept, noise, window=3, rate=0.1, state=12345)
    state = np.array([12345], np.uint64)
    rows, text = (
        (np.concatenate(each).astype(np.int32), np.cumsum([0, *map(len, each)]))
        for each in (own, sentences)
    )
    drawn = kept, noise, 3, NEGATIVES
    train_sentences((inputs, outputs, *rows), text, drawn, np.float32(0.1), state)
    assert int(state[0]) == last
    assert np.allclose(inputs, slow[0], atol=1e-5)
    assert np.allclose(outputs, slow[1], atol=1e-5)


def test_words_that_keep_the_same_company_are_near(tokenizer: Tokenizer, tmp_path: Path) -> None:
    options = WordOptions(dim=16, epochs=30, min_count=2, vocabulary_size=60, ngram_rows=50)
    side = learn_words(TEXT * 2, tokenizer, options, tmp_path / "ar.safetensors")
    words = words_of("ar")
    rows = [side.words.index(word) for word in words]
    vectors = side.vectors[rows]
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    beside = np.diagonal(cosines, offset=1).mean()
    assert beside > np.diagonal(cosines, offset=60).mean() + 0.5


def test_a_vocabulary_counts_words_without_their_edges() -> None:
    lines = ["(Abba) abba, aabb!", "abba ... aabb", "", "aabb-abba; abbaж"]
    tokenizer = Tokenizer(train_tokenizer(["aabb-abba, (!;..)"] * 9, vocabulary_size=12))
    found = read_vocabulary(lines, tokenizer, min_count=1)
    assert dict(zip(found.words, found.counts.tolist(), strict=True)) == {
        "abba": 3,
        "aabb": 2,
        "aabb-abba": 1,
    }
    assert [found.words[number] for number in found.text.ids] == [
        *("abba", "abba", "aabb"),
        *("abba", "aabb"),
        "aabb-abba",
    ]
    assert found.text.offsets.tolist() == [0, 3, 5, 5, 6]
    assert np.allclose(found.idf, np.log([5 / 2, 5 / 2, 5]))


def test_a_words_features_are_those_of_a_bag(tokenizer: Tokenizer) -> None:
    features = Features(tokenizer.pieces(), 50)
    words = ["ababum", "xx", "bar"]
    rows = feature_rows(words, tokenizer, features)
    for number, word in enumerate(words):
        _, alone = features.split(tokenizer.encode([word]))
        assert sorted(rows.ids[rows.offsets[number] : rows.offsets[number + 1]]) == sorted(
            alone.ids
        )


def test_too_little_text_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="--min-count 5: fewer than 2 words are so frequent"):
        read_vocabulary(["abba abba abba abba abba"], tokenizer, min_count=5)


def test_an_interrupted_training_goes_on_byte_for_byte(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    class KilledError(Exception):
        pass

    seen = 0

    def count(words: int) -> None:
        nonlocal seen
        seen += words
        if seen > 1.5 * 400 * 8:
            raise KilledError

    whole = learn_words(TEXT, tokenizer, OPTIONS, tmp_path / "whole.safetensors")
    with pytest.raises(KilledError):
        learn_words(TEXT, tokenizer, OPTIONS, tmp_path / "cut.safetensors", progress=count)
    cut = learn_words(TEXT, tokenizer, OPTIONS, tmp_path / "cut.safetensors")
    assert cut.words == whole.words
    assert cut.vectors.tobytes() == whole.vectors.tobytes()


def test_a_state_of_another_training_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    place = tmp_path / "ar.safetensors"
    learn_words(TEXT, tokenizer, OPTIONS, place)
    with pytest.raises(ValueError, match=r"contains a training with text"):
        learn_words(TEXT[1:], tokenizer, OPTIONS, place)
    place.write_bytes(b"no state")
    with pytest.raises(ValueError, match="is not a checkpoint of a training, or is damaged"):
        learn_words(TEXT, tokenizer, OPTIONS, place)


def test_vectors_that_grow_beyond_all_numbers_are_refused(tokenizer: Tokenizer) -> None:
    vocabulary = read_vocabulary(TEXT, tokenizer, min_count=2)
    features = Features(tokenizer.pieces(), 50)
    rows = feature_rows(vocabulary.words, tokenizer, features)
    training = SkipGram(vocabulary, rows, len(features), OPTIONS)
    training.outputs[:] = np.inf
    with pytest.raises(ValueError, match=r"--learning-rate 0\.05: word vectors became infinite"):
        training.advance(lambda words: None)
