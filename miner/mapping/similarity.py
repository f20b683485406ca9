"""Map a space to another one by similarities of words, without pairs.

Artetxe, Labaka & Agirre 2018, "A robust self-learning method for fully unsupervised cross-lingual
mappings of word embeddings", sections 3.2 and 3.3, with half the words and fewer rounds than there.
Axes: ``N`` source words, ``M`` target words, ``F`` frequent words per side, ``D`` dimensions.
"""

import numpy as np

from miner.arrays import Matrix
from miner.mapping.orthogonal import NEIGHBOURS, Mapping, comparable_rows, procrustes

FREQUENT = 2_000  # words per side
KEPT = 0.1  # share of the similarities that count at first
PATIENCE = 5  # rounds without ``GAIN`` until the share is doubled
GAIN = 1e-4  # of the mean cosine


def similarity_start(source: Matrix, target: Matrix, *, seed: int) -> Mapping:
    """Fit a map from similarities within each side, then by self-learning.

    ``source`` (N, D) and ``target`` (M, D) are unit vectors of words, most frequent first. The same
    number of each counts, at most 2,000. At first, a word is matched by its sorted similarities to
    its side. ``seed`` sets random choices. Errors are as in ``comparable_rows``.
    """
    source, target = _frequent(source, target)
    matrix = _fitted(source, target, _profiles(source) @ _profiles(target).T)
    return learn_by_itself(source, target, matrix, seed=seed)


def learn_by_itself(source: Matrix, target: Matrix, matrix: Matrix, *, seed: int) -> Mapping:
    """Improve a map by self-learning, and return the map of the best round.

    Each round fits a map to the nearest neighbours of both sides by CSLS. Only a random share of
    the similarities counts, which grows to 1. The criterion is the mean cosine of source words and
    their nearest targets among these. A better one is higher by 1e-4. ``source`` and ``target`` are
    as in ``similarity_start``, ``matrix`` (D, D) is the first map, which may be the result, and
    ``seed`` sets the random shares.
    """
    source, target = _frequent(source, target)
    generator = np.random.default_rng(seed)
    best, share, waited = Mapping(matrix=matrix, criterion=-1.0), KEPT, 0
    while share < 1 or waited < PATIENCE:
        if waited == PATIENCE:
            share, waited = min(1.0, 2 * share), 0
        cosines = np.asarray(source @ matrix @ target.T, dtype=np.float32)
        similarities = _csls(cosines)
        if share < 1:
            similarities[generator.random(similarities.shape, dtype=np.float32) >= share] = -np.inf
        nearest = cosines[np.arange(len(source)), similarities.argmax(axis=1)]
        value = float(nearest.mean(dtype=np.float64))
        waited += 1
        if value > best.criterion + GAIN:
            best, waited = Mapping(matrix=matrix, criterion=value), 0
        matrix = _fitted(source, target, similarities)
    return best


def _frequent(source: Matrix, target: Matrix) -> tuple[Matrix, Matrix]:
    count = min(FREQUENT, len(source), len(target))
    return source[:count], target[:count]


def _profiles(rows: Matrix) -> Matrix:
    """Return ``comparable_rows`` (F, F) of sorted similarities to the side."""
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    similarities = (left * values) @ left.T  # the square root of rows @ rows.T: section 3.2
    return comparable_rows(np.sort(similarities, axis=1))


def _csls(cosines: Matrix) -> Matrix:
    count = min(NEIGHBOURS, len(cosines))
    rows, columns = (
        np.partition(cosines, -count, axis=axis)
        .take(range(-count, 0), axis)
        .mean(axis, keepdims=True)
        for axis in (1, 0)
    )
    return np.asarray(2 * cosines - rows - columns)


def _fitted(source: Matrix, target: Matrix, similarities: Matrix) -> Matrix:
    rows = np.arange(len(similarities))
    sources = np.concatenate([rows, similarities.argmax(axis=0)])
    targets = np.concatenate([similarities.argmax(axis=1), rows])
    return procrustes(source[sources], target[targets])
