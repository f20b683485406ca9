"""Word alignment against a slow statement of its definition, and what must hold of any words."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.alignment import COVERAGE, IMBALANCE, Alignment, align, aligned_scores, usual_log_ratio

DIM = 6


@dataclass
class Ragged:
    vectors: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray


def words_of(lengths, seed):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((sum(lengths), DIM)).astype(np.float32)
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
                covered += float(weight) * max(0.0, *cosines)
            shares.append(covered / total)
        rows.append((min(shares), math.log(totals[0] / totals[1])))
    return np.array(rows).reshape(-1, 2).T


pairs_of_lengths = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6)


@given(lengths=pairs_of_lengths, seed=st.integers(0, 1000))
def test_align_is_its_definition(lengths, seed):
    source = words_of([length for length, _ in lengths], seed)
    target = words_of([length for _, length in lengths], seed + 1)
    found = align(source, target)
    coverage, log_ratio = oracle(source, target)
    np.testing.assert_allclose(found.coverage, coverage, atol=1e-5)
    np.testing.assert_allclose(found.log_ratio, log_ratio, atol=1e-5)
    assert found.coverage.dtype == found.log_ratio.dtype == np.float64


@given(lengths=pairs_of_lengths, seed=st.integers(0, 1000))
def test_sides_change_places(lengths, seed):
    source = words_of([length for length, _ in lengths], seed)
    target = words_of([length for _, length in lengths], seed + 1)
    there, back = align(source, target), align(target, source)
    np.testing.assert_allclose(there.coverage, back.coverage, atol=1e-6)
    np.testing.assert_allclose(there.log_ratio, -back.log_ratio, atol=1e-6)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_sentence_covers_itself(lengths, seed):
    words = words_of(lengths, seed)
    found = align(words, words)
    np.testing.assert_allclose(found.coverage, 1, atol=1e-5)
    assert not found.log_ratio.any()


def test_pairs_do_not_touch_one_another():
    source, target = words_of([3, 0, 7, 4], 1), words_of([2, 5, 6, 4], 2)
    whole = align(source, target)
    for pair in range(4):
        alone = align(one(source, pair), one(target, pair))
        assert alone.coverage[0] == whole.coverage[pair]
        assert alone.log_ratio[0] == whole.log_ratio[pair]


def test_a_clause_that_only_one_side_has_costs():
    both = words_of([8], 3)
    half = Ragged(both.vectors[:4], both.weights[:4], np.array([0, 4]))
    whole, part = align(both, both), align(half, both)
    ends = [aligned_scores(np.array([1.2]), found, usual=0.0)[0] for found in (whole, part)]
    assert part.coverage[0] < whole.coverage[0]
    assert ends[0] > ends[1]


def test_the_score_is_its_formula():
    found = Alignment(coverage=np.array([0.25, 1.0]), log_ratio=np.array([0.5, -0.1]))
    scores = aligned_scores(np.array([1.5, 1.0]), found, usual=0.1)
    expected = [1.5 + COVERAGE / 4 - IMBALANCE * 0.4, 1 + COVERAGE - IMBALANCE * 0.2]
    np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize(("ratios", "usual"), [([], 0.0), ([0.3], 0.3), ([0.1, 5.0, 0.2], 0.2)])
def test_the_usual_ratio_is_the_median(ratios, usual):
    assert usual_log_ratio(np.array(ratios)) == usual
