"""A second score for mined pairs: a logistic model over what is known of each, text included.

It is trained on pairs of which it is known whether they are right, such as known translations that
were planted in corpora, and all else that was mined from these. Axes: ``P`` pairs, ``F`` features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Direction, Pairs
from miner.filters import Suspects, length_odds, shared_and_unmatched_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

FEATURES = (
    *("margin", "cosine", "reciprocal rank", "both directions"),
    *("length odds", "shared numbers", "other numbers"),
)
MAX_NUMBERS = 3  # a table has many, which say no more than some
RIDGE = 1.0  # of standardised features; keeps weights finite where a feature parts all pairs
STEPS = 50


def features(pairs: Pairs, suspects: Suspects) -> FloatArray:
    """Return what the model sees of P pairs: float64 (P, F), in the order of FEATURES.

    ``suspects`` are the same pairs' texts.
    """
    shared, others = shared_and_unmatched_numbers(suspects.source, suspects.target)
    columns = [
        pairs.score,
        pairs.cosine.astype(np.float64),
        1 / pairs.rank,
        (pairs.direction == Direction.BOTH).astype(np.float64),
        length_odds(suspects),
        np.minimum(shared, MAX_NUMBERS),
        np.minimum(others, MAX_NUMBERS),
    ]
    return np.stack(columns, axis=1)


@dataclass(frozen=True, kw_only=True)
class Rescorer:
    """Log odds of being right: ``bias + (features - mean) / scale @ weights``; arrays are (F,)."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: float

    @classmethod
    def trained(cls, known: FloatArray, right: NDArray[np.bool_]) -> Rescorer:
        """Ridge-penalised maximum likelihood, by Newton's method.

        Args:
            known: float64 (P, F), from ``features``.
            right: bool (P,).

        Raises:
            ValueError: all of them are right, or none is.
        """
        if right.all() or not right.any():
            raise ValueError("a model needs both right and wrong pairs; give more known pairs")
        mean, scale = known.mean(axis=0), known.std(axis=0)
        scale[scale == 0] = 1
        inputs = np.column_stack([(known - mean) / scale, np.ones(len(known))])
        penalty = RIDGE * np.eye(inputs.shape[1])
        penalty[-1, -1] = 0  # the bias is free
        weights = np.zeros(inputs.shape[1])
        for _ in range(STEPS):
            chance = 1 / (1 + np.exp(-inputs @ weights))
            slope = inputs.T @ (chance - right) + penalty @ weights
            curvature = (inputs.T * (chance * (1 - chance))) @ inputs + penalty
            weights -= np.linalg.solve(curvature, slope)
        return cls(mean=mean, scale=scale, weights=weights[:-1], bias=float(weights[-1]))

    def scores(self, known: FloatArray) -> FloatArray:
        """Log odds of P pairs: float64 (P,)."""
        odds: FloatArray = (known - self.mean) / self.scale @ self.weights + self.bias
        return odds
