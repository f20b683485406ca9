"""Classifiers on frozen vectors, against scikit-learn and against code that is slow and plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from eval.metrics import frozen
from eval.metrics.frozen import (
    FOLDS,
    PENALTIES,
    Logistic,
    Mlp,
    Part,
    Perceptron,
    Shape,
    accuracy,
    cross_predict,
    expected_grade,
    folds,
    grade_correlation,
    grade_targets,
    one_hot,
    pair_features,
    probabilities,
    root_mean_square,
    softmax_regression,
)

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression


def peer(**options: float) -> LogisticRegression:
    """scikit-learn's, which takes seconds to load: not for processes with other tests."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=5000, **options)


def clouds(count: int, dim: int, classes: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes whose clouds overlap."""
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=count)
    centres = np.random.default_rng(0).standard_normal((classes, dim))
    return (centres[labels] + 2 * random.standard_normal((count, dim))).astype(np.float32), labels


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
def test_regressions_are_those_of_scikit_learn(classes: int, penalty: float) -> None:
    rows, labels = clouds(500, 12, classes, seed=1)
    fresh, gold = clouds(1000, 12, classes, seed=2)
    one = softmax_regression(Part(rows, one_hot(labels, classes)), penalty)
    # Theirs of two classes has one weight vector, the difference of ours: half the penalty.
    strength = penalty * len(rows) / (2 if classes == 2 else 1)
    other = peer(C=1 / strength, tol=1e-8).fit(rows, labels)
    np.testing.assert_allclose(probabilities(fresh, one), other.predict_proba(fresh), atol=5e-3)
    found = (probabilities(fresh, one).argmax(axis=1) == gold).mean()
    assert abs(found - other.score(fresh, gold)) < 0.01
    assert found > 1.5 / classes


def test_folds_have_their_share_of_each_class() -> None:
    labels = np.repeat([0, 1, 2], [50, 30, 21])
    found = folds(one_hot(labels, 3), FOLDS, seed=1)
    for one in range(3):
        counts = np.bincount(found[labels == one], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    assert (found != folds(one_hot(labels, 3), FOLDS, seed=2)).any()


def slow_fit(rows: np.ndarray, labels: np.ndarray, seed: int) -> LogisticRegression:
    """Choose the penalty by one fit for each fold and penalty."""
    fold = folds(one_hot(labels, 2), FOLDS, seed=seed)
    scores = []
    for penalty in PENALTIES:
        hits = []
        for number in range(FOLDS):
            train, out = fold != number, fold == number
            model = peer(C=2 / (penalty * train.sum()))
            hits.append(model.fit(rows[train], labels[train]).score(rows[out], labels[out]))
        scores.append(np.mean(hits))
    chosen = PENALTIES[int(np.argmax(scores))]
    return peer(C=2 / (chosen * len(rows))).fit(rows, labels)


def test_nested_folds_are_a_fit_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "FOLDS", 4)
    monkeypatch.setattr("tests.eval.metrics.test_frozen.FOLDS", 4)
    rows, labels = clouds(120, 8, 2, seed=3)
    found = cross_predict(Part(rows, one_hot(labels, 2)), Logistic(seed=5)).argmax(axis=1)
    fold = folds(one_hot(labels, 2), 4, seed=5)
    expected = np.empty(120, dtype=int)
    for number in range(4):
        train, out = fold != number, fold == number
        expected[out] = slow_fit(rows[train], labels[train], 5).predict(rows[out])
    assert (found == expected).mean() > 0.97


def test_the_development_part_decides() -> None:
    rows, labels = clouds(60, 40, 2, seed=1)
    dev, gold = clouds(400, 40, 2, seed=2)
    targets = one_hot(labels, 2)
    scores = []
    for penalty in PENALTIES:
        one = softmax_regression(Part(rows, targets), penalty)
        scores.append(accuracy(probabilities(dev, one), one_hot(gold, 2)))
    predict = Logistic().fit(Part(rows, targets), Part(dev, one_hot(gold, 2)))
    assert accuracy(predict(dev), one_hot(gold, 2)) == pytest.approx(max(scores), abs=0.005)
    assert max(scores) > min(scores)


def test_gradients_of_a_perceptron() -> None:
    random = np.random.default_rng(0)
    for activation in ("sigmoid", "tanh"):
        network = Perceptron(5, 3, Shape(hidden=(7, 4), activation=activation), seed=1)
        network.weights = [one.astype(np.float64) for one in network.weights]
        rows = random.standard_normal((6, 5))
        targets = np.eye(3)[random.integers(3, size=6)]
        for weight, gradient in zip(network.weights, network.gradients(rows, targets), strict=True):
            for place in np.ndindex(weight.shape):
                losses = []
                for change in (1e-5, -2e-5):
                    weight[place] += change
                    found = (network.probabilities(rows) * targets).sum(axis=1)
                    losses.append(-np.log(found).mean())
                weight[place] += 1e-5
                assert gradient[place] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-5)


def test_dropout_leaves_the_expected_output() -> None:
    network = Perceptron(4, 2, Shape(hidden=(2000,), dropout=0.5), seed=1)
    rows = np.ones((1, 4), dtype=np.float32)
    targets = np.array([[1, 0]], dtype=np.float32)
    outputs = [network.gradients(rows, targets)[2] for _ in range(20)]
    zeros = np.mean([(one[:, 0] == 0).mean() for one in outputs])
    assert zeros == pytest.approx(0.5, abs=0.02)


def test_a_perceptron_learns_what_no_plane_divides() -> None:
    random = np.random.default_rng(1)
    rows = random.uniform(-1, 1, (2400, 2)).astype(np.float32)
    targets = one_hot((rows[:, 0] * rows[:, 1] > 0).astype(np.int64), 2)
    train, test = Part(rows[:2000] * 3, targets[:2000]), Part(rows[2000:] * 3, targets[2000:])
    shapes = [Shape(hidden=(20,)), Shape(hidden=(20, 10), activation="tanh")]
    for shape in shapes:
        predict = Mlp(shapes=[shape]).fit(train)
        assert accuracy(predict(test.rows), test.targets) > 0.9
    assert accuracy(Logistic().fit(train)(test.rows), test.targets) < 0.7
    again = Mlp(shapes=shapes[:1])
    assert (again.fit(train)(test.rows) == again.fit(train)(test.rows)).all()


def test_features_of_pairs() -> None:
    random = np.random.default_rng(1)
    u, v = (random.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
    for both in (False, True):
        found = pair_features(u, v, both=both)
        for row in range(3):
            expected = [abs(a - b) for a, b in zip(u[row], v[row], strict=True)]
            expected += [a * b for a, b in zip(u[row], v[row], strict=True)]
            if both:
                expected = [*u[row], *v[row], *expected]
            assert found[row].tolist() == pytest.approx(expected)


def test_targets_of_grades() -> None:
    scores = np.array([1.0, 1.25, 3.0, 4.9, 5.0])
    found = grade_targets(scores, 5)
    for row, score in enumerate(scores.tolist()):
        expected = [0.0] * 5
        for grade in range(1, 6):
            if grade == int(score) + 1:
                expected[grade - 1] = score - int(score)
            if grade == int(score):
                expected[grade - 1] = int(score) - score + 1
        assert found[row].tolist() == pytest.approx(expected)
    assert expected_grade(found) == pytest.approx(scores)
    assert grade_correlation(found, found) == pytest.approx(1)
    assert grade_correlation(np.full((5, 5), 0.2, dtype=np.float32), found) == 0


def test_one_number_divides_vectors() -> None:
    assert root_mean_square(np.full((3, 2), -2, dtype=np.float32)) == 2
    assert root_mean_square(np.zeros((3, 2), dtype=np.float32)) == 1
