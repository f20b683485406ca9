"""Columns of stored vectors, each range with a weight: what a pair takes of several encoders'."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Columns(NamedTuple):
    """Columns from ``start`` to ``stop``, and what their numbers are multiplied by."""

    start: int
    stop: int
    weight: float


def take_columns(vectors: NDArray[np.floating], columns: Sequence[Columns]) -> NDArray[np.floating]:
    """Return columns of vectors (N, D) side by side, float32; all as they are if none are named."""
    if not columns:
        return vectors
    parts = [
        vectors[:, start:stop].astype(np.float32) * np.float32(weight)
        for start, stop, weight in columns
    ]
    return np.concatenate(parts, axis=1)
