"""The logistic model: its features by hand, its weights by the condition they must meet."""

import numpy as np
import pytest

from miner.arrays import Pairs
from miner.filters import Suspects
from miner.rescoring import FEATURES, RIDGE, Rescorer, features


def test_features() -> None:
    pairs = Pairs(
        source=np.arange(3),
        target=np.arange(3),
        score=np.array([1.5, 1.2, 0.9]),
        cosine=np.array([0.7, 0.5, 0.4], dtype=np.float32),
        source_mean=np.zeros(3),
        target_mean=np.zeros(3),
        rank=np.array([1, 2, 4], dtype=np.int32),
        direction=np.array([3, 1, 2], dtype=np.int8),
    )
    source = ["a" * 7, "1 2 3 4 5", "7 8"]
    target = ["b" * 7, "1 2 3 4 5", "8 9 10 11"]
    rows = features(pairs, Suspects(source=source, target=target, ratio=1.0))
    assert rows.shape == (3, len(FEATURES))
    odds = 1 - float(np.log2(4 / 10))  # the lengths and one more; the usual ratio is 2
    np.testing.assert_allclose(rows[0], [1.5, 0.7, 1, 1, 1, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(rows[1], [1.2, 0.5, 0.5, 0, 1, 3, 0], rtol=1e-6)
    np.testing.assert_allclose(rows[2], [0.9, 0.4, 0.25, 0, odds, 1, 3], rtol=1e-6)


def world() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    known = random.standard_normal((400, 3)) * [1, 10, 0.1] + [5, 0, 1]
    chance = 1 / (1 + np.exp(-(2 * (known[:, 0] - 5) - 0.1 * known[:, 1])))
    return known, random.random(400) < chance


def test_the_trained_weights_are_where_the_likelihood_is_flat() -> None:
    known, right = world()
    model = Rescorer.trained(known, right)

    def loss(weights: np.ndarray) -> float:
        total = RIDGE / 2 * sum(weight**2 for weight in weights[:-1])
        for row, label in zip(known, right, strict=True):
            inputs = (row - known.mean(axis=0)) / known.std(axis=0)
            odds = float(inputs @ weights[:-1] + weights[-1])
            total += np.log1p(np.exp(-odds if label else odds))
        return total

    best = np.append(model.weights, model.bias)
    least = loss(best)
    for place in range(4):
        for step in (-1e-3, 1e-3):
            moved = best.copy()
            moved[place] += step
            assert loss(moved) > least


def test_scores_are_log_odds() -> None:
    known, right = world()
    model = Rescorer.trained(known, right)
    chance = 1 / (1 + np.exp(-model.scores(known)))
    assert chance.mean() == pytest.approx(right.mean(), abs=1e-6)
    assert model.scores(known)[right].mean() > model.scores(known)[~right].mean()


def test_a_feature_that_never_varies_says_nothing() -> None:
    known, right = world()
    known[:, 2] = 4
    assert Rescorer.trained(known, right).weights[2] == 0


def test_a_feature_that_parts_all_pairs_has_a_finite_weight() -> None:
    known, _ = world()
    model = Rescorer.trained(known, known[:, 0] > 5)
    assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("value", [True, False])
def test_one_kind_of_pairs(value: bool) -> None:
    with pytest.raises(ValueError, match="both right and wrong pairs"):
        Rescorer.trained(np.ones((3, 2)), np.full(3, value))
