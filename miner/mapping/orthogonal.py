"""Orthogonal maps of one space of word vectors to another: fitted, refined, judged without gold.

Conneau et al. 2018, "Word Translation Without Parallel Data". Rows are words, most frequent first,
of unit length, float32. Axes: ``N`` source words, ``M`` target words, ``D`` dimensions, ``P`` known
pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miner.arrays import IntArray, Matrix
from miner.mining import mine

NEIGHBOURS = 10  # of the means that CSLS subtracts: section 2.3
FREQUENT = 15_000  # words that a refinement looks for mutual neighbours among
JUDGED = 10_000  # source words that the criterion is a mean over: section 3.5


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """``matrix`` (D, D) takes sources to targets: ``source @ matrix``; ``criterion`` judges it."""

    matrix: Matrix
    criterion: float


def comparable_rows(vectors: Matrix) -> Matrix:
    """Return rows of unit length about the origin: scaled, centred, scaled (Artetxe et al. 2018).

    A row that is zero then, or not finite, is a ValueError.
    """
    rows = _unit(vectors.astype(np.float64))
    return _unit(rows - rows.mean(axis=0)).astype(np.float32)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise ValueError("the vector of a word is zero or not finite, and has no direction")
    return np.asarray(rows / lengths)


def procrustes(source: Matrix, target: Matrix) -> Matrix:
    """Return the orthogonal W, (D, D), with the least ``|source @ W - target|``, (P, D) each.

    Section 2, equation 2: of the singular value decomposition U S V' of X'Y, W is U V'.
    """
    left, _, right = np.linalg.svd(source.T.astype(np.float64) @ target.astype(np.float64))
    return np.asarray(left @ right, dtype=np.float32)


def identical_words(source: Sequence[str], target: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return the rows of the words that both sides have, int64 (P,) each."""
    place = {word: row for row, word in enumerate(target)}
    pairs = [(row, place[word]) for row, word in enumerate(source) if word in place]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def mutual_neighbours(source: Matrix, target: Matrix) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows that are each other's nearest by CSLS: int64 (P,) each."""
    pairs = mine(source, target, k=NEIGHBOURS, margin="csls", retrieval="intersect")
    return pairs.source, pairs.target


def criterion(source: Matrix, target: Matrix) -> float:
    """Return the mean cosine of the translations by CSLS of the most frequent source words.

    Section 2.4: it goes with how many translations are right, and needs none that is known.
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
    """Fit W, (D, D), anew to mutual neighbours in each round; return the best by the criterion.

    With no ``rounds`` it is judged as it is. ``judged`` is called with each round, from 0, and the
    criterion after it.
    """
    found: list[Mapping] = []
    for number in range(rounds + 1):
        if number:
            mapped = source[:FREQUENT] @ matrix
            sources, targets = mutual_neighbours(mapped, target[:FREQUENT])
            matrix = procrustes(source[sources], target[targets])
        found.append(Mapping(matrix=matrix, criterion=criterion(source @ matrix, target)))
        judged(number, found[-1].criterion)
    return max(found, key=lambda one: one.criterion)
