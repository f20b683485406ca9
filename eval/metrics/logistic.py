"""Softmax regression on frozen vectors.

Minimised is the mean cross entropy of the rows, plus penalty / 2 times the squared weights, the
bias apart, by SciPy's L-BFGS. Axes: ``N`` rows, ``D`` dim, ``C`` classes.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

STEPS = 200
TOLERANCE = 1e-5  # of the largest number in a gradient, whose errors are means of at most 1


def softmax_regression(rows: Floats, targets: Floats, penalty: float) -> Floats:
    """Fit a regression: float32 (D + 1, C), the biases last.

    Args:
        rows: float32 (N, D).
        targets: float32 (N, C), each row a distribution over the classes.
        penalty: of the squared weights.
    """
    from scipy.optimize import minimize

    shape = rows.shape[1] + 1, targets.shape[1]

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the value and the gradient ((D + 1) C,)."""
        weights = flat.reshape(shape)
        errors = _logits(rows, weights.astype(np.float32))
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
    found = minimize(
        objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options
    )
    weights: Floats = found.x.reshape(shape).astype(np.float32)
    return weights


def probabilities(rows: Floats, weights: Floats) -> Floats:
    """Return the probabilities that a fit (D + 1, C) gives the classes of each row: (N, C)."""
    return softmax(_logits(rows, weights))


def softmax(logits: Floats) -> Floats:
    """Normalise along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return found


def _logits(rows: Floats, weights: Floats) -> Floats:
    logits: Floats = rows @ weights[:-1] + weights[-1]
    return logits
