"""The figures of a report, by slow and obvious means."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eval.metrics.bucc import Judgements
from eval.report.charts import decile_ranks, gold_curve, histogram, hubs, spread

SCORES = st.lists(st.integers(0, 40).map(lambda n: n / 8), min_size=1, max_size=30)


@given(SCORES)
def test_histogram(scores: list[float]) -> None:
    low, high = spread(np.array(scores))
    assert low < high
    counted = histogram(np.array(scores), low=low, high=high, bins=5)
    width = (high - low) / 5
    places = Counter(min(4, int((score - low) / width + 1e-9)) for score in scores)
    assert counted == [places[place] for place in range(5)]


def test_what_is_outside_counts_at_the_ends() -> None:
    assert histogram(np.array([-9.0, 0.1, 9.0]), low=0, high=1, bins=2) == [2, 1]


def test_gold_curve() -> None:
    random = np.random.default_rng(2)
    scores = np.sort(random.random(50))[::-1]
    right = random.random(50) < 0.6
    judgements = Judgements(scores=scores, correct=right, new_gold=right.astype(np.int64), gold=40)
    curve = gold_curve(judgements)
    assert curve[0].threshold == scores.min()
    for found in curve:
        kept = [mark for score, mark in zip(scores, right, strict=True) if score > found.threshold]
        hits = sum(kept)
        precision, recall = hits / len(kept) if kept else 0, hits / 40
        assert np.isclose(found.precision, precision)
        assert np.isclose(found.recall, recall)
        both = precision + recall
        assert np.isclose(found.f1, 2 * precision * recall / both if both else 0)


def test_hubs() -> None:
    lists = np.array([3, 0, 7, 7, 0, 9])
    assert hubs(lists, most=3) == [(5, 9), (2, 7), (3, 7)]
    assert hubs(lists, most=9) == [(5, 9), (2, 7), (3, 7), (0, 3)]


def test_deciles() -> None:
    assert decile_ranks(100) == [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]
    assert decile_ranks(3) == [0, 1, 2]
    assert decile_ranks(0) == []
