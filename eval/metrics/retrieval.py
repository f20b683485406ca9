"""Translation retrieval: how often the translation is among the N nearest of some candidates.

P@N of Guo et al. 2018 and Chidambaram et al. 2019, "Learning Cross-Lingual Sentence Representations
via a Multi-task Dual-Encoder Model", section 3.4, who draw 999 other sentences for each query.
Axes: ``N`` sentence pairs, ``D`` dim, ``K`` other sentences drawn.
"""

import numpy as np
from numpy.typing import NDArray

from eval.metrics.word_translation import mean_of_nearest

Matrix = NDArray[np.float32]


DEPTHS = (1, 5, 10)
BLOCK_ROWS = 1024


def translation_ranks(
    source: Matrix, target: Matrix, *, others: int | None, seed: int = 0, csls: bool = False
) -> NDArray[np.int64]:
    """Rank each source's translation among it and other targets: int64 (N,), from 1.

    Row i of one side translates row i of the other. A target as near as the translation stands
    before it if its row is smaller. A zero row is near to nothing: it, and what it translates, come
    last.

    Args:
        source: float32 (N, D), unit or zero rows.
        target: float32 (N + M, D), unit or zero rows, of which the last translate none.
        others: how many other targets are drawn, without replacement, for each source; None takes
            them all.
        seed: of the draws; each source's own draw depends on it and on its row alone.
        csls: near is what CSLS says, not cosine; a target's neighbourhood is among the sources.

    Raises:
        ValueError: there are not that many others.
    """
    if others is not None and others > len(target) - 1:
        raise ValueError(
            f"{others} other sentences cannot be drawn of {len(target) - 1}; ask for fewer or all"
        )
    back = mean_of_nearest(target, source) / 2 if csls else np.float32(0)
    ranks = np.empty(len(source), dtype=np.int64)
    for start in range(0, len(source), BLOCK_ROWS):
        cosines = source[start : start + BLOCK_ROWS] @ target.T - back
        cosines[:, ~target.any(axis=1)] = -np.inf
        for row, near in enumerate(cosines, start):
            drawn = _others(row, len(target), others, seed)
            ahead = (near[drawn] > near[row]) | ((near[drawn] == near[row]) & (drawn < row))
            lost = not source[row].any() or near[row] == -np.inf
            ranks[row] = len(drawn) + 1 if lost else 1 + int(ahead.sum())
    return ranks


def _others(row: int, rows: int, others: int | None, seed: int) -> NDArray[np.int64]:
    """Draw ``others`` rows but ``row``, or return them all."""
    if others is None:
        return np.delete(np.arange(rows), row)
    drawn = np.random.default_rng([seed, row]).choice(rows - 1, size=others, replace=False)
    return drawn + (drawn >= row)
