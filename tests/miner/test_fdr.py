"""Estimates without gold, against definitions and against worlds where the truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.fdr import (
    MIN_DECOYS,
    Null,
    copied,
    false_discovery_rates,
    mine_added,
    nearly_copied,
    probabilities,
    threshold_at,
    usable_decoys,
    wrong_pairs,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both

K = 3


def slow_added(query: np.ndarray, source: np.ndarray, target: np.ndarray, taken: list) -> list:
    """The query joined to the sources, and everything computed again."""
    cosines = np.concatenate([source, query[None]]).astype(float) @ target.T.astype(float)

    def mean(values: np.ndarray) -> float:
        return sum(sorted(values.tolist())[-K:]) / K

    near = sorted(range(len(target)), key=lambda row: (-cosines[-1, row], row))[:K]
    scores = [cosines[-1, row] / ((mean(cosines[-1]) + mean(cosines[:, row])) / 2) for row in near]
    best = max(range(K), key=lambda place: scores[place])
    return [scores[best]] if scores[best] > taken[near[best]] else []


def test_mine_added() -> None:
    random = np.random.default_rng(5)
    shift = np.array([4, 0, 0, 0])  # so that all cosines are above zero
    source, target, queries = (
        unit_rows(random.standard_normal((rows, 4)) + shift) for rows in (20, 15, 30)
    )
    taken = np.where(random.random(15) < 0.5, -np.inf, 1 + 0.1 * random.random(15))
    _, backward = search_both(source, target, k=K)
    found, _ = search_both(queries, target, k=K)
    expected = [
        score for query in queries for score in slow_added(query, source, target, taken.tolist())
    ]
    assert 5 < len(expected) < 30
    pairs = mine_added(found, backward, taken)
    np.testing.assert_allclose(pairs.scores, expected, rtol=1e-6)
    assert (pairs.scores > taken[pairs.rows]).all()
    assert (np.diff(pairs.queries) > 0).all()


def exponential(count: int, *, seed: int) -> np.ndarray:
    return 1 + np.random.default_rng(seed).exponential(0.1, count)


def test_the_tail_is_the_exponential_it_was_drawn_from() -> None:
    null = Null.fitted(exponential(20_000, seed=1))
    thresholds = np.array([0.5, 1.0, 1.1, 1.3, 1.6])
    np.testing.assert_allclose(
        null.above(thresholds), np.exp(-np.maximum(0, thresholds - 1) / 0.1), rtol=0.15
    )


def test_below_the_tail_decoys_are_counted() -> None:
    scores = exponential(400, seed=2)
    null = Null.fitted(scores)
    for threshold in np.sort(scores)[:299:20].tolist():
        counted = sum(score > threshold for score in scores.tolist()) / 400
        assert null.above(np.array([threshold]))[0] == pytest.approx(counted)
    # Where the tail begins, it goes on from what was counted.
    assert null.above(np.array([null.start]))[0] == pytest.approx(0.25)
    beyond = [score - null.start for score in scores.tolist() if score > null.start]
    assert null.excess == pytest.approx(sum(beyond) / len(beyond))


def test_too_few_decoys() -> None:
    with pytest.raises(ValueError, match="pairs were mined for 99 decoys; at least 100 are needed"):
        Null.fitted(exponential(MIN_DECOYS - 1, seed=1))
    with pytest.raises(ValueError, match="the scores of the decoys do not differ"):
        Null.fitted(np.ones(MIN_DECOYS))


def world(*, right: int, wrong: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Best-first scores, and which of them are right."""
    random = np.random.default_rng([seed, right])
    scores = np.concatenate([random.normal(1.5, 0.15, right), 1 + random.exponential(0.07, wrong)])
    order = np.argsort(-scores)
    return scores[order], order < right


@pytest.mark.parametrize("wanted", [0.05, 0.1, 0.2])
def test_thresholds_keep_what_they_promise(wanted: float) -> None:
    null = Null.fitted(1 + np.random.default_rng(0).exponential(0.07, 3000))
    rates = []
    for seed in range(20):
        scores, right = world(right=300, wrong=6000, seed=seed)
        kept = scores > threshold_at(scores, null, fdr=wanted)
        rates.append((~right[kept]).mean())
    assert np.mean(rates) == pytest.approx(wanted, rel=0.25)


def test_expected_wrong_pairs_rates_and_threshold_by_their_definitions() -> None:
    scores, _ = world(right=30, wrong=300, seed=4)
    scores = np.sort(scores.round(2))[::-1]  # with ties
    null = Null.fitted(exponential(500, seed=3))
    share = [float(null.above(np.array([score]))[0]) for score in scores.tolist()]
    kept = [sum(other >= score for other in scores.tolist()) for score in scores.tolist()]
    expected = [min(len(scores) * part, count) for part, count in zip(share, kept, strict=True)]
    assert wrong_pairs(scores, null).tolist() == pytest.approx(expected)
    rates = [wrong / count for wrong, count in zip(expected, kept, strict=True)]
    least = [min(rates[rank:]) for rank in range(len(rates))]
    assert false_discovery_rates(scores, null).tolist() == pytest.approx(least)
    for wanted in (0.02, 0.1, 0.5):
        possible = [count for count, rate in zip(kept, rates, strict=True) if rate <= wanted]
        above = (scores > threshold_at(scores, null, fdr=wanted)).sum()
        assert above == max(possible, default=0)


def test_no_threshold_is_low_enough() -> None:
    null = Null.fitted(exponential(500, seed=3))
    assert threshold_at(np.array([1.2, 1.1]), null, fdr=0.01) == np.inf
    assert threshold_at(np.empty(0), null, fdr=0.01) == np.inf


def convex_minorant(points: list[float]) -> list[float]:
    """Slopes: at each rank the least, over ends after it, of the largest over starts before it."""
    whole = [0.0, *points]
    count = len(points)
    return [
        max(
            min((whole[end] - whole[start]) / (end - start) for end in range(rank, count + 1))
            for start in range(rank)
        )
        for rank in range(1, count + 1)
    ]


@given(st.lists(st.floats(0.9, 2.0), min_size=1, max_size=30))
def test_probabilities_are_slopes_of_the_convex_minorant(values: list[float]) -> None:
    scores = np.sort(values)[::-1]
    null = Null.fitted(exponential(300, seed=6))
    found = probabilities(scores, null)
    slopes = convex_minorant(wrong_pairs(scores, null).tolist())
    expected = [min(1.0, max(0.0, 1 - slope)) for slope in slopes]
    assert found.tolist() == pytest.approx(expected, abs=1e-9)
    assert (np.diff(found) <= 1e-12).all()


def test_probabilities_are_calibrated() -> None:
    null = Null.fitted(1 + np.random.default_rng(0).exponential(0.07, 3000))
    found, truth = [], []
    for seed in range(10):
        scores, right = world(right=300, wrong=6000, seed=seed)
        found.append(probabilities(scores, null))
        truth.append(right)
    found, truth = np.concatenate(found), np.concatenate(truth)
    for low, high in ((0.0, 0.1), (0.3, 0.7), (0.9, 1.0)):
        part = (found >= low) & (found <= high)
        assert found[part].mean() == pytest.approx(truth[part].mean(), abs=0.08)


def test_decoys_that_the_run_has_are_found_however_they_are_written() -> None:
    texts = ["The cat, it sat.", "STRASSE 5", "...", "\uff21\uff22 1", "Other"]
    decoys = ["the CAT it  sat", "Stra\u00dfe: 5!", " ... ", "ab1", "the cat", "?", ""]
    assert copied(decoys, iter(texts)).tolist() == [True, True, True, True, False, False, False]


def test_decoys_that_are_nearly_in_the_run() -> None:
    random = np.random.default_rng(0)
    side, noise, others = (unit_rows(random.standard_normal((40, 64))) for _ in range(3))
    near = unit_rows(side[::-1] + 0.2 * noise)
    assert nearly_copied(near, side).all()
    assert not nearly_copied(others, side).any()


def test_few_copies_are_left_out_and_many_are_refused() -> None:
    decoys = [f"line {number}" for number in range(500)]
    copies = np.zeros(500, dtype=bool)
    copies[[7, 9, 11, 13, 15]] = True
    assert usable_decoys(copies, decoys).tolist() == (~copies).tolist()
    copies[3] = True
    with pytest.raises(ValueError, match=r"^6 of 500 decoys .*'line 3'"):
        usable_decoys(copies, decoys)
