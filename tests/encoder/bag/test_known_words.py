"""Words met before against the tokeniser's own cuts; margins against all ways to cut a word."""

import itertools
import threading

import numpy as np
import pytest

import encoder.bag.compiled
import encoder.bag.encoder
import encoder.bag.known_words
import encoder.compiled
from encoder import load_encoder
from encoder.bag.encoder import BagEncoder
from encoder.bag.features import Features
from encoder.bag.known_words import ROUNDING, Cuts, WordCache
from encoder.rows import sum_rows
from encoder.tokenizer import Tokenizer

SEPARATORS = [" ", "  ", "\u00a0", "\t", "\u3000", "\u200b", "\u2581", " \u2581 ", "\u00ad", ""]
WORDS = [
    *(
        "Haus,",
        "haus",
        "\u00bd",
        "\u00b4",
        "\ufdfa",
        "x\u0308",
        "\u0308",
        "漢字漢字",
        "\u0e01\u0e02",
        "서울은",
    ),
    *(
        "cccccccc",
        "dddd",
        "1111111",
        "\u1200\u1201",
        "\u2603",
        "a\0b",
        "a\nb",
        "",
        "z" * 60,
        "ß" * 30,
    ),
]


@pytest.fixture(scope="module")
def bundled() -> BagEncoder:
    found = load_encoder()
    assert isinstance(found, BagEncoder)
    return found


def known_and_cut(
    bag: BagEncoder, known: WordCache, sentences: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    numbers, words = bag._features.split(bag._tokenizer.encode(sentences))
    expected = sum_rows(sum_rows(bag._table, words), numbers)
    numbers, vectors = known.split(sentences)
    return sum_rows(vectors, numbers), expected


def odd_sentences(count: int) -> list[str]:
    generator = np.random.default_rng(4)
    characters = [chr(code) for code in generator.integers(1, 0x3000, 300)]
    made = []
    for _ in range(count):
        words = generator.choice(np.array([*WORDS, *characters], dtype=object), size=12)
        spaces = generator.choice(np.array([*SEPARATORS, *[" "] * 30], dtype=object), size=12)
        made.append("".join(itertools.chain.from_iterable(zip(words, spaces, strict=True))))
    return ["", " ", *made]


@pytest.mark.parametrize("room", [1 << 17, 1 << 9, 1 << 6])
def test_sums_have_the_bits_of_whole_sentences(
    bundled: BagEncoder, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder.bag.known_words, "MAX_CACHED_WORDS", room)
    known = WordCache(bundled._tokenizer, bundled._features, bundled._table)
    sentences = odd_sentences(600)
    for start in (0, 100, 0, 300):
        found, expected = known_and_cut(bundled, known, sentences[start : start + 300])
        assert found.tobytes() == expected.tobytes()


def test_texts_of_one_hash_are_told_apart(
    bundled: BagEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder.bag.compiled, "_PRIME", np.uint64(0))
    number_texts = encoder.bag.compiled.number_texts.py_func
    monkeypatch.setattr(encoder.bag.known_words, "number_texts", number_texts)
    known = WordCache(bundled._tokenizer, bundled._features, bundled._table)
    found, expected = known_and_cut(bundled, known, ["ein Haus am See", "am Haus ein See"])
    assert found.tobytes() == expected.tobytes()


def test_no_rule_of_the_normaliser_goes_across_a_space(bundled: BagEncoder) -> None:
    characters = [chr(code) for code in range(33, 0x30000) if not 0xD800 <= code < 0xE000]
    sentences = [f"a {character} {character}b" for character in characters]
    tokenizer = bundled._tokenizer
    whole = tokenizer.encode(sentences)
    parts = tokenizer.encode([part for sentence in sentences for part in sentence.split(" ")])
    assert whole.ids.tolist() == parts.ids.tolist()
    assert whole.offsets.tolist() == parts.offsets[::3].tolist()
    assert not any("\u2581" in piece[1:] for piece in tokenizer.pieces())


def test_a_word_that_rounding_cuts_otherwise_is_in_doubt(bundled: BagEncoder) -> None:
    tokenizer = bundled._tokenizer
    before, alone = "word word word ", tokenizer.encode(["cccccccc"])
    together = tokenizer.encode([before + "cccccccc"])
    assert together.ids[3:].tolist() != alone.ids.tolist()
    cuts = Cuts(tokenizer.pieces(), tokenizer.scores())
    margins, costs = cuts.margins(tokenizer.encode(["cccccccc", "word", "\u2603", ""]))
    assert (margins <= ROUNDING * costs).tolist() == [True, False, True, False]


def test_margins_are_those_of_all_cuts(tokenizer: Tokenizer) -> None:
    scores = dict(zip(tokenizer.pieces(), tokenizer.scores(), strict=True))
    unknown = min(scores.values()) - 10

    def all_cuts(word: str) -> list[float]:
        if not word:
            return [0.0]
        starts = [word[:size] for size in range(1, len(word) + 1)]
        known = [start for start in starts if start in scores or len(start) == 1]
        return [
            scores.get(start, unknown) + rest
            for start in known
            for rest in all_cuts(word[len(start) :])
        ]

    words = ["abde", "gihu", "aabbaabb", "dededede", "a", "ab"]
    tokens = tokenizer.encode(words)
    margins, costs = Cuts(tokenizer.pieces(), tokenizer.scores()).margins(tokens)
    for place, word in enumerate(words):
        best, *others = sorted(all_cuts("\u2581" + word), reverse=True)
        second = others[0] if others else -np.inf
        assert costs[place] == pytest.approx(-best, rel=1e-6)
        assert margins[place] == pytest.approx((best - second) / (len(word) + 1), rel=1e-5)


@pytest.mark.parametrize("scheme", [3, 4, 5])
def test_compiled_rows_are_those_of_numpy(bundled: BagEncoder, scheme: int) -> None:
    tokenizer = bundled._tokenizer
    features = Features(tokenizer.pieces(), 5000, scheme=scheme)
    words = tokenizer.encode([*WORDS, "xx" * 20, "Straßenbahn", "Донецьк", "ประเทศไทย", ""])
    expected, found = features._rows(words), features._compiled_rows(words)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()


def test_threads_may_share_an_encoder(bundled: BagEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = odd_sentences(400)
    whole = bundled.encode(sentences)
    monkeypatch.setattr(encoder.bag.encoder, "KNOWN_FROM", 1)
    found: dict[int, np.ndarray] = {}

    def encode(start: int) -> None:
        found[start] = bundled.encode(sentences[start : start + 100])

    threads = [threading.Thread(target=encode, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bundled._known is not None
    for start, vectors in found.items():
        assert vectors.tobytes() == whole[start : start + 100].tobytes()
