"""Softmax regression on frozen vectors: many problems on the same rows, solved side by side.

Cross-validation asks for hundreds of fits that differ in which rows they see and how strong the
penalty is; all of them take the same two products with the rows at each step. Minimised is the mean
cross entropy of the rows kept, plus penalty / 2 times the squared weights, the bias apart, by
L-BFGS (Nocedal 1980). Axes: ``P`` problems, ``N`` rows, ``D`` dim, ``C`` classes.
"""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

STEPS = 200
TOLERANCE = 1e-4  # of the largest number in a gradient, whose errors are means of at most 1
MEMORY = 10  # pairs of steps and changes of gradients that L-BFGS keeps
SUFFICIENT = 1e-4  # share of the expected decrease that a step must bring (Armijo)
AT_ONCE = 2**24  # logits of N x P x C held at once: 64 MB


def softmax_regressions(
    rows: Floats, targets: Floats, *, keep: NDArray[np.bool_], penalties: NDArray[np.float64]
) -> Floats:
    """Fit P regressions: float32 (P, D + 1, C), the biases last.

    Args:
        rows: float32 (N, D).
        targets: float32 (N, C), each row a distribution over the classes.
        keep: bool (P, N), the rows of each problem; at least one.
        penalties: float64 (P,).
    """
    ones = np.hstack([rows, np.ones((len(rows), 1), dtype=np.float32)])
    group = max(1, AT_ONCE // targets.size)
    parts = [
        _solve(ones, targets, keep[first : first + group], penalties[first : first + group])
        for first in range(0, len(keep), group)
    ]
    return np.concatenate(parts)


def probabilities(rows: Floats, weights: Floats) -> Floats:
    """Return the probabilities that a fit (D + 1, C) gives the classes of each row: (N, C)."""
    return softmax(rows @ weights[:-1] + weights[-1])


def softmax(logits: Floats) -> Floats:
    """Normalise along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return found


def _solve(
    rows: Floats, targets: Floats, keep: NDArray[np.bool_], penalties: NDArray[np.float64]
) -> Floats:
    shape = len(keep), rows.shape[1], targets.shape[1]
    weight = np.ascontiguousarray((keep / keep.sum(axis=1, keepdims=True)).T, dtype=np.float32)
    decay = np.repeat(penalties.astype(np.float32)[:, None], rows.shape[1], axis=1)[:, :, None]
    decay[:, -1] = 0  # the bias

    def objective(flat: Floats) -> tuple[NDArray[np.float64], Floats]:
        """Return the values (P,) and the gradients (P, (D + 1) C)."""
        current = flat.reshape(shape)
        logits = (rows @ current.transpose(1, 0, 2).reshape(shape[1], -1)).reshape(-1, *shape[::2])
        logits -= logits.max(axis=2, keepdims=True)
        errors = np.exp(logits)
        sums = errors.sum(axis=2)
        loss = np.log(sums) - np.einsum("npc,nc->np", logits, targets)
        value = np.einsum("np,np->p", loss, weight, dtype=np.float64)
        errors /= sums[:, :, None]
        errors -= targets[:, None]
        errors *= weight[:, :, None]
        slopes = (rows.T @ errors.reshape(len(rows), -1)).reshape(shape[1], *shape[::2])
        gradient = slopes.transpose(1, 0, 2) + decay * current
        value += (decay * current**2).sum(axis=(1, 2), dtype=np.float64) / 2
        return value, gradient.reshape(len(flat), -1)

    return _minimised(objective, np.zeros((shape[0], shape[1] * shape[2]), np.float32)).reshape(
        shape
    )


def _minimised(
    objective: Callable[[Floats], tuple[NDArray[np.float64], Floats]], point: Floats
) -> Floats:
    """Minimise P functions side by side, from ``point`` (P, W) on, each with a step of its own."""
    value, gradient = objective(point)
    kept: deque[tuple[Floats, Floats, Floats]] = deque(maxlen=MEMORY)
    for _ in range(STEPS):
        done = np.abs(gradient).max(axis=1) < TOLERANCE
        if done.all():
            break
        direction = -_newton(gradient, kept)
        direction[done] = 0
        slope = _dots(direction, gradient)
        step = np.ones(len(point), dtype=np.float32)
        if not kept:
            step = 1 / np.maximum(1, np.linalg.norm(direction, axis=1))
        while True:
            trial = point + step[:, None] * direction
            found, there = objective(trial)
            # What float32 cannot tell from no change is as good as a decrease.
            allowed = value + SUFFICIENT * step * slope + 1e-6 * np.abs(value)
            missed = (found > allowed) & (step > 1e-4)
            if not missed.any():
                break
            step[missed] /= 2
        moved, changed = trial - point, there - gradient
        curvature = _dots(moved, changed)
        inverse = np.divide(1, curvature, out=np.zeros_like(curvature), where=curvature > 1e-12)
        kept.append((moved, changed, inverse))
        point, value, gradient = trial, found, there
    return point


def _newton(gradient: Floats, kept: deque[tuple[Floats, Floats, Floats]]) -> Floats:
    """Multiply the gradients by the inverse Hessians that the last steps imply (two loops)."""
    found = gradient.copy()
    shares = []
    for moved, changed, inverse in reversed(kept):
        shares.append(inverse * _dots(moved, found))
        found -= shares[-1][:, None] * changed
    if kept:
        _, changed, inverse = kept[-1]
        length = _dots(changed, changed) * inverse
        found /= np.where(length > 0, length, 1)[:, None]
    for (moved, changed, inverse), share in zip(kept, reversed(shares), strict=True):
        found += (share - inverse * _dots(changed, found))[:, None] * moved
    return found


def _dots(a: Floats, b: Floats) -> Floats:
    found: Floats = np.einsum("pw,pw->p", a, b)
    return found
