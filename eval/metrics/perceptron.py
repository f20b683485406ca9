"""A multi-layer perceptron on frozen vectors, trained as SentEval does (Conneau & Kiela 2018).

Adam, batches of 64; every 4 epochs the development rows are scored, and training ends when the
score has not risen 5 times; the best weights are kept. Axes: ``N`` rows, ``D`` dim, ``C`` classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eval.metrics.logistic import softmax

Floats = NDArray[np.float32]

BATCH, EPOCHS, PATIENCE, MAX_EPOCHS = 64, 4, 5, 200
RATE, DECAYS, SMALL = 1e-3, (0.9, 0.999), 1e-8  # Adam's (Kingma & Ba 2015)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Widths of the hidden layers, what follows each of them, and how much of it is left out."""

    hidden: Sequence[int]
    activation: str = "sigmoid"
    dropout: float = 0.0


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
    """Hidden layers and a softmax; weights are drawn anew for each seed."""

    def __init__(self, dim: int, classes: int, shape: Shape, *, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._shape = shape
        self._forward, self._slope = ACTIVATIONS[shape.activation]
        widths = [dim, *shape.hidden, classes]
        self.weights: list[Floats] = []
        for before, after in pairwise(widths):
            limit = np.sqrt(6 / (before + after))  # Glorot & Bengio 2010
            drawn = self._random.uniform(-limit, limit, (before, after))
            self.weights += [drawn.astype(np.float32), np.zeros(after, dtype=np.float32)]

    def probabilities(self, rows: Floats) -> Floats:
        """Return the probabilities of the classes of each row: float32 (N, C)."""
        for layer in range(0, len(self.weights) - 2, 2):
            rows = self._forward(rows @ self.weights[layer] + self.weights[layer + 1])
        return softmax(rows @ self.weights[-2] + self.weights[-1])

    def fit(
        self, rows: Floats, targets: Floats, *, score: "Callable[[Perceptron], float]"
    ) -> float:
        """Train until ``score`` rises no more; keep the best weights, and return their score."""
        moments = [[np.zeros_like(one) for one in self.weights] for _ in range(2)]
        best, kept, misses, steps = -np.inf, self.weights, 0, 0
        for epoch in range(1, MAX_EPOCHS + 1):
            order = self._random.permutation(len(rows))
            for start in range(0, len(rows), BATCH):
                some = order[start : start + BATCH]
                steps += 1
                self._update(self.gradients(rows[some], targets[some]), moments, steps)
            if epoch % EPOCHS:
                continue
            found = score(self)
            misses += 1
            if found > best:
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
            there = self._random.random(output.shape, dtype=np.float32) >= self._shape.dropout
            masks.append(there.astype(np.float32) / np.float32(1 - self._shape.dropout))
            outputs.append(output * masks[-1])
        errors = softmax(outputs[-1] @ self.weights[-2] + self.weights[-1]) - targets
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
