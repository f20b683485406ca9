"""Monotone alignment of a document and its translation, from coarse to fine.

After Thompson & Koehn 2019, "Vecalign: Improved Sentence Alignment in Linear Time and Space":
dynamic programming over the vectors of blocks of sentences, whose distances are divided by those
of random blocks, on documents that are halved until they are short; each alignment bounds the
next finer one. What is added here is the ratio of lengths, as in Gale & Church 1993, and that long
sentences count more than short ones. Axes: ``N`` source and ``M`` target sentences, ``B`` beads.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from miner.arrays import FloatArray, IntArray, Matrix
from miner.monotone.blocks import Blocks
from miner.monotone.path import cheapest_path, dissimilarity

LENGTH_WEIGHT = 0.65  # of the ratio of lengths against the vectors' distance
GAP_QUANTILE = 0.2  # of what random 1-1 beads cost, by which gaps are measured; the paper's
GAP = 0.43  # of that, for each sentence: two without a translation cost less than as one bead
OPENING = 0.1  # cost of a gap, before any is counted
OPENING_WEIGHT = 0.17  # of the log odds against a gap
MERGE = 0.1  # cost of each sentence beyond 1-1, before any merged bead is counted
MERGE_WEIGHT = 0.12  # of the log odds against a merged bead
PRIOR = (1, 10)  # gaps or merged beads, among so many beads, added to the counted ones
SAMPLED_BEADS = 10_000
FULL_CELLS = 1 << 22  # a table of so many cells is searched in full: 2048 x 2048 sentences
MARGIN = 15  # cells on either side of a coarser path


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """B beads in order, which hold every sentence of both documents once.

    Bead b has the source sentences ``source[b]`` to ``source[b + 1] - 1`` and the target's
    likewise: int64 (B + 1,). One side of it may be empty. ``costs``, float64 (B,), are low where
    both sides are alike.
    """

    source: IntArray
    target: IntArray
    costs: FloatArray

    def beads(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return the positions of the source and of the target sentences of each bead."""
        sides = (itertools.pairwise(side.tolist()) for side in (self.source, self.target))
        return [
            (tuple(range(*own)), tuple(range(*other))) for own, other in zip(*sides, strict=True)
        ]


def align(source: Blocks, target: Blocks) -> Alignment:
    """Align two documents; time and memory grow with N + M.

    Raises:
        ValueError: a document has no sentence, or their vectors differ in dimensions.
    """
    if not len(source) or not len(target):
        raise ValueError("a document without sentences cannot be aligned")
    dims = source.vectors.shape[2], target.vectors.shape[2]
    if dims[0] != dims[1]:
        raise ValueError(
            f"vectors of {dims[0]} and {dims[1]} dimensions; encode both documents with one encoder"
        )
    levels = [(source, target)]
    while len(levels[-1][0]) * len(levels[-1][1]) > FULL_CELLS:
        levels.append((levels[-1][0].halved(), levels[-1][1].halved()))
    found = _align(*levels[-1])
    found = _align(*levels.pop(), (found.source, found.target))
    for finer, other in reversed(levels):
        rows, columns = np.minimum(2 * found.source, len(finer)), 2 * found.target
        found = _align(finer, other, (rows, np.minimum(columns, len(other))))
    for _ in range(2):  # the counts of the first are of a path whose merges cost the same anywhere
        found = _align(source, target, (found.source, found.target), _merge(found))
    return found


def _align(
    source: Blocks,
    target: Blocks,
    path: tuple[IntArray, IntArray] | None = None,
    merge: float = MERGE,
) -> Alignment:
    """Align near a path, which gives the ratio of lengths and gaps; or anywhere, and only 1-1."""
    if path is None:
        ratio, weight, opening, count = 1.0, 0.0, OPENING, len(source) + 1
        band = np.zeros(count, dtype=np.int64), np.full(count, len(target) + 1)
        beads = _beads(1, 1)
    else:
        rows, columns = path
        ratio = _length_ratio(_sums(source.lengths)[rows], _sums(target.lengths)[columns])
        weight, opening = LENGTH_WEIGHT, _opening(np.diff(rows), np.diff(columns))
        band = _band(rows, columns, len(source), len(target))
        beads = _beads(len(source.vectors), len(target.vectors))
    own, other = source.lengths, target.lengths * ratio
    usual = max(1.0, (own.sum() + other.sum()) / (len(own) + len(other)))
    ends = _sums(own / usual), _sums(other / usual)
    noises = _noise(source, target), _noise(target, source)
    # A sentence of the usual length is measured by what few random beads cost less than.
    draw = np.random.default_rng(0)
    at, there = (draw.integers(len(side), size=SAMPLED_BEADS) for side in (source, target))
    random = dissimilarity(
        np.einsum("sd,sd->s", source.vectors[0, at], target.vectors[0, there]),
        noises[0][0, at] + noises[1][0, there],
        np.diff(ends[0])[at],
        np.diff(ends[1])[there],
        weight,
    )
    vectors = source.vectors, target.vectors
    gap = opening, GAP * float(np.quantile(random, GAP_QUANTILE))
    found, costs = cheapest_path(vectors, noises, ends, beads, gap, merge, weight, band)
    boundaries = np.insert(found, 0, 0, axis=0)
    return Alignment(source=boundaries[:, 0], target=boundaries[:, 1], costs=costs)


def _beads(source_sizes: int, target_sizes: int) -> IntArray:
    """Sizes of the beads, (K, 2): those of at most A + 1 sentences."""
    most = max(source_sizes, target_sizes) + 1
    sizes = itertools.product(range(1, source_sizes + 1), range(1, target_sizes + 1))
    return np.array([pair for pair in sizes if sum(pair) <= most])


def _opening(source: IntArray, target: IntArray) -> float:
    """Return the cost of a gap apart from its sentences, lower for fewer beads between gaps."""
    gaps = sum(
        int(np.count_nonzero(np.diff(side == 0, prepend=False) & (side == 0)))
        for side in (source, target)
    )
    beads = int(np.count_nonzero((source > 0) & (target > 0)))
    return OPENING_WEIGHT * _log_odds_against(gaps, gaps + beads)


def _merge(found: Alignment) -> float:
    """Return the cost of a sentence beyond 1-1, lower for more merged beads in an alignment."""
    source, target = np.diff(found.source), np.diff(found.target)
    sizes = (source + target)[(source > 0) & (target > 0)]
    return MERGE_WEIGHT * _log_odds_against(int(np.count_nonzero(sizes > 2)), len(sizes))


def _log_odds_against(count: int, total: int) -> float:
    chance = (count + PRIOR[0]) / (total + PRIOR[1])
    return max(0.0, float(np.log((1 - chance) / chance)))


def _noise(blocks: Blocks, others: Blocks) -> Matrix:
    """Mean of 1 - cosine between each block and all of the other document: float32 (A, N)."""
    count = sum(max(0, len(others) - size) for size in range(len(others.vectors)))
    noise: Matrix = 1 - blocks.vectors @ (others.vectors.sum(axis=(0, 1)) / max(1, count))
    return noise


def _length_ratio(source: FloatArray, target: FloatArray) -> float:
    """Return the median ratio of source to target lengths of beads."""
    lengths = np.diff(source), np.diff(target)
    matched = (lengths[0] > 0) & (lengths[1] > 0)
    if not matched.any():
        return 1.0
    return float(np.median(lengths[0][matched] / lengths[1][matched]))


def _band(rows: IntArray, columns: IntArray, source: int, target: int) -> tuple[IntArray, IntArray]:
    """Return the first and last column per row within ``MARGIN`` cells of a path."""
    row = np.arange(source + 1)
    before = np.searchsorted(rows, row - MARGIN, side="left") - 1
    after = np.searchsorted(rows, row + MARGIN, side="right")
    low = columns[np.maximum(before, 0)] - MARGIN
    high = columns[np.minimum(after, len(columns) - 1)] + MARGIN + 1
    return np.maximum(low, 0), np.minimum(high, target + 1)


def _sums(lengths: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(lengths)])
