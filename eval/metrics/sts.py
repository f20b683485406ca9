"""Semantic textual similarity: do people and vectors agree on how alike two sentences are?

Pearson's r between scores of people and the angular similarity of the vectors, 1 - arccos(cos) / pi
(Cer et al. 2018, "Universal Sentence Encoder", equation 1; Chidambaram et al. 2019, section 3.5).
Axes: ``P`` pairs, ``D`` dim, ``R`` resamples.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eval.data.textfiles import read_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


def read_scored_pairs(path: Path) -> tuple[FloatArray, list[str], list[str]]:
    """Read ``SCORE TAB sentence TAB sentence`` lines.

    Raises:
        ValueError: another line, or fewer than two different scores, with which nothing correlates.
    """
    scores: list[float] = []
    firsts: list[str] = []
    seconds: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split("\t")
        try:
            text, first, second = fields
            score = float(text)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise ValueError(
                f"{path} line {number}: expected SCORE TAB sentence TAB sentence, not {line[:60]!r}"
            )
        scores.append(score)
        firsts.append(first)
        seconds.append(second)
    if len(set(scores)) < 2:
        raise ValueError(f"{path}: {len(set(scores))} different scores; at least 2 are needed")
    return np.array(scores), firsts, seconds


def angular_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> FloatArray:
    """1 - angle / pi of the rows of two float32 (P, D) of unit rows: float64 (P,), 0 to 1.

    A zero row is at a right angle to everything.
    """
    cosines = np.einsum("pd,pd->p", first.astype(np.float64), second.astype(np.float64))
    similarity: FloatArray = 1 - np.arccos(np.clip(cosines, -1, 1)) / np.pi
    return similarity


def moments(x: FloatArray, y: FloatArray) -> FloatArray:
    """What ``pearson`` needs of each pair: float64 (P, 6), taken about the means of all."""
    a, b = x - x.mean(), y - y.mean()
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b], axis=1)


def pearson(sums: FloatArray) -> FloatArray:
    """Pearson's r from sums (R, 6) of ``moments``: float64 (R,), 0 where a side does not vary."""
    n, a, b, aa, bb, ab = sums.T
    below = np.sqrt(np.maximum(n * aa - a * a, 0) * np.maximum(n * bb - b * b, 0))
    r: FloatArray = np.divide(n * ab - a * b, below, out=np.zeros_like(below), where=below > 0)
    return r
