"""Word translation: the rank of the first right translation, by cosine and by CSLS.

Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.3. Axes: ``Q`` queries,
``S`` source words, ``T`` target words, ``D`` dim.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

NEIGHBOURS = 10  # of the mean similarities that CSLS subtracts
BLOCK = 256  # rows of a product held at once
METHODS = ("NN", "CSLS")


def translation_ranks(
    queries: Floats, targets: Floats, sources: Floats, gold: Sequence[Collection[int]]
) -> dict[str, NDArray[np.int64]]:
    """Return the rank, from 1, of the best right target of each query: int64 (Q,) by method.

    Targets that score as high as the right one count as before it.

    Args:
        queries: float32 (Q, D), unit or zero rows, as the others.
        targets: float32 (T, D).
        sources: float32 (S, D), all source words, for the neighbourhoods of targets.
        gold: the rows of the right targets of each query.
    """
    back = mean_of_nearest(targets, sources)
    ranks = {method: np.empty(len(queries), dtype=np.int64) for method in METHODS}
    for start in range(0, len(queries), BLOCK):
        cosines = queries[start : start + BLOCK] @ targets.T
        # A query's own neighbourhood shifts all its targets alike, and so changes no rank.
        for method, scores in (("NN", cosines), ("CSLS", 2 * cosines - back)):
            for row, line in enumerate(scores):
                best = line[list(gold[start + row])].max()
                ranks[method][start + row] = np.count_nonzero(line >= best)
    return ranks


def mean_of_nearest(rows: Floats, others: Floats) -> Floats:
    """Return the mean cosine of each row to its nearest rows among others: float32 (N,)."""
    count = min(NEIGHBOURS, len(others))
    found = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        cosines = rows[start : start + BLOCK] @ others.T
        nearest = np.partition(cosines, -count, axis=1)[:, -count:]
        found[start : start + BLOCK] = nearest.mean(axis=1)
    return found
