"""Fit, refine and judge orthogonal maps between spaces of words.

Conneau et al. 2018, "Word Translation Without Parallel Data". Rows are float32 unit vectors, most
frequent words first. Axes: ``N`` source and ``M`` target words, ``D`` dimensions, ``P`` pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import IntArray, Matrix
from miner.mining import mine

NEIGHBOURS = 10  # in the means that CSLS subtracts: section 2.3
FREQUENT = 15_000  # words whose mutual neighbours refine a map
JUDGED = 10_000  # source words of the criterion: section 3.5


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """A linear map of source vectors, and the criterion of its quality.

    ``matrix`` (D, D) maps by ``source @ matrix``. A higher ``criterion``, a mean cosine, is better.
    """

    matrix: Matrix
    criterion: float


def comparable_rows(vectors: Matrix) -> Matrix:
    """Scale rows to unit length, centre them, and scale them again.

    See Artetxe et al. 2018. Raises ValueError if a row is zero or not finite, maybe after centring.
    """
    rows = _unit(vectors.astype(np.float64))
    return _unit(rows - rows.mean(axis=0)).astype(np.float32)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise ValueError(
            f"the vector of word {bad[0] + 1} is zero, equal to the mean or not finite; remove the "
            "word, or use more text"
        )
    return np.asarray(rows / lengths)


def procrustes(source: Matrix, target: Matrix) -> Matrix:
    """Return the orthogonal matrix that best maps source rows to target rows.

    It minimises ``|source @ W - target|`` over P pairs of rows (Conneau et al. 2018, equation 2).
    """
    left, _, right = np.linalg.svd(source.T.astype(np.float64) @ target.astype(np.float64))
    return np.asarray(left @ right, dtype=np.float32)


def identical_words(source: Sequence[str], target: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return the source and target rows, (P,) each, of words in both lists.

    Each duplicate in ``source`` counts, in order. Of duplicates in ``target``, the last one counts.
    """
    row_of = {word: row for row, word in enumerate(target)}
    pairs = [(row, row_of[word]) for row, word in enumerate(source) if word in row_of]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def mutual_neighbours(source: Matrix, target: Matrix) -> tuple[IntArray, IntArray]:
    """Return the source and target rows of mutual nearest neighbours by CSLS.

    They are int64 (P,) each, best first, of unit vectors (N, D) and (M, D). CSLS is twice a cosine
    minus the mean cosines of both words' 10 nearest neighbours, which alone are compared.
    """
    pairs = mine(source, target, k=NEIGHBOURS, margin="csls", retrieval="intersect")
    return pairs.source, pairs.target


def criterion(source: Matrix, target: Matrix) -> float:
    """Return the mean cosine of frequent source words and their best targets.

    The best are by CSLS among the 10 nearest of all targets. ``source`` (N, D) are mapped vectors,
    most frequent first (the first 10,000 count), and ``target`` is (M, D). The mean correlates with
    the share of correct translations (Conneau et al. 2018, section 2.4).
    """
    pairs = mine(source[:JUDGED], target, k=NEIGHBOURS, margin="csls", retrieval="forward")
    return float(pairs.cosine.mean(dtype=np.float64))


def refine(
    source: Matrix,
    target: Matrix,
    matrix: Matrix,
    *,
    rounds: int,
    judged: Callable[[int, float], None] = lambda round_, value: None,
) -> Mapping:
    """Refit a map to mutual nearest neighbours, and return the best map.

    Refits use the first 15,000 rows per side. ``matrix`` (D, D) is the first map, which may be the
    result. If ``rounds`` is 0, only its criterion is computed. ``judged`` is called with the number
    of each round, from 0 for ``matrix``, and its criterion.
    """
    mappings: list[Mapping] = []
    for number in range(rounds + 1):
        if number:
            mapped = source[:FREQUENT] @ matrix
            sources, targets = mutual_neighbours(mapped, target[:FREQUENT])
            matrix = procrustes(source[sources], target[targets])
        mappings.append(Mapping(matrix=matrix, criterion=criterion(source @ matrix, target)))
        judged(number, mappings[-1].criterion)
    return max(mappings, key=lambda mapping: mapping.criterion)
