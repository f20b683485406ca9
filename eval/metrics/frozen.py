"""Classifiers on frozen vectors, with the protocols of SentEval.

Conneau & Kiela 2018. First divide all vectors by the ``root_mean_square`` of training vectors.
A regression raises ModuleNotFoundError if SciPy is not installed.
Axes: ``N`` rows, ``D`` dim, ``C`` classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from miner.arrays import FloatArray, IntArray, Mask, Matrix

Predictor = Callable[[Matrix], Matrix]  # from rows (N, D) to probabilities (N, C)
Score = Callable[[Matrix, Matrix], float]  # from probabilities and targets, both (N, C)

MAX_ITERATIONS = 200  # of L-BFGS
TOLERANCE = 1e-5  # of the largest number in a gradient, whose errors are means of at most 1
BATCH_ROWS = 64
EPOCHS_PER_CHECK = 4  # epochs of training between two scores of the development rows
PATIENCE = 5  # checks without a better score before training ends
MAX_EPOCHS = 200
LEARNING_RATE = 1e-3
DECAYS = (0.9, 0.999)  # of both moments of Adam (Kingma & Ba 2015)
EPSILON = 1e-8  # of Adam
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 10


@dataclass(frozen=True)
class Part:
    """N rows, float32 (N, D), and their class probabilities, float32 (N, C)."""

    rows: Matrix
    targets: Matrix

    def take(self, chosen: Mask) -> "Part":
        """Return the rows in the mask ``chosen`` (N,), with their targets."""
        return Part(self.rows[chosen], self.targets[chosen])


def softmax_regression(train: Part, penalty: float) -> Matrix:
    """Fit a softmax regression to the rows of ``train``.

    Weights, float32 (D + 1, C), end with a row of biases. L-BFGS minimises the mean cross entropy
    plus half the ``penalty`` times the sum of squared weights, without biases, in up to 200 steps.
    """
    from scipy.optimize import minimize

    rows, targets = train.rows, train.targets
    shape = rows.shape[1] + 1, targets.shape[1]

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(shape)
        weights32 = weights.astype(np.float32)
        errors = rows @ weights32[:-1] + weights32[-1]
        errors -= errors.max(axis=1, keepdims=True)
        target_logits = np.einsum("nc,nc->n", errors, targets)
        np.exp(errors, out=errors)
        sums = errors.sum(axis=1, keepdims=True)
        value = (np.log(sums[:, 0]) - target_logits).mean(dtype=np.float64)
        errors = (errors / sums - targets) / np.float32(len(rows))
        gradient = np.vstack([rows.T @ errors, errors.sum(axis=0)]).astype(np.float64)
        gradient[:-1] += penalty * weights[:-1]
        return value + penalty / 2 * np.square(weights[:-1]).sum(), gradient.ravel()

    options = {"maxiter": MAX_ITERATIONS, "gtol": TOLERANCE, "ftol": 0.0}
    start = np.zeros(shape).ravel()
    solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    weights: Matrix = solution.x.reshape(shape).astype(np.float32)
    return weights


def probabilities(rows: Matrix, weights: Matrix) -> Matrix:
    """Return class probabilities (N, C) by weights of ``softmax_regression``."""
    return _softmax(rows @ weights[:-1] + weights[-1])


def _softmax(logits: Matrix) -> Matrix:
    powers: Matrix = np.exp(logits - logits.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a perceptron.

    Attributes:
        hidden: the width of each hidden layer, from the first; possibly none.
        activation: of hidden layers, ``sigmoid`` or ``tanh``.
        dropout: the share of hidden numbers that training drops, from 0 to below 1.
    """

    hidden: Sequence[int]
    activation: str = "sigmoid"
    dropout: float = 0.0


SHAPES = tuple(
    Shape(hidden=[width], dropout=rate) for width in (50, 100, 200) for rate in (0.0, 0.1, 0.2)
)


def _sigmoid(x: Matrix) -> Matrix:
    half = np.float32(0.5)
    values: Matrix = half * np.tanh(half * x) + half  # never overflows
    return values


# Each function with its derivative as a function of its output.
ACTIVATIONS: dict[str, tuple[Callable[[Matrix], Matrix], Callable[[Matrix], Matrix]]] = {
    "sigmoid": (_sigmoid, lambda y: y * (1 - y)),
    "tanh": (np.tanh, lambda y: 1 - y * y),
}


class Perceptron:
    """A perceptron of a ``shape`` from ``dim`` numbers to ``classes``.

    Adam trains it in batches of 64 rows as in SentEval. Every 4 epochs, the development rows are
    scored. Training ends after 5 scores without a new best, or 200 epochs, and keeps the best
    weights. ``weights`` lists each layer's weights, then biases. ``seed`` draws all random numbers.
    """

    def __init__(self, dim: int, classes: int, shape: Shape, *, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._dropout = shape.dropout
        self._forward, self._slope = ACTIVATIONS[shape.activation]
        self.weights: list[Matrix] = []
        for inputs, outputs in pairwise([dim, *shape.hidden, classes]):
            limit = np.sqrt(6 / (inputs + outputs))  # Glorot & Bengio 2010
            sample = self._random.uniform(-limit, limit, (inputs, outputs))
            self.weights += [sample.astype(np.float32), np.zeros(outputs, dtype=np.float32)]

    def probabilities(self, rows: Matrix) -> Matrix:
        """Predict the class probabilities of rows (N, D), float32 (N, C)."""
        for layer in range(0, len(self.weights) - 2, 2):
            rows = self._forward(rows @ self.weights[layer] + self.weights[layer + 1])
        return _softmax(rows @ self.weights[-2] + self.weights[-1])

    def fit(self, train: Part, dev: Part, score: Score) -> float:
        """Train on ``train``, and keep the weights that score best on ``dev``.

        Neither is empty. The result is the ``score`` of predicted and true probabilities of
        ``dev``, higher if better. Weights change in place, so another call continues from them.
        """
        moments = [[np.zeros_like(weights) for weights in self.weights] for _ in range(2)]
        best, best_weights, misses, steps = -np.inf, self.weights, 0, 0
        for epoch in range(1, MAX_EPOCHS + 1):
            order = self._random.permutation(len(train.rows))
            for start in range(0, len(order), BATCH_ROWS):
                batch = order[start : start + BATCH_ROWS]
                steps += 1
                gradients = self.gradients(train.rows[batch], train.targets[batch])
                self._update(gradients, moments, steps)
            if epoch % EPOCHS_PER_CHECK:
                continue
            misses += 1
            if (dev_score := score(self.probabilities(dev.rows), dev.targets)) > best:
                best, misses = dev_score, 0
                best_weights = [weights.copy() for weights in self.weights]
            if misses == PATIENCE:
                break
        self.weights = best_weights
        return best

    def gradients(self, rows: Matrix, targets: Matrix) -> list[Matrix]:
        """Compute gradients of the mean cross entropy, in order of ``weights``.

        ``rows`` are (N, D), and ``targets`` class probabilities (N, C). Dropout is applied.
        """
        outputs, masks = [rows], []
        for layer in range(0, len(self.weights) - 2, 2):
            output = self._forward(outputs[-1] @ self.weights[layer] + self.weights[layer + 1])
            is_kept = self._random.random(output.shape, dtype=np.float32) >= self._dropout
            masks.append(is_kept.astype(np.float32) / np.float32(1 - self._dropout))
            outputs.append(output * masks[-1])
        errors = _softmax(outputs[-1] @ self.weights[-2] + self.weights[-1]) - targets
        errors /= len(rows)
        gradients: list[Matrix] = []
        for layer in range(len(self.weights) - 2, -1, -2):
            inputs = outputs[layer // 2]
            gradients = [inputs.T @ errors, errors.sum(axis=0), *gradients]
            if layer:
                mask = masks[layer // 2 - 1]
                kept = np.divide(inputs, mask, out=np.zeros_like(inputs), where=mask > 0)
                errors = (errors @ self.weights[layer].T) * mask * self._slope(kept)
        return gradients

    def _update(self, gradients: list[Matrix], moments: list[list[Matrix]], steps: int) -> None:
        first, second = DECAYS
        rate = LEARNING_RATE * np.sqrt(1 - second**steps) / (1 - first**steps)
        for weight, gradient, mean, square in zip(self.weights, gradients, *moments, strict=True):
            mean += (1 - first) * (gradient - mean)
            square += (1 - second) * (gradient * gradient - square)
            weight -= np.float32(rate) * mean / (np.sqrt(square) + EPSILON)


def accuracy(predicted: Matrix, targets: Matrix) -> float:
    """Return the share of rows whose most probable class is correct.

    Both are class probabilities (N, C). Without rows, the result is NaN.
    """
    return float((predicted.argmax(axis=1) == targets.argmax(axis=1)).mean())


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """A softmax regression with the penalty that has the highest ``score``.

    The score is of predicted and true probabilities, ties to low penalties. ``seed`` draws folds.
    """

    name = "logistic"
    score: Score = accuracy
    seed: int = 1

    def fit(self, train: Part, dev: Part | None = None) -> Predictor:
        """Fit the regression with the best penalty, and return its predictor.

        The penalty is chosen by ``dev``, not empty. If that is None, it is chosen by
        cross-validation in ``train``, 2 or more rows, in 10 folds, or one per row if fewer. The
        predictor maps rows (N, D) to probabilities (N, C).
        """
        if dev is not None:
            trials = iter([(train, dev)])
        else:
            count = min(FOLDS, len(train.rows))
            fold = folds(train.targets, count, seed=self.seed)
            trials = ((train.take(fold != part), train.take(fold == part)) for part in range(count))
        scores = [[self._score_of(*trial, penalty) for penalty in PENALTIES] for trial in trials]
        chosen = PENALTIES[int(np.mean(scores, axis=0).argmax())]
        weights = softmax_regression(train, chosen)
        return lambda rows: probabilities(rows, weights)

    def _score_of(self, train: Part, dev: Part, penalty: float) -> float:
        predicted = probabilities(dev.rows, softmax_regression(train, penalty))
        return self.score(predicted, dev.targets)


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """A perceptron of the first of ``shapes`` with the highest ``score``.

    The score is of predicted and true probabilities. ``seed`` draws all random numbers.
    """

    name = "mlp"
    score: Score = accuracy
    seed: int = 1
    shapes: Sequence[Shape] = SHAPES

    def fit(self, train: Part, dev: Part | None = None) -> Predictor:
        """Fit the perceptron of the best shape, and return its predictor.

        The best scores highest on ``dev``, not empty. If that is None, a tenth of ``train``, 2 or
        more rows, is not trained on, but replaces it. The predictor is as in ``Logistic.fit``.
        """
        if dev is None:
            is_dev = folds(train.targets, FOLDS, seed=self.seed) == 0
            train, dev = train.take(~is_dev), train.take(is_dev)
        dims = train.rows.shape[1], train.targets.shape[1]
        networks = [Perceptron(*dims, shape, seed=self.seed) for shape in self.shapes]
        scores = [network.fit(train, dev, self.score) for network in networks]
        return networks[int(np.argmax(scores))].probabilities


Classifier = Logistic | Mlp


def cross_predict(train: Part, classifier: Classifier) -> Matrix:
    """Predict class probabilities, (N, C), of each of 10 folds by the others.

    There are 3 or more rows. The classifier gets no development rows.
    """
    fold = folds(train.targets, FOLDS, seed=classifier.seed)
    predicted = np.empty_like(train.targets)
    for index in range(FOLDS):
        is_held_out = fold == index
        predicted[is_held_out] = classifier.fit(train.take(~is_held_out))(train.rows[is_held_out])
    return predicted


def folds(targets: Matrix, count: int, *, seed: int) -> IntArray:
    """Return the fold of each row, from 0 to ``count`` - 1, int64 (N,).

    ``targets`` are class probabilities (N, C). Rows are shuffled by ``seed``, and dealt by class.
    """
    shuffled = np.random.default_rng(seed).permutation(len(targets))
    order = shuffled[np.argsort(targets[shuffled].argmax(axis=1), kind="stable")]
    fold_numbers = np.empty(len(targets), dtype=np.int64)
    fold_numbers[order] = np.arange(len(targets)) % count
    return fold_numbers


def one_hot(labels: IntArray, classes: int) -> Matrix:
    """Return float32 (N, C), 1 at each row's label, from 0, and 0 elsewhere."""
    return np.eye(classes, dtype=np.float32)[labels]


def root_mean_square(vectors: Matrix) -> np.float32:
    """Return the root mean square of all numbers, or 1 if that is 0."""
    return np.float32(np.sqrt(np.mean(np.square(vectors, dtype=np.float64))) or 1.0)


def pair_features(first: Matrix, second: Matrix, *, both: bool) -> Matrix:
    """Join u and v if ``both``, |u - v| and u * v, as (N, 4 D) or (N, 2 D)."""
    sides = [first, second] if both else []
    return np.hstack([*sides, np.abs(first - second), first * second])


def grade_targets(scores: FloatArray, grades: int) -> Matrix:
    """Spread scores (N,) over the two grades around each, float32 (N, grades).

    Scores are from 1 to ``grades``, which is at least 2. A score y gives floor(y) - y + 1 to the
    grade floor(y), and y - floor(y) to the next (Tai et al. 2015, equation 15).
    """
    low = np.minimum(np.floor(scores), grades - 1).astype(np.int64)
    targets = np.zeros((len(scores), grades), dtype=np.float32)
    rows = np.arange(len(scores))
    targets[rows, low - 1], targets[rows, low] = low - scores + 1, scores - low
    return targets


def expected_grade(distribution: Matrix) -> FloatArray:
    """Return the mean grade, float64 (N,), of probabilities of grades from 1."""
    return distribution.astype(np.float64) @ np.arange(1, distribution.shape[1] + 1)


def grade_correlation(predicted: Matrix, targets: Matrix) -> float:
    """Return Pearson's r of ``expected_grade``, 0 if either side is constant."""
    grades = expected_grade(predicted), expected_grade(targets)
    return float(np.corrcoef(*grades)[0, 1]) if all(side.std() for side in grades) else 0.0
