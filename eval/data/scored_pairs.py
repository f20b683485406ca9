"""Read pairs of sentences that people have scored by how alike they are."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.data.textfiles import read_lines


def read_scored_pairs(path: Path) -> tuple[NDArray[np.float64], list[str], list[str]]:
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
