"""Find the cheapest path of an alignment, in loops compiled by Numba."""

from typing import Any

import numpy as np

from miner.compiling import compiled, compiled_part

_compile = compiled(fastmath={"contract", "reassoc"})
_part = compiled_part(fastmath={"contract", "reassoc"})

# Tuned on Bleualign's development part, and on NTREX lines that were merged and mixed with lines
# without translation, in six language pairs (docs/results-documents.md). All optima are flat.
COUNT_POWER, LENGTH_POWER = 0.45, 0.65  # of a bead's cost
SMOOTHING = 0.1  # of lengths, in typical sentences


def dissimilarity(cosine: Any, noise: Any, length: Any, other: Any, weight: Any) -> Any:
    """Return the dissimilarity of two blocks, about 1 for random blocks.

    ``noise`` is the sum of both blocks' mean 1 - cosine to the other document, and ``weight`` the
    factor of the absolute log of the ratio of their lengths, ``length`` and ``other``, in typical
    sentences. Arguments are numbers or arrays of one shape, which the result has.
    """
    distance = 2 * (1 - np.minimum(cosine, 1)) / (noise + 1e-6)
    return distance + weight * np.abs(np.log((length + SMOOTHING) / (other + SMOOTHING)))


_dissimilarity = _part(dissimilarity)


@_part
def _dot(vector: Any, other: Any) -> Any:
    """Multiply two vectors, because NumPy's product needs SciPy in Numba."""
    total = np.float32(0)
    for dimension in range(len(vector)):
        total += vector[dimension] * other[dimension]
    return total


@_part
def _bead_cost(
    cosine: Any, noise: Any, length: Any, other: Any, weight: Any, merge: Any, a: Any, b: Any
) -> Any:
    cost = _dissimilarity(cosine, noise, length, other, weight)
    cost *= (a * b) ** COUNT_POWER * ((length + other) / 2) ** LENGTH_POWER
    return cost + merge * (a + b - 2)


@_part
def _longer(gap: Any, size: Any, before: Any, opening: Any, sentence: Any) -> Any:
    """Return cost and size of a gap with one more sentence, or of a new one."""
    if before + opening < gap:
        return before + opening + sentence, 1
    return gap + sentence, size + 1


@_part
def _reach(best: Any, back: Any, cell: Any, cost: Any, step: Any) -> None:
    if cost < best[cell]:
        best[cell], back[cell] = cost, step


@_compile
def cheapest_path(
    vectors: Any, noises: Any, ends: Any, beads: Any, gap: Any, merge: Any, weight: Any, band: Any
) -> Any:
    """Find the cheapest path from (0, 0) to (N, M) within a band.

    Steps are beads, and gaps of any number of unaligned sentences of one side. A gap's cost is
    affine, as in Gotoh 1982, "An Improved Algorithm for Matching Biological Sequences". Returns the
    row and column after each of S steps, int64 (S, 2), and their costs, float64 (S,). In these, a
    gap is a step per sentence, with equal costs.

    Args:
        vectors: vectors of the source's and the target's blocks, float32 (A, N, D) and (B, M, D).
        noises: mean of 1 - cosine between a block and all of the other side, (A, N) and (B, M).
        ends: summed lengths before each position, in typical sentences, (N + 1,) and (M + 1,).
        beads: numbers of source and target sentences of K kinds of beads, int64 (K, 2).
        gap: cost of opening a gap, and factor of the root of each length in it, two floats.
        merge: cost per sentence of a bead beyond 1-1.
        weight: weight of the lengths' ratio.
        band: first columns of all rows, from 0, and columns after the last, to M + 1: two int64
            (N + 1,), ascending; no row is empty, and consecutive rows overlap.
    """
    (source, target), (source_noise, target_noise) = vectors, noises
    (source_ends, target_ends), (low, high), (opening, missing) = ends, band, gap
    rows = len(low)
    starts = np.zeros(rows + 1, dtype=np.int64)
    starts[1:] = np.cumsum(high - low)
    # The last step to a cell: an index of ``beads``, or -2 n or -2 n - 1 for a gap of n sentences.
    best, back = np.full(starts[-1], np.inf), np.zeros(starts[-1], dtype=np.int32)
    best[0] = 0
    # The cheapest gaps that end in a cell, per column of the source's, and of the target's.
    down, down_size = np.full(len(target_ends), np.inf), np.zeros(len(target_ends), dtype=np.int32)
    for i in range(rows):
        right, right_size = np.inf, 0
        for j in range(low[i], high[i]):
            cell = starts[i] + j - low[i]
            if i > 0 and low[i - 1] <= j < high[i - 1]:
                before = best[starts[i - 1] + j - low[i - 1]]
                cost = missing * np.sqrt(source_ends[i] - source_ends[i - 1])
                down[j], down_size[j] = _longer(down[j], down_size[j], before, opening, cost)
                _reach(best, back, cell, down[j], -2 * down_size[j])
            if j > low[i]:
                cost = missing * np.sqrt(target_ends[j] - target_ends[j - 1])
                right, right_size = _longer(right, right_size, best[cell - 1], opening, cost)
                _reach(best, back, cell, right, -2 * right_size - 1)
            for k in range(len(beads)):
                a, b = beads[k]
                if i < a or j - b < low[i - a] or j - b >= high[i - a]:
                    continue
                before = best[starts[i - a] + j - b - low[i - a]]
                if before >= best[cell]:
                    continue
                length = source_ends[i] - source_ends[i - a]
                other = target_ends[j] - target_ends[j - b]
                cosine = _dot(source[a - 1, i - a], target[b - 1, j - b])
                noise = source_noise[a - 1, i - a] + target_noise[b - 1, j - b]
                cost = _bead_cost(cosine, noise, length, other, weight, merge, a, b)
                _reach(best, back, cell, before + cost, k)
    return _walked(best, back, starts, low, beads)


@_part
def _walked(best: Any, back: Any, starts: Any, low: Any, beads: Any) -> Any:
    i = len(low) - 1
    cell = starts[i + 1] - 1
    j = low[i] + cell - starts[i]
    ends, costs = np.empty((i + j, 2), dtype=np.int64), np.empty(i + j)
    count = 0
    while i > 0 or j > 0:
        total, a, b, times = best[cell], 1, 0, 1
        if back[cell] >= 0:
            a, b = beads[back[cell]]
        else:
            times = -back[cell] // 2
            if back[cell] % 2:
                a, b = 0, 1
        first = count
        for _ in range(times):
            ends[count] = i, j
            i, j, count = i - a, j - b, count + 1
        cell = starts[i] + j - low[i]
        costs[first:count] = (total - best[cell]) / times
    return ends[:count][::-1].copy(), costs[:count][::-1].copy()
