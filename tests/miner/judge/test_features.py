"""Features against a slow statement of what each of them is."""

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.arrays import NO_NEIGHBOUR, Neighbours
from miner.judge import features as module
from miner.judge.compiled import MARKS
from miner.judge.features import (
    BOUNDARIES,
    COLUMNS,
    CONTEXT,
    FACTS,
    FEATURES,
    LANGUAGE,
    NEIGHBOURHOOD,
    NUMBERS,
    PARTS,
    NeighbourhoodStats,
    RunStatistics,
    Texts,
    compute_features,
    match_words,
    mean_spacing,
    read_texts,
)
from miner.judge.languages import own_language
from tests.miner.judge.words import one, words_of

STEPS = (0.15, 0.25, 0.35, 0.45, 0.55, 0.7, 0.85)
MATCHED, LINKED = 0.4, 0.3
PLAIN = RunStatistics(weights=1.0, letters=1.0, spacing=0.5, language=0.0, is_given=False)


def side_oracle(own, other):
    """The features of one sentence's words, each by its name, one after the other."""
    cosines = own.vectors.astype(float) @ other.vectors.astype(float).T
    best, place = cosines.max(axis=1), cosines.argmax(axis=1)
    back = cosines.argmax(axis=0)
    weight = own.weights.astype(float)
    share = weight / weight.sum()
    missing = [1 - min(max(cosine, 0.0) / MATCHED, 1.0) for cosine in best]
    words = range(len(best))
    lost = [*sorted((share[word] * missing[word] for word in words), reverse=True), 0.0]
    runs, run = [0.0], 0.0
    for word in words:
        run = run + share[word] * missing[word] if best[word] < LINKED else 0.0
        runs.append(run)
    linked = [word for word in words if best[word] >= LINKED]
    apart = [
        abs((word + 0.5) / len(best) - (place[word] + 0.5) / len(other.weights)) for word in words
    ]
    return [
        *(sum(share[word] for word in words if best[word] >= step) for step in STEPS),
        share @ best,
        sum(share[word] * (1 - missing[word]) for word in words),
        *lost[:2],
        max(weight[word] * missing[word] for word in words),
        sum(weight[word] * missing[word] for word in words),
        max(runs),
        sum(share[word] for word in linked if back[place[word]] == word),
        sum(share[word] * apart[word] for word in linked),
        sum(
            share[word]
            for word in linked
            if word - 1 in linked and abs(int(place[word]) - int(place[word - 1])) <= 2
        ),
        sum(weight[word] for word in words if best[word] >= STEPS[-1]),
        len(best),
    ]


pairs_of_lengths = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6)


@given(lengths=pairs_of_lengths, dim=st.sampled_from([1, 2, 3, 16]), seed=st.integers(0, 1000))
def test_features_of_words_are_their_definition(lengths, dim, seed):
    source = words_of([length for length, _ in lengths], seed, dim)
    target = words_of([length for _, length in lengths], seed + 1, dim)
    found, weights, _ = match_words(source, target)
    for pair, (both, sums) in enumerate(zip(found, weights, strict=True)):
        own, other = one(source, pair), one(target, pair)
        if not (len(own.weights) and len(other.weights)):
            assert not both.any()
            assert not sums.any()
            continue
        np.testing.assert_allclose(both[0], side_oracle(own, other), atol=1e-5)
        np.testing.assert_allclose(both[1], side_oracle(other, own), atol=1e-5)
        np.testing.assert_allclose(sums, [own.weights.sum(), other.weights.sum()], rtol=1e-6)


def joined(words):
    """The words of each sentence after light ones are joined, word by word."""
    vectors, weights, offsets = [], [], [0]
    for first, last in pairwise(words.offsets):
        ids = words.ids[first:last]
        own = words.weights[ids].astype(float)
        parts, light = [], []
        for place in range(len(ids)):
            light.append(place)
            if own[light].sum() >= own.mean():
                parts.append(light)
                light = []
        if light:
            parts[-1] += light
        sums = [(own[part, None] * words.vectors[ids[part]]).sum(axis=0) for part in parts]
        weights += [np.linalg.norm(each) for each in sums]
        vectors += [each / max(np.linalg.norm(each), 1e-9) for each in sums]
        offsets.append(len(vectors))
    return SimpleNamespace(
        vectors=np.array(vectors, np.float32).reshape(-1, words.vectors.shape[1]),
        weights=np.array(weights, np.float32),
        ids=np.arange(len(vectors), dtype=np.int32),
        offsets=np.array(offsets),
    )


@given(lengths=pairs_of_lengths, seed=st.integers(0, 1000))
def test_light_words_are_joined_to_the_next(lengths, seed):
    source, target = (
        words_of([pair[side] for pair in lengths], seed + side, 16) for side in (0, 1)
    )
    for joins in ((True, False), (False, True), (True, True)):
        parts = [
            joined(side) if join else side
            for side, join in zip((source, target), joins, strict=True)
        ]
        for found, expected in zip(
            match_words(source, target, joins), match_words(*parts), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_words_of_languages_without_spaces_between_them_are_joined():
    """Mined ones: the trees of given pairs have learned from parts."""

    def words(language, **options):
        languages = language, "en"
        return read_texts([Maker(), Maker()], SOURCE, TARGET, languages=languages, **options).words

    Maker.weights = {"a": 0.25}
    try:
        parts, thai = words("zh"), words("th")
        given = words("th", is_given=True)
    finally:
        Maker.weights = {}
    assert (parts[-1, 0, -1], thai[-1, 0, -1], given[-1, 0, -1]) == (3, 2, 3)
    np.testing.assert_array_equal(parts, given)


def test_weights_of_two_word_encoders_are_compared_in_one_scale():
    texts = read_texts([Maker(), Maker()], ["a b c", "b c"], ["a ein", "b ein"])
    one, other = Maker(), Maker()
    other.name = "other"
    names = ["weight of unmatched words, lesser side", "weight of unmatched words, greater side"]
    for makers, expected in (((one, one), [1, 2]), ((one, other), [1, 2 / 1.25])):
        usual = RunStatistics.of(texts, makers=makers)
        found = named(compute_features(texts, None, usual)[0])
        assert [found[name] for name in names] == pytest.approx(expected), makers
    assert RunStatistics.of(texts, makers=(one, other), is_given=True).scale == 1


def test_a_pair_has_the_same_bits_beside_any_others():
    lengths = [3, 0, 7, 4, 30, 1] * 5, [2, 5, 6, 4, 28, 1] * 5
    source, target = (words_of(some, seed, 40) for seed, some in enumerate(lengths))
    for joins in ((False, False), (True, True)):
        whole, weights, _ = match_words(source, target, joins)
        for pair in range(len(whole)):
            alone, sums, _ = match_words(one(source, pair), one(target, pair), joins)
            assert alone[0].tobytes() == whole[pair].tobytes()
            assert sums[0].tobytes() == weights[pair].tobytes()


class Maker:
    """Words are what stands between spaces; equal ones have equal vectors."""

    weights: ClassVar[dict[str, float]] = {}  # 1 if absent

    def split(self, sentences):
        return [sentence.split() for sentence in sentences]

    def words(self, sentences):
        parts = self.split(sentences)
        known = sorted({word for part in parts for word in part})
        places = [VOCABULARY.index(word) if word in VOCABULARY else 50 for word in known]
        vectors = np.eye(51, 50, dtype=np.float32)[places]  # zero if not in the vocabulary
        return SimpleNamespace(
            vectors=vectors,
            weights=np.array([self.weights.get(word, 1) for word in known], dtype=np.float32),
            ids=np.array([known.index(word) for part in parts for word in part], dtype=np.int32),
            offsets=np.cumsum([0, *map(len, parts)]),
        )


SOURCE = ["ein Haus, (alt)? 12", "Ja: nein!", "", "\u041a\u0442\u043e \u0422\u0410\u041c?", "a b c"]
TARGET = ["a house; 13 12", "yes no", "nothing", "who", "a b c"]


VOCABULARY = sorted({word for text in [*SOURCE, *TARGET] for word in text.split()})


def named(row):
    return dict(zip(COLUMNS, row.tolist(), strict=True))


def test_marks_and_numbers():
    texts = read_texts([Maker(), Maker()], SOURCE, TARGET)
    first, second, third, fourth, same = map(named, compute_features(texts, None, PLAIN))
    assert [
        first[f"difference in {mark}"] for mark in ("question marks", "colons", "brackets")
    ] == [
        *(1, 1, 1),
    ]
    assert (first["difference in commas"], first["difference in capitals"]) == (1, 1)
    assert (first["shared numbers"], first["unmatched numbers"]) == (1, 1)
    assert (second["difference in colons"], second["difference in capitals"]) == (1, 1)
    assert fourth["difference in capitals"] == 4
    assert third["ratio of letters"] == pytest.approx(8)
    assert same["coverage, lesser side"] == same["ratio of letters"] == 1
    assert all(math.isnan(same[name]) for name in NEIGHBOURHOOD)
    assert compute_features(texts, None, PLAIN).dtype == np.float32


ENDED = ["Yes.", "He asked: “Why?”", "(It is so.)", "你好。", "क्या?", "Wait... what?! »", "U.S."]
OPEN = ["", "Yes", "about 3.5", "see:", "Mr. Smith", "[1]", "...and", "你好"]
SMALL = ["a.", "“yes”", "¿qué?", "- и", "éa", "ß", "(see 3)"]
LARGE = ["A", "3 a", "Ω", "你a", "“Éa”", "", "...", "ĥ"]


@pytest.mark.parametrize(
    ("texts", "column", "expected"),
    [(ENDED, -2, 1), (OPEN, -2, 0), (SMALL, -1, 1), (LARGE, -1, 0)],
    ids=["ended", "open", "small", "large"],
)
def test_where_a_sentence_begins_and_ends(texts, column, expected):
    assert module._marks_in(texts)[:, column].tolist() == [expected] * len(texts)


def test_a_text_without_its_end_differs_from_what_is_usual():
    """A script may have neither such marks nor small letters: nothing is missing there."""
    makers, english = [Maker(), Maker()], ["It is so.", "That is all.", "Why not?"]
    for whole in (["Es ist so.", "Das ist alles.", "Warum?"], ["ก", "ข", "ค"]):
        usual = RunStatistics.of(read_texts(makers, whole, english))
        texts = read_texts(makers, whole, ["It is so.", "That is", "not?"])
        columns = [COLUMNS.index(name) for name in BOUNDARIES]
        found = compute_features(texts, None, usual)[:, columns]
        assert found.tolist() == [[0, 0], [1, 0], [0, 1]]
        whole_texts = read_texts(makers, whole, english)
        assert not compute_features(whole_texts, None, usual)[:, columns].any()


def test_what_is_usual_is_the_median_of_the_best_pairs(monkeypatch):
    monkeypatch.setattr(module, "STATISTICS_PAIRS", 3)
    texts = read_texts([Maker(), Maker()], ["a b c", "a b", "a", "a b"], ["a", "a", "a", "a b c"])
    usual = RunStatistics.of(texts, 0.25)
    assert usual == RunStatistics(
        weights=2.0,
        letters=1.5,
        spacing=0.25,
        language=0.0,
        is_given=False,
        boundaries=[0.0, 0.0],
    )
    ratios = compute_features(texts, None, usual)[:, FEATURES.index("ratio of weights")]
    assert ratios.tolist() == pytest.approx([1.5, 1.0, 2.0, 3.0])
    nothing = RunStatistics.of(read_texts([Maker(), Maker()], [], []))
    assert (nothing.weights, nothing.letters) == (1.0, 1.0)
    assert RunStatistics.of(texts, 0.25, is_given=True) == replace(usual, is_given=True)


def test_language_is_measured_by_the_surest_of_the_best_pairs():
    """Romanised text, of whose language the model never is sure, is not all foreign."""
    romanised = ["aap kaise hain mere dost", "mera naam ravi hai aur main yahan rehta hoon"] * 20
    for rows, expected in ((40, True), (20, False)):
        sides = [*romanised[:rows], *["The train arrives at eight o'clock."] * (40 - rows)]
        language = "hi" if rows == 40 else "en"
        own = own_language(sides, language)
        texts = read_texts([Maker(), Maker()], ["a"] * 40, ["a"] * 40)._replace(language=own)
        usual = RunStatistics.of(texts)
        assert (usual.language < 0) is expected
        own = compute_features(texts, None, usual)[:, COLUMNS.index(LANGUAGE)]
        assert np.quantile(own, 0.9) == pytest.approx(0, abs=1e-6) or not expected
        assert expected or own[:rows].max() < 0 < own[rows:].min()


def test_features_of_neighbours():
    texts = read_texts([Maker(), Maker()], SOURCE[:2], TARGET[:2])
    near = NeighbourhoodStats(np.array([0.8, 0.5]), np.array([0.4, 0.6]), np.array([0.3, 0.0]))
    found = compute_features(texts, near, PLAIN)[:, len(FEATURES) - 3 : len(FEATURES)]
    np.testing.assert_allclose(found[0], [0.8 / 0.35, 0.8, 1.0], rtol=1e-6)
    np.testing.assert_allclose(found[1], [0.5 / 0.3, -0.2, 1.0], rtol=1e-6)


def test_the_features_of_a_pair_are_of_both_sides():
    """Made of what is seen of its texts, pair by pair and name by name."""
    random = np.random.default_rng(2)
    texts = Texts(
        words=random.random((5, 2, len(module._WORD_FEATURES)), dtype=np.float32),
        weights=random.uniform(1, 9, (5, 2)),
        marks=random.integers(0, 6, (5, 2, MARKS)).astype(np.float32),
        numbers=random.integers(0, 4, (5, 3)).astype(float),
        language=random.random(5, dtype=np.float32),
        facts=random.random((5, 6), dtype=np.float32),
        parts=random.random((5, len(PARTS)), dtype=np.float32),
        context=random.random(5, dtype=np.float32),
    )
    usual = replace(PLAIN, weights=1.3, letters=0.8, language=-0.25, boundaries=(0.5, -0.25))
    for pair, row in enumerate(compute_features(texts, None, usual)):
        expected = {}
        for which, pick in (("lesser", min), ("greater", max)):
            for place, name in enumerate(module._WORD_FEATURES):
                expected[f"{name}, {which} side"] = pick(texts.words[pair, :, place])
        letters = texts.marks[pair, :, 0] + 1
        for name, (source, target), often in (
            ("weights", texts.weights[pair], 1.3),
            ("letters", letters, 0.8),
        ):
            ratio = source / target / often
            expected[f"ratio of {name}"] = ratio if ratio > 1 else 1 / ratio
        for place, name in enumerate(module._MARKS[1:], start=1):
            source, target = texts.marks[pair, :, place]
            expected[f"difference in {name}"] = abs(source - target)
        for place, name in enumerate(BOUNDARIES):
            source, target = texts.marks[pair, :, len(module._MARKS) + place]
            expected[name] = abs(source - target - usual.boundaries[place])
        names = "shared numbers", "unmatched numbers", NUMBERS
        expected |= dict(zip(names, texts.numbers[pair], strict=True))
        expected |= dict(zip(FACTS, texts.facts[pair], strict=True))
        expected |= dict(zip(PARTS, texts.parts[pair], strict=True))
        expected[LANGUAGE] = texts.language[pair] + 0.25
        expected[CONTEXT] = texts.context[pair]
        found = {name: value for name, value in named(row).items() if name not in NEIGHBOURHOOD}
        assert found == pytest.approx(expected, rel=1e-6)


def test_a_text_in_another_language_is_seen_on_either_side():
    languages, english = ("de", "en"), "The sun is shining over the sea today."
    texts = (
        ["Heute scheint die Sonne über dem Meer.", "Hoy brilla el sol sobre el mar.", english],
        [english, english, english],
    )
    makers = [AnyWords(), AnyWords()]
    right, *wrong = read_texts(makers, *texts, languages=languages).language
    assert right > 0 > max(wrong)
    back = read_texts(makers, *texts[::-1], languages=languages[::-1]).language
    assert back.tolist() == [right, *wrong]
    assert np.isnan(read_texts(makers, *texts).language).all()
    one_known = read_texts(makers, *texts, languages=("de", None)).language
    assert one_known[0] > 0 > one_known[1]


class AnyWords:
    """Sentences have one word each."""

    def words(self, sentences):
        return words_of([1] * len(sentences), 1)


def test_sides_change_places():
    there = read_texts([Maker(), Maker()], SOURCE, TARGET)
    back = read_texts([Maker(), Maker()], TARGET, SOURCE)
    both = (compute_features(texts, None, PLAIN) for texts in (there, back))
    np.testing.assert_allclose(*both, rtol=1e-6)


def test_texts_in_blocks_are_texts_at_once(monkeypatch):
    whole = read_texts([Maker(), Maker()], SOURCE, TARGET)
    monkeypatch.setattr(module, "PAIRS_PER_THREAD", 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    done = []
    parts = read_texts([Maker(), Maker()], SOURCE, TARGET, progress=done.append)
    assert sorted(done) == [1, 2, 2]
    for name in whole._fields:
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert isinstance(parts, Texts)


def test_the_spacing_of_neighbours():
    lists = Neighbours.empty(4, 4)
    lists.ids[0], lists.cosines[0] = [1, 2, 3, 4], [0.9, 0.5, 0.25, 0.125]
    lists.ids[1, :3], lists.cosines[1, :3] = [1, 2, 3], [0.9, 0.5, 0.25]
    lists.ids[2, :2], lists.cosines[2, :2] = [1, 2], [0.9, 0.1]
    assert lists.ids[3, 0] == NO_NEIGHBOUR
    expected = ((0.5 - 0.125) / (1 / 2 + 1 / 3) + (0.5 - 0.25) / (1 / 2)) / 2
    assert mean_spacing([lists]) == pytest.approx(expected)
    assert mean_spacing([lists.take(slice(2)), lists.take(slice(2, 4))]) == mean_spacing([lists])
    assert math.isnan(mean_spacing([lists.take(slice(2, 4))]))


@pytest.mark.parametrize("zero", ["\u0660", "\u06f0", "\u0966", "\u0e50", "\uff10"])
def test_digits_of_any_script_are_those_of_ascii(zero):
    """Words are met with the digits that their encoder knows."""
    native = "12 13".translate({ord("0") + digit: ord(zero) + digit for digit in range(10)})
    found = read_texts([Maker(), Maker()], [native], ["12 a"])
    plain = read_texts([Maker(), Maker()], ["12 13"], ["12 a"])
    for name in ("words", "weights", "marks", "numbers"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    assert found.numbers.tolist() == [[1, 1, 0]]
