"""Classifiers on frozen vectors: choosing what is not learned, folds, features of pairs.

The protocols are SentEval's (Conneau & Kiela 2018). Vectors are divided by one number, the root
mean square of those that are trained on, so that penalties mean the same to every encoder.
Axes: ``N`` rows, ``D`` dim, ``C`` classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Predictor = Callable[[Floats], Floats]  # from rows (N, D) to probabilities (N, C)
Score = Callable[[Floats, Floats], float]  # of probabilities and targets, both (N, C)

STEPS = 200
TOLERANCE = 1e-5  # of the largest number in a gradient, whose errors are means of at most 1
BATCH, EPOCHS, PATIENCE, MAX_EPOCHS = 64, 4, 5, 200
RATE, DECAYS, SMALL = 1e-3, (0.9, 0.999), 1e-8  # Adam's (Kingma & Ba 2015)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 10


@dataclass(frozen=True)
class Part:
    """Rows float32 (N, D) and what they should be taken for, distributions float32 (N, C)."""

    rows: Floats
    targets: Floats

    def take(self, chosen: NDArray[np.bool_]) -> "Part":
        """Return some of the rows."""
        return Part(self.rows[chosen], self.targets[chosen])


def softmax_regression(train: Part, penalty: float) -> Floats:
    """Fit a softmax regression: float32 (D + 1, C), the biases last.

    Minimised is the mean cross entropy of the rows, plus penalty / 2 times the squared weights, the
    bias apart, by SciPy's L-BFGS.
    """
    from scipy.optimize import minimize

    rows, targets = train.rows, train.targets
    shape = rows.shape[1] + 1, targets.shape[1]

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(shape)
        near = weights.astype(np.float32)
        errors = rows @ near[:-1] + near[-1]
        errors -= errors.max(axis=1, keepdims=True)
        right = np.einsum("nc,nc->n", errors, targets)
        np.exp(errors, out=errors)
        sums = errors.sum(axis=1, keepdims=True)
        value = (np.log(sums[:, 0]) - right).mean(dtype=np.float64)
        errors = (errors / sums - targets) / np.float32(len(rows))
        gradient = np.vstack([rows.T @ errors, errors.sum(axis=0)]).astype(np.float64)
        gradient[:-1] += penalty * weights[:-1]
        return value + penalty / 2 * np.square(weights[:-1]).sum(), gradient.ravel()

    options = {"maxiter": STEPS, "gtol": TOLERANCE, "ftol": 0.0}
    start = np.zeros(shape).ravel()
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    weights: Floats = found.x.reshape(shape).astype(np.float32)
    return weights


def probabilities(rows: Floats, weights: Floats) -> Floats:
    """Return the probabilities that a fit (D + 1, C) gives the classes of each row: (N, C)."""
    return _softmax(rows @ weights[:-1] + weights[-1])


def _softmax(logits: Floats) -> Floats:
    powers: Floats = np.exp(logits - logits.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Widths of the hidden layers, what follows each of them, and how much of it is left out."""

    hidden: Sequence[int]
    activation: str = "sigmoid"
    dropout: float = 0.0


WIDTHS, DROPOUTS = (50, 100, 200), (0.0, 0.1, 0.2)
SHAPES = tuple(Shape(hidden=[width], dropout=rate) for width in WIDTHS for rate in DROPOUTS)


def _sigmoid(x: Floats) -> Floats:
    half = np.float32(0.5)
    found: Floats = half * np.tanh(half * x) + half  # which overflows nowhere
    return found


# Each with its derivative, by what it has returned.
ACTIVATIONS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "sigmoid": (_sigmoid, lambda y: y * (1 - y)),
    "tanh": (np.tanh, lambda y: 1 - y * y),
}


class Perceptron:
    """Hidden layers and a softmax, trained as SentEval does; weights are drawn for each seed.

    By Adam, in batches of 64; every 4 epochs the development rows are scored, and training ends
    when the score has not risen 5 times; the best weights are kept.
    """

    def __init__(self, dim: int, classes: int, shape: Shape, *, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._dropout = shape.dropout
        self._forward, self._slope = ACTIVATIONS[shape.activation]
        self.weights: list[Floats] = []
        for before, after in pairwise([dim, *shape.hidden, classes]):
            limit = np.sqrt(6 / (before + after))  # Glorot & Bengio 2010
            drawn = self._random.uniform(-limit, limit, (before, after))
            self.weights += [drawn.astype(np.float32), np.zeros(after, dtype=np.float32)]

    def probabilities(self, rows: Floats) -> Floats:
        """Return the probabilities of the classes of each row: float32 (N, C)."""
        for layer in range(0, len(self.weights) - 2, 2):
            rows = self._forward(rows @ self.weights[layer] + self.weights[layer + 1])
        return _softmax(rows @ self.weights[-2] + self.weights[-1])

    def fit(self, train: Part, dev: Part, score: Score) -> float:
        """Train until the score of ``dev`` rises no more; keep the best weights, and return it."""
        moments = [[np.zeros_like(one) for one in self.weights] for _ in range(2)]
        best, kept, misses, steps = -np.inf, self.weights, 0, 0
        for epoch in range(1, MAX_EPOCHS + 1):
            order = self._random.permutation(len(train.rows))
            for start in range(0, len(order), BATCH):
                some = order[start : start + BATCH]
                steps += 1
                self._update(self.gradients(train.rows[some], train.targets[some]), moments, steps)
            if epoch % EPOCHS:
                continue
            misses += 1
            if (found := score(self.probabilities(dev.rows), dev.targets)) > best:
                best, kept, misses = found, [one.copy() for one in self.weights], 0
            if misses == PATIENCE:
                break
        self.weights = kept
        return best

    def gradients(self, rows: Floats, targets: Floats) -> list[Floats]:
        """Return the gradients of the mean cross entropy by all weights, with dropout."""
        outputs, masks = [rows], []
        for layer in range(0, len(self.weights) - 2, 2):
            output = self._forward(outputs[-1] @ self.weights[layer] + self.weights[layer + 1])
            there = self._random.random(output.shape, dtype=np.float32) >= self._dropout
            masks.append(there.astype(np.float32) / np.float32(1 - self._dropout))
            outputs.append(output * masks[-1])
        errors = _softmax(outputs[-1] @ self.weights[-2] + self.weights[-1]) - targets
        errors /= len(rows)
        found: list[Floats] = []
        for layer in range(len(self.weights) - 2, -1, -2):
            before = outputs[layer // 2]
            found = [before.T @ errors, errors.sum(axis=0), *found]
            if layer:
                mask = masks[layer // 2 - 1]
                kept = np.divide(before, mask, out=np.zeros_like(before), where=mask > 0)
                errors = (errors @ self.weights[layer].T) * mask * self._slope(kept)
        return found

    def _update(self, gradients: list[Floats], moments: list[list[Floats]], steps: int) -> None:
        first, second = DECAYS
        rate = RATE * np.sqrt(1 - second**steps) / (1 - first**steps)
        for weight, gradient, mean, square in zip(self.weights, gradients, *moments, strict=True):
            mean += (1 - first) * (gradient - mean)
            square += (1 - second) * (gradient * gradient - square)
            weight -= np.float32(rate) * mean / (np.sqrt(square) + SMALL)


def accuracy(found: Floats, targets: Floats) -> float:
    """Return the share of rows whose most probable class is the right one."""
    return float((found.argmax(axis=1) == targets.argmax(axis=1)).mean())


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """Softmax regression; the penalty with the best score on the development part, or in folds."""

    name = "logistic"
    score: Score = accuracy
    seed: int = 1

    def fit(self, train: Part, dev: Part | None = None) -> Predictor:
        """Fit; without a development part, by cross-validation in up to 10 folds."""
        if dev is not None:
            trials = iter([(train, dev)])
        else:
            count = min(FOLDS, len(train.rows))
            fold = folds(train.targets, count, seed=self.seed)
            trials = ((train.take(fold != part), train.take(fold == part)) for part in range(count))
        scores = [[self._tried(*trial, penalty) for penalty in PENALTIES] for trial in trials]
        chosen = PENALTIES[int(np.mean(scores, axis=0).argmax())]
        weights = softmax_regression(train, chosen)
        return lambda rows: probabilities(rows, weights)

    def _tried(self, some: Part, out: Part, penalty: float) -> float:
        found = probabilities(out.rows, softmax_regression(some, penalty))
        return self.score(found, out.targets)


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """Perceptrons of some shapes; the one with the best score on the development part."""

    name = "mlp"
    score: Score = accuracy
    seed: int = 1
    shapes: Sequence[Shape] = SHAPES

    def fit(self, train: Part, dev: Part | None = None) -> Predictor:
        """Fit; without a development part, one of 10 folds is it."""
        if dev is None:
            out = folds(train.targets, FOLDS, seed=self.seed) == 0
            train, dev = train.take(~out), train.take(out)
        dims = train.rows.shape[1], train.targets.shape[1]
        networks = [Perceptron(*dims, shape, seed=self.seed) for shape in self.shapes]
        scores = [network.fit(train, dev, self.score) for network in networks]
        return networks[int(np.argmax(scores))].probabilities


Classifier = Logistic | Mlp


def nested(train: Part, classifier: Classifier) -> Floats:
    """Return the probabilities (N, C) that each row gets from a fit to the other nine folds."""
    fold = folds(train.targets, FOLDS, seed=classifier.seed)
    found = np.empty_like(train.targets)
    for number in range(FOLDS):
        out = fold == number
        found[out] = classifier.fit(train.take(~out))(train.rows[out])
    return found


def folds(targets: Floats, count: int, *, seed: int) -> NDArray[np.int64]:
    """Deal the rows, shuffled, class by class into folds: int64 (N,), 0 to count - 1."""
    shuffled = np.random.default_rng(seed).permutation(len(targets))
    order = shuffled[np.argsort(targets[shuffled].argmax(axis=1), kind="stable")]
    found = np.empty(len(targets), dtype=np.int64)
    found[order] = np.arange(len(targets)) % count
    return found


def one_hot(labels: NDArray[np.int64], classes: int) -> Floats:
    """Return distributions float32 (N, C) that are certain of labels int64 (N,)."""
    return np.eye(classes, dtype=np.float32)[labels]


def root_mean_square(vectors: Floats) -> np.float32:
    """Return what vectors are divided by; 1 where all are zero."""
    return np.float32(np.sqrt(np.mean(np.square(vectors, dtype=np.float64))) or 1.0)


def pair_features(first: Floats, second: Floats, *, both: bool) -> Floats:
    """Return |u - v| and u * v of rows (N, D): (N, 2 D); with ``both``, after u and v: (N, 4 D)."""
    sides = [first, second] if both else []
    return np.hstack([*sides, np.abs(first - second), first * second])


def grade_targets(scores: NDArray[np.float64], grades: int) -> Floats:
    """Spread scores y from 1 to ``grades`` over the two grades around them: float32 (N, grades).

    The grade floor(y) gets floor(y) - y + 1, the one above it y - floor(y) (Tai et al. 2015,
    equation 15).
    """
    low = np.minimum(np.floor(scores), grades - 1).astype(np.int64)
    targets = np.zeros((len(scores), grades), dtype=np.float32)
    rows = np.arange(len(scores))
    targets[rows, low - 1], targets[rows, low] = low - scores + 1, scores - low
    return targets


def expected_grade(distribution: Floats) -> NDArray[np.float64]:
    """Return the mean grade, from 1, of distributions (N, grades): float64 (N,)."""
    return distribution.astype(np.float64) @ np.arange(1, distribution.shape[1] + 1)


def grade_correlation(found: Floats, targets: Floats) -> float:
    """Return Pearson's r of two mean grades, 0 where one does not vary."""
    grades = expected_grade(found), expected_grade(targets)
    return float(np.corrcoef(*grades)[0, 1]) if all(one.std() for one in grades) else 0.0
