"""Word alignment against a slow statement of its definition, and what must hold of any words."""

import math
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import miner.compiled_match  # noqa: F401 - so that it is there to be taken away
from encoder.words import Words
from miner.arrays import Direction, Pairs
from miner.score_ranges import merge_in_ranges, sort_pairs
from miner.storage.pair_numbers import pairs_of, table_of
from miner.word_match import (
    COVERAGE,
    IMBALANCE,
    MATCHED,
    UNMATCHED_NUMBERS,
    Alignment,
    align_texts,
    aligned_pairs,
    aligned_scores,
    match_words,
    usual_log_ratio,
)

DIM = 6


@dataclass
class Ragged:
    vectors: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray

    @property
    def ids(self):
        return np.arange(len(self.weights), dtype=np.int32)


def words_of(lengths, seed, dim=DIM):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((sum(lengths), dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = random.uniform(0.1, 3, sum(lengths)).astype(np.float32)
    return Ragged(vectors, weights, np.cumsum([0, *lengths]))


def one(words, sentence):
    part = slice(words.offsets[sentence], words.offsets[sentence + 1])
    vectors, weights = words.vectors[part], words.weights[part]
    return Ragged(vectors, weights, np.array([0, len(weights)]))


def oracle(source, target):
    rows = []
    for pair in range(len(source.offsets) - 1):
        sides = one(source, pair), one(target, pair)
        totals = [math.fsum(side.weights.tolist()) for side in sides]
        if not all(totals):
            rows.append((0.0, 0.0))
            continue
        shares = []
        for own, other, total in zip(sides, sides[::-1], totals, strict=True):
            covered = 0.0
            for vector, weight in zip(own.vectors, own.weights, strict=True):
                cosines = [float(vector.astype(float) @ word) for word in other.vectors]
                covered += float(weight) * min(1.0, max(0.0, *cosines) / MATCHED)
            shares.append(covered / total)
        rows.append((min(shares), math.log(totals[0] / totals[1])))
    return np.array(rows).reshape(-1, 2).T


pairs_of_lengths = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6)


@given(lengths=pairs_of_lengths, seed=st.integers(0, 1000))
def test_align_is_its_definition(lengths, seed):
    source = words_of([length for length, _ in lengths], seed)
    target = words_of([length for _, length in lengths], seed + 1)
    found = np.stack(match_words(source, target))
    np.testing.assert_allclose(found, oracle(source, target), atol=1e-5)
    assert found.dtype == np.float64


@given(
    lengths=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6),
    dim=st.sampled_from([1, 15, 16, 40, 256]),
    seed=st.integers(0, 1000),
)
def test_compiled_figures_have_the_bits_of_numpys(lengths, dim, seed):
    sides = [
        words_of(some, seed + side, dim) for side, some in enumerate(zip(*lengths, strict=True))
    ]
    sides = sides or [words_of([], seed, dim)] * 2
    compiled = np.stack(match_words(*sides))
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "miner.compiled_match")
        plain = np.stack(match_words(*sides))
    assert compiled.tobytes() == plain.tobytes()
    np.testing.assert_allclose(compiled, oracle(*sides), atol=1e-5)


def test_threads_do_not_show(monkeypatch):
    source, target = words_of([3, 0, 7, 4] * 5, 1), words_of([2, 5, 6, 4] * 5, 2)
    whole = np.stack(match_words(source, target))
    monkeypatch.setattr("miner.word_match.THREAD_PAIRS", 3)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert np.array_equal(whole, np.stack(match_words(source, target)))


@given(lengths=pairs_of_lengths, seed=st.integers(0, 1000))
def test_sides_change_places(lengths, seed):
    source = words_of([length for length, _ in lengths], seed)
    target = words_of([length for _, length in lengths], seed + 1)
    there, back = match_words(source, target), match_words(target, source)
    np.testing.assert_allclose(there[0], back[0], atol=1e-6)
    np.testing.assert_allclose(there[1], -back[1], atol=1e-6)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_sentence_covers_itself(lengths, seed):
    words = words_of(lengths, seed)
    coverage, log_ratio = match_words(words, words)
    np.testing.assert_allclose(coverage, 1, atol=1e-5)
    assert not log_ratio.any()


def test_a_word_may_be_met_again():
    words = words_of([4, 4], 5)
    ids = np.array([0, 1, 2, 2, 3, 0, 1, 7], dtype=np.int32)
    again = Words(vectors=words.vectors, weights=words.weights, ids=ids, offsets=words.offsets)
    alone = Ragged(words.vectors[ids], words.weights[ids], words.offsets)
    assert np.array_equal(match_words(again, words), match_words(alone, words))


def test_pairs_do_not_touch_one_another():
    source, target = words_of([3, 0, 7, 4], 1), words_of([2, 5, 6, 4], 2)
    whole = np.stack(match_words(source, target))
    for pair in range(4):
        alone = match_words(one(source, pair), one(target, pair))
        assert np.array_equal(np.concatenate(alone), whole[:, pair])


def test_a_clause_that_only_one_side_has_costs():
    both = words_of([8], 3)
    half = Ragged(both.vectors[:4], both.weights[:4], np.array([0, 4]))
    whole, part = (aligned(*match_words(first, both)) for first in (both, half))
    ends = [aligned_scores(np.array([1.2]), found, usual=0.0)[0] for found in (whole, part)]
    assert part.coverage[0] < whole.coverage[0]
    assert ends[0] > ends[1]


def aligned(coverage, log_ratio, unmatched_numbers=None):
    if unmatched_numbers is None:
        unmatched_numbers = np.zeros(len(coverage))
    return Alignment(coverage=coverage, log_ratio=log_ratio, unmatched_numbers=unmatched_numbers)


def test_texts_are_held_against_each_other():
    source = ["in 1999 and 2004", "1,000 of 7", "none", "12 and 12", ""]
    target = ["2004", "7 of 1.000", "one", "13", "5"]
    lengths = [1, 2, 0, 3, 1]
    words = {tuple(source): words_of(lengths, 1), tuple(target): words_of(lengths, 2)}
    encoders = [SimpleNamespace(words=lambda texts: words[tuple(texts)])] * 2
    found = align_texts(encoders, source, target)
    expected = match_words(*words.values())
    assert np.array_equal(found.coverage, expected[0])
    assert np.array_equal(found.log_ratio, expected[1])
    assert found.unmatched_numbers.tolist() == [1, 0, 0, 2, 1]


def test_the_score_is_its_formula():
    found = aligned(np.array([0.25, 1.0]), np.array([0.5, -0.1]), np.array([0.0, 2.0]))
    scores = aligned_scores(np.array([1.5, 1.0]), found, usual=0.1)
    expected = [
        1.5 + COVERAGE / 4 - IMBALANCE * 0.4,
        1 + COVERAGE - IMBALANCE * 0.2 - UNMATCHED_NUMBERS * math.log(3),
    ]
    np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize(("ratios", "usual"), [([], 0.0), ([0.3], 0.3), ([0.1, 5.0, 0.2], 0.2)])
def test_the_usual_ratio_is_the_median(ratios, usual):
    found = aligned(np.zeros(len(ratios)), np.array(ratios))
    assert usual_log_ratio(found) == usual


def test_what_a_score_is_made_of_goes_with_its_pair(tmp_path):
    """Through the sort on disk, and through the table that pairs are stored in."""
    random = np.random.default_rng(0)
    margins = random.random(50)
    pairs = Pairs(
        **{name: np.arange(50) for name in ("source", "target")},
        score=margins,
        **{name: random.random(50) for name in ("source_mean", "target_mean")},
        cosine=random.random(50, dtype=np.float32),
        rank=np.ones(50, dtype=np.int32),
        direction=np.full(50, 3, dtype=np.int8),
    )
    found = aligned(random.random(50), random.random(50), random.integers(3, size=50) * 1.0)
    made = aligned_pairs(pairs, found, usual=0.1)
    assert made.score.tolist() == aligned_scores(margins, found, usual=0.1).tolist()
    files = [sort_pairs(tmp_path / "a.npy", made, Direction.BOTH)]
    merged = next(merge_in_ranges(files, size=1000))
    read = pairs_of(table_of(merged))
    assert merged.source.tolist() == np.argsort(-made.score).tolist()
    for one in (merged, read):
        assert one.margin.tolist() == margins[one.source].tolist()
        assert one.coverage.tolist() == found.coverage[one.source].tolist()
        assert one.imbalance.tolist() == abs(found.log_ratio - 0.1)[one.source].tolist()
        assert one.unmatched.tolist() == found.unmatched_numbers[one.source].tolist()
    assert table_of(merged).schema.names[:5] == [
        *("score", "margin", "coverage", "imbalance", "unmatched")
    ]


def test_progress_is_reported_while_pairs_are_aligned(monkeypatch):
    monkeypatch.setattr("miner.word_match.TEXTS", 4)
    aligned, reported = [], []

    def words(texts):
        aligned.append(len(texts))
        return words_of([2] * len(texts), seed=len(aligned))

    def progress(pairs):
        assert sum(aligned) == 2 * (sum(reported) + pairs)  # those of both sides, and no more yet
        reported.append(pairs)

    align_texts([SimpleNamespace(words=words)] * 2, ["a"] * 10, ["b"] * 10, progress=progress)
    assert reported == [4, 4, 2]
