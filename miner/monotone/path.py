"""The inner loop of monotone alignment, compiled by Numba: the cheapest path through a band.

Compiled when first called (a few seconds) and kept in Numba's cache on disk.
"""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

_compile = compiled(fastmath={"contract", "reassoc"})
_part = compiled_part(fastmath={"contract", "reassoc"})

# Chosen on Bleualign's development part and held against merged NTREX lines of five pairs of
# languages (docs/results-documents.md): strict F1 changes by less than .02 around each.
MERGE = 0.1  # for each sentence beyond 1-1, so that what fits as two beads is not made one
SMOOTHING = 0.1  # of lengths, in sentences of the usual length


def dissimilarity(cosine: Any, noise: Any, length: Any, other: Any, weight: Any) -> Any:
    """Return how unlike two blocks are: about 1 and more for random ones.

    ``noise`` is the sum of what 1 - cosine is on average between each block and others; ``length``
    and ``other`` are theirs in sentences of the usual length, whose ratio has the ``weight``.
    """
    distance = 2 * (1 - np.minimum(cosine, 1)) / (noise + 1e-6)
    return distance + weight * np.abs(np.log((length + SMOOTHING) / (other + SMOOTHING)))


_dissimilarity = _part(dissimilarity)


@_part
def _dot(vector: Any, other: Any) -> Any:
    """Return the product of two vectors; for NumPy's own, Numba needs SciPy."""
    total = np.float32(0)
    for place in range(len(vector)):
        total += vector[place] * other[place]
    return total


@_compile
def cheapest_path(
    vectors: Any, noises: Any, ends: Any, beads: Any, gap: Any, weight: Any, band: Any
) -> Any:
    """Find the cheapest way from (0, 0) to (N, M) by beads within a band.

    Args:
        vectors: of the source's and the target's blocks, float32 (A, N, D) and (B, M, D).
        noises: mean of 1 - cosine between a block and all of the other side, (A, N) and (B, M).
        ends: lengths of the sentences before each, in usual sentences, (N + 1,) and (M + 1,).
        beads: sizes of the beads, int64 (K, 2), with (1, 0) and (0, 1) as the first two.
        gap: cost of a sentence of the usual length that nothing is aligned with.
        weight: of the lengths' ratio.
        band: the first column of each row, and the column after its last: int64 (N + 1,),
            ascending; no row is empty, and rows overlap.

    Returns:
        The beads of the path as row and column after each, int64 (P, 2), and their costs.
    """
    (source, target), (source_noise, target_noise) = vectors, noises
    (source_ends, target_ends), (low, high) = ends, band
    rows = len(low)
    starts = np.zeros(rows + 1, dtype=np.int64)
    starts[1:] = np.cumsum(high - low)
    best, back = np.full(starts[-1], np.inf), np.full(starts[-1], -1, dtype=np.int8)
    for i in range(rows):
        for j in range(low[i], high[i]):
            cell = starts[i] + j - low[i]
            if i == 0 and j == 0:
                best[cell] = 0
            for k in range(len(beads)):
                a, b = beads[k]
                if i < a or j - b < low[i - a] or j - b >= high[i - a]:
                    continue
                before = best[starts[i - a] + j - b - low[i - a]]
                if before >= best[cell]:
                    continue
                length = source_ends[i] - source_ends[i - a]
                other = target_ends[j] - target_ends[j - b]
                if a == 0 or b == 0:
                    cost = gap * np.sqrt(length + other)
                else:
                    cosine = _dot(source[a - 1, i - a], target[b - 1, j - b])
                    noise = source_noise[a - 1, i - a] + target_noise[b - 1, j - b]
                    cost = _dissimilarity(cosine, noise, length, other, weight)
                    cost *= np.sqrt(a * b * (length + other) / 2)
                    cost += MERGE * (a + b - 2)
                if before + cost < best[cell]:
                    best[cell] = before + cost
                    back[cell] = k
    return _walked(best, back, starts, low, beads)


@_part
def _walked(best: Any, back: Any, starts: Any, low: Any, beads: Any) -> Any:
    """Return the path's beads from the first to the last, and their costs."""
    i = len(low) - 1
    cell = starts[i + 1] - 1
    j = low[i] + cell - starts[i]
    ends, costs = np.empty((i + j, 2), dtype=np.int64), np.empty(i + j)
    count = 0
    while i > 0 or j > 0:
        ends[count], costs[count] = (i, j), best[cell]
        a, b = beads[back[cell]]
        i, j = i - a, j - b
        cell = starts[i] + j - low[i]
        costs[count] -= best[cell]
        count += 1
    return ends[:count][::-1].copy(), costs[:count][::-1].copy()
