"""Align a document and its translation in order, from coarse to fine.

As in Thompson & Koehn 2019, "Vecalign: Improved Sentence Alignment in Linear Time and Space",
dynamic programming compares vectors of blocks of sentences, relative to random blocks. Documents
are halved until they are short, and each alignment bounds the next finer one. In addition, the
ratio of lengths counts, as in Gale & Church 1993, and long sentences count more than short ones. A
bead is a pair of aligned blocks, of at most A + 1 sentences if blocks have 1 to A, or a sentence
without counterpart. Axes: ``N`` source and ``M`` target sentences, ``B`` beads.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from miner.arrays import FloatArray, IntArray, Matrix
from miner.monotone.blocks import Blocks
from miner.monotone.path import cheapest_path, dissimilarity

LENGTH_WEIGHT = 0.65  # of the lengths' ratio, relative to the vectors' distance
GAP_QUANTILE = 0.2  # of the costs of random 1-1 beads, as in the paper; the unit of gaps
GAP = 0.43  # units per sentence; two sentences cost less as gaps than as a random bead
OPENING = 0.1  # cost of a gap, before any is counted
OPENING_WEIGHT = 0.17  # of the log odds against a gap
MERGE = 0.1  # cost of each sentence beyond 1-1, before any merged bead is counted
MERGE_WEIGHT = 0.12  # of the log odds against a merged bead
PRIOR = (1, 10)  # pseudo-counts of gaps or merged beads, and of all beads
SAMPLED_BEADS = 10_000  # random 1-1 beads
FULL_CELLS = 1 << 22  # of a table that is searched in full, of 2048 x 2048 sentences
MARGIN = 15  # cells on either side of a coarser path


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Beads in order, which contain every sentence of both documents once.

    Bead b of B has the source sentences ``source[b]`` to ``source[b + 1] - 1``, and the target
    sentences ``target[b]`` to ``target[b + 1] - 1``. Both arrays are int64 (B + 1,). Either side of
    a bead may be empty. ``costs``, float64 (B,), are costs of beads on the cheapest path.
    """

    source: IntArray
    target: IntArray
    costs: FloatArray

    def beads(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return the positions of both sides' sentences in each bead, ascending."""
        sides = (itertools.pairwise(side.tolist()) for side in (self.source, self.target))
        return [(tuple(range(*x)), tuple(range(*y))) for x, y in zip(*sides, strict=True)]


def align(source: Blocks, target: Blocks) -> Alignment:
    """Align two documents' sentences in order, in time and memory O(N + M).

    Raises:
        ValueError: A document has no sentence, or the dimensions of their vectors differ.
    """
    if not len(source) or not len(target):
        raise ValueError("a document without sentences cannot be aligned; pass one or more")
    dims = source.vectors.shape[2], target.vectors.shape[2]
    if dims[0] != dims[1]:
        raise ValueError(
            f"vectors of {dims[0]} and {dims[1]} dimensions; encode both documents with one encoder"
        )
    levels = [(source, target)]
    while len(levels[-1][0]) * len(levels[-1][1]) > FULL_CELLS:
        levels.append((levels[-1][0].halved(), levels[-1][1].halved()))
    alignment = _align(*levels[-1])
    alignment = _align(*levels.pop(), (alignment.source, alignment.target))
    for finer, other in reversed(levels):
        rows, columns = np.minimum(2 * alignment.source, len(finer)), 2 * alignment.target
        alignment = _align(finer, other, (rows, np.minimum(columns, len(other))))
    for _ in range(2):  # the counts of the first are of a path whose merges cost the same anywhere
        alignment = _align(source, target, (alignment.source, alignment.target), _merge(alignment))
    return alignment


def _align(
    source: Blocks,
    target: Blocks,
    path: tuple[IntArray, IntArray] | None = None,
    merge: float = MERGE,
) -> Alignment:
    """Align within ``MARGIN`` of a ``path`` of boundaries, or anywhere by 1-1."""
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
    lengths, other_lengths = source.lengths, target.lengths * ratio
    typical = max(1.0, (lengths.sum() + other_lengths.sum()) / (len(lengths) + len(other_lengths)))
    ends = _sums(lengths / typical), _sums(other_lengths / typical)
    noises = _noise(source, target), _noise(target, source)
    # A low quantile of the costs of random beads is the cost of a typical sentence in a gap.
    draw = np.random.default_rng(0)
    x, y = (draw.integers(len(side), size=SAMPLED_BEADS) for side in (source, target))
    random = dissimilarity(
        np.einsum("sd,sd->s", source.vectors[0, x], target.vectors[0, y]),
        noises[0][0, x] + noises[1][0, y],
        np.diff(ends[0])[x],
        np.diff(ends[1])[y],
        weight,
    )
    vectors = source.vectors, target.vectors
    correct = 1 / max(len(source), len(target))  # share of the random beads
    quantile = correct + (1 - correct) * GAP_QUANTILE
    gap = opening, GAP * float(np.quantile(random, quantile))
    ends_of_beads, costs = cheapest_path(vectors, noises, ends, beads, gap, merge, weight, band)
    boundaries = np.insert(ends_of_beads, 0, 0, axis=0)
    return Alignment(source=boundaries[:, 0], target=boundaries[:, 1], costs=costs)


def _beads(source_sizes: int, target_sizes: int) -> IntArray:
    """Return the sizes of beads (K, 2) of at most A + 1 sentences."""
    largest = max(source_sizes, target_sizes) + 1
    sizes = itertools.product(range(1, source_sizes + 1), range(1, target_sizes + 1))
    return np.array([pair for pair in sizes if sum(pair) <= largest])


def _opening(source: IntArray, target: IntArray) -> float:
    """Return the cost of opening a gap, from the sizes of beads, (B,) each."""
    absent = [side == 0 for side in (source, target)]
    gaps = sum(int(np.count_nonzero(np.diff(gap, prepend=False) & gap)) for gap in absent)
    beads = int(np.count_nonzero((source > 0) & (target > 0)))
    return OPENING_WEIGHT * _log_odds_against(gaps, gaps + beads)


def _merge(alignment: Alignment) -> float:
    """Return the cost per sentence beyond 1-1, which falls with merged beads."""
    source, target = np.diff(alignment.source), np.diff(alignment.target)
    sizes = (source + target)[(source > 0) & (target > 0)]
    return MERGE_WEIGHT * _log_odds_against(int(np.count_nonzero(sizes > 2)), len(sizes))


def _log_odds_against(count: int, total: int) -> float:
    chance = (count + PRIOR[0]) / (total + PRIOR[1])
    return max(0.0, float(np.log((1 - chance) / chance)))


def _noise(blocks: Blocks, others: Blocks) -> Matrix:
    """Return each block's mean of 1 - cosine to the other document, (A, N)."""
    count = sum(max(0, len(others) - size) for size in range(len(others.vectors)))
    return np.asarray(1 - blocks.vectors @ (others.vectors.sum(axis=(0, 1)) / max(1, count)))


def _length_ratio(source: FloatArray, target: FloatArray) -> float:
    lengths = np.diff(source), np.diff(target)
    matched = (lengths[0] > 0) & (lengths[1] > 0)
    if not matched.any():
        return 1.0
    return float(np.median(lengths[0][matched] / lengths[1][matched]))


def _band(rows: IntArray, columns: IntArray, source: int, target: int) -> tuple[IntArray, IntArray]:
    """Return columns per row within ``MARGIN`` cells of a path, first and end."""
    row = np.arange(source + 1)
    before = np.searchsorted(rows, row - MARGIN, side="left") - 1
    after = np.searchsorted(rows, row + MARGIN, side="right")
    low = columns[np.maximum(before, 0)] - MARGIN
    high = columns[np.minimum(after, len(columns) - 1)] + MARGIN + 1
    return np.maximum(low, 0), np.minimum(high, target + 1)


def _sums(lengths: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(lengths)])
