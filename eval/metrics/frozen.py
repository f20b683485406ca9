"""Classifiers on frozen vectors: choosing what is not learned, folds, features of pairs.

The protocols are SentEval's (Conneau & Kiela 2018). Vectors are divided by one number, the root
mean square of those that are trained on, so that penalties mean the same to every encoder.
Axes: ``N`` rows, ``D`` dim, ``C`` classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eval.metrics.logistic import probabilities, softmax_regression
from eval.metrics.perceptron import Perceptron, Shape

Floats = NDArray[np.float32]
Predictor = Callable[[Floats], Floats]  # from rows (N, D) to probabilities (N, C)
Score = Callable[[Floats, Floats], float]  # of probabilities and targets, both (N, C)

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 10
HIDDEN, DROPOUTS = (50, 100, 200), (0.0, 0.1, 0.2)
SHAPES = tuple(Shape(hidden=[width], dropout=rate) for width, rate in product(HIDDEN, DROPOUTS))


@dataclass(frozen=True)
class Part:
    """Rows float32 (N, D) and what they should be taken for, distributions float32 (N, C)."""

    rows: Floats
    targets: Floats

    def take(self, chosen: NDArray[np.bool_]) -> "Part":
        """Return some of the rows."""
        return Part(self.rows[chosen], self.targets[chosen])


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
        scores = [
            [self._tried(*both, one) for one in PENALTIES] for both in self._trials(train, dev)
        ]
        chosen = PENALTIES[int(np.mean(scores, axis=0).argmax())]
        weights = softmax_regression(train.rows, train.targets, chosen)
        return lambda rows: probabilities(rows, weights)

    def _trials(self, train: Part, dev: Part | None) -> Iterator[tuple[Part, Part]]:
        """Yield what to fit to, and what to judge the fit by."""
        if dev is not None:
            yield train, dev
            return
        count = min(FOLDS, len(train.rows))
        fold = folds(train.targets, count, seed=self.seed)
        for number in range(count):
            yield train.take(fold != number), train.take(fold == number)

    def _tried(self, train: Part, dev: Part, penalty: float) -> float:
        weights = softmax_regression(train.rows, train.targets, penalty)
        return self.score(probabilities(dev.rows, weights), dev.targets)


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """Perceptrons of some shapes; the one with the best score on the development part."""

    name = "mlp"
    score: Score = accuracy
    seed: int = 1
    shapes: Sequence[Shape] = field(default=SHAPES)

    def fit(self, train: Part, dev: Part | None = None) -> Predictor:
        """Fit; without a development part, one of 10 folds is it."""
        if dev is None:
            out = folds(train.targets, FOLDS, seed=self.seed) == 0
            train, dev = train.take(~out), train.take(out)
        best, chosen = -np.inf, None
        for shape in self.shapes:
            dims = train.rows.shape[1], train.targets.shape[1]
            network = Perceptron(*dims, shape, seed=self.seed)
            found = network.fit(
                train.rows,
                train.targets,
                score=lambda one: self.score(one.probabilities(dev.rows), dev.targets),
            )
            if chosen is None or found > best:
                best, chosen = found, network
        assert chosen is not None
        return chosen.probabilities


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
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(targets))
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
    targets[rows, low - 1] = low - scores + 1
    targets[rows, low] = scores - low
    return targets


def expected_grade(distribution: Floats) -> NDArray[np.float64]:
    """Return the mean grade, from 1, of distributions (N, grades): float64 (N,)."""
    return distribution.astype(np.float64) @ np.arange(1, distribution.shape[1] + 1)


def grade_correlation(found: Floats, targets: Floats) -> float:
    """Return Pearson's r of two mean grades, 0 where one does not vary."""
    grades = expected_grade(found), expected_grade(targets)
    if min(one.std() for one in grades) == 0:
        return 0.0
    return float(np.corrcoef(*grades)[0, 1])
