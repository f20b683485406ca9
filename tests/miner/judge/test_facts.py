"""Facts against a slow comparison of all meanings, and in real sentences."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge import facts
from miner.judge.facts import (
    MAX_BYTE,
    PARTS,
    Facts,
    compare_facts,
    facts_of,
    load_facts,
    name_differences,
)
from tests.miner.judge.words import Ragged, one, words_of

LENGTHS = ([3, 0, 5, 2, 1, 2, 3] * 9, [4, 2, 2, 0, 1, 2, 3] * 9)
LEVEL = 256
GROUPS = [[[0]], [[1, 2], [3], [4]], [[5], [2]], [[6], [0, 7]]]


def made_facts() -> Facts:
    random = np.random.default_rng(5)
    senses = [sense for group in GROUPS for sense in group]
    return Facts(
        encoders=frozenset({"made"}),
        names=list("abcdefgh"),
        hidden=random.integers(-MAX_BYTE, MAX_BYTE, (6, 4)).astype(np.int8),
        outputs=random.integers(-MAX_BYTE, MAX_BYTE, (4, 8)).astype(np.int8),
        scales=np.array([0.002, 0.05], dtype=np.float32),
        biases=random.integers(-900, 100, 8).astype(np.int16),
        joining=np.int16(-200),
        members=np.array([meaning for sense in senses for meaning in sense], dtype=np.int32),
        senses=np.cumsum([0, *map(len, senses)]).astype(np.int32),
        groups=np.cumsum([0, *map(len, GROUPS)]).astype(np.int32),
    )


def levels_of(words: Ragged, model: Facts) -> list[float]:
    """Return the level of each meaning in one sentence."""
    whole = np.clip(np.rint(words.vectors * PARTS), -MAX_BYTE, MAX_BYTE)
    hidden = np.clip(np.rint(whole @ model.hidden * model.scales[0]), -MAX_BYTE, MAX_BYTE)
    says = np.rint(hidden @ model.outputs * model.scales[1])
    both = says[:-1] + says[1:] + model.joining
    return [max(each) for each in np.concatenate([says, both]).T + model.biases[:, None]]


def are_both(first: float, second: float) -> float:
    return (2 * min(first, second) + max(first, second)) // 3


def slowly(source: Ragged, target: Ragged, model: Facts) -> list[float]:
    sides = [levels_of(side, model) for side in (source, target)]
    exchanged, missing, negations, shared = [], [], [], 0
    for group in GROUPS:
        said = [[max(levels[m] for m in sense) for sense in group] for levels in sides]
        once = [
            max(are_both(own, -other) for own, other in zip(*both, strict=True))
            for both in (said, said[::-1])
        ]
        if len(group) == 1:
            missing.append(max(once))
            negations = sorted(levels[0] for levels in said)
        else:
            exchanged.append(are_both(*once))
            shared += sum(min(both) > 0 for both in zip(*said, strict=True))
    second, first = sorted(exchanged)[-2:]
    return [*(each / LEVEL for each in (first, second, max(missing), *negations)), shared]


def test_facts_are_those_of_a_slow_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made_facts()
    source, target = (words_of(lengths, seed) for seed, lengths in enumerate(LENGTHS))
    found = compare_facts(source, target, model)
    for pair, row in enumerate(found):
        if all(side[pair] for side in LENGTHS):
            expected = slowly(one(source, pair), one(target, pair), model)
            np.testing.assert_allclose(row, expected, rtol=1e-6)
    assert (found > 0).any(axis=0).all()
    assert (found < 0).any(axis=0)[:-1].all()
    monkeypatch.setattr(facts, "WORDS_AT_ONCE", 5)
    monkeypatch.setattr(facts, "PAIRS_AT_ONCE", 4)
    assert compare_facts(source, target, model).tobytes() == found.tobytes()
    assert compare_facts(target, source, model).tobytes() == found.tobytes()


def test_facts_of_a_sentence_without_words_are_unknown() -> None:
    empty, full = words_of([0], 1), words_of([3], 2)
    assert np.isnan(compare_facts(empty, full, made_facts())).all()
    assert np.isnan(compare_facts(full, empty, made_facts())).all()


@pytest.mark.parametrize(
    ("language", "source", "same", "other"),
    [
        ("de", "Er kam am Dienstag.", "He came on Tuesday.", "He came on Friday."),
        ("fr", "Le prix est de sept dollars.", "It costs seven dollars.", "It costs nine dollars."),
        ("ru", "Это было в октябре.", "It was in October.", "It was in March."),
        ("it", "Sono tre ore.", "It is three hours.", "It is three days."),
        ("fi", "Minulla on kolme.", "I have three.", "I have nine."),
        ("zh", "他住在北部。", "He lives in the north.", "He lives in the south."),
        ("ja", "彼女は火曜日に来た。", "She came on Tuesday.", "She came on Friday."),
        ("hi", "वह मंगलवार को आया।", "He came on Tuesday.", "He came on Friday."),
        ("de", "Das ist ausreichend.", "This is sufficient.", "This is insufficient."),
    ],
)
def test_a_word_that_excludes_another_contradicts(
    language: str, source: str, same: str, other: str
) -> None:
    exchanged = compare_texts(language, source, [same, other, "The house is big."])[0].tolist()
    assert exchanged[1] > 0.8 + max(exchanged[0], exchanged[2])


@pytest.mark.parametrize(
    ("language", "plain", "negated"),
    [
        ("de", "Er ist gekommen.", "Er ist nicht gekommen."),
        ("fr", "Il est venu.", "Il n'est pas venu."),
        ("ru", "Он пришёл.", "Он не пришёл."),
        ("fi", "Hän tuli.", "Hän ei tullut."),
        ("tr", "Bu doğru.", "Bu doğru değil."),
    ],
)
def test_a_negation_on_one_side_is_found(language: str, plain: str, negated: str) -> None:
    for source, is_negated in ((plain, False), (negated, True)):
        missing = compare_texts(language, source, ["He came.", "He did not come."])[2]
        assert missing[1 - int(is_negated)] > 1 + missing[int(is_negated)]


def compare_texts(language: str, source: str, targets: list[str]) -> np.ndarray:
    makers = word_encoders(load_encoder(), (language, "en"))
    texts = [[source] * len(targets), targets]
    words = [own.words(part) for own, part in zip(makers, texts, strict=True)]
    return compare_facts(*words, facts_of(makers)).T


def test_only_the_bundled_encoders_have_facts() -> None:
    for languages in (("de", "en"), ("fi", "ta")):
        assert facts_of(word_encoders(load_encoder(), languages)) is load_facts()
    assert facts_of(word_encoders(load_encoder(), ("de", "en"))[:1] * 2) is load_facts()
    words = words_of([2], 1)
    assert facts_of([object(), object()]) is None  # type: ignore[list-item]
    assert np.isnan(compare_facts(words, words, None)).all()


def test_differences_are_named() -> None:
    for source, target, expected in (
        ("Er kam am Dienstag.", "He came on Friday.", ("tuesday", "friday")),
        ("Er kam nicht.", "He came.", ("not", "")),
        ("Er kam.", "He did not come.", ("", "not")),
    ):
        makers = word_encoders(load_encoder(), ("de", "en"))
        words = [own.words([text]) for own, text in zip(makers, (source, target), strict=True)]
        assert name_differences(*words, load_facts())[0] == expected
    makers = word_encoders(load_encoder(), ("de", "en"))
    words = [own.words([text]) for own, text in zip(makers, ("Er kam.", "He came."), strict=True)]
    assert name_differences(*words, load_facts()) == []
