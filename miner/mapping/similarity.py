"""A map between two spaces with no known pair: words that mean the same are alike to others alike.

Artetxe, Labaka & Agirre 2018, "A robust self-learning method for fully unsupervised cross-lingual
mappings of word embeddings", sections 3.2 and 3.3, with half the words and shorter patience, for
two cores. Axes: ``F`` frequent words of each side, ``D`` dimensions.
"""

import numpy as np

from miner.arrays import Matrix
from miner.mapping.orthogonal import NEIGHBOURS, Mapping, comparable_rows, procrustes

FREQUENT = 2_000  # words of each side
KEPT = 0.1  # share of the similarities that are looked at in the beginning
PATIENCE, GAIN = 5, 1e-4  # rounds without a mean cosine higher by that, after which it is doubled


def similarity_start(source: Matrix, target: Matrix, *, seed: int) -> Mapping:
    """Return the map that words' similarities to their own side begin and self-learning ends.

    Each word of unit rows, most frequent first, is known at first by how near it is to all others
    of its side, sorted. The criterion is the mean cosine of the frequent sources' nearest ones.
    """
    source, target = _frequent(source, target)
    matrix = _fitted(source, target, _profiles(source) @ _profiles(target).T)
    return learn_by_itself(source, target, matrix, seed=seed)


def learn_by_itself(source: Matrix, target: Matrix, matrix: Matrix, *, seed: int) -> Mapping:
    """Return the best map that self-learning comes to from ``matrix``, (D, D), by its criterion.

    A map is fitted to the nearest neighbours of both sides by CSLS, of similarities of which a
    random share is looked at, which keeps it from ending at a poor map; the share grows up to all.
    """
    source, target = _frequent(source, target)
    generator = np.random.default_rng(seed)
    best, share, waited = Mapping(matrix=matrix, criterion=-1.0), KEPT, 0
    while share < 1 or waited < PATIENCE:
        if waited == PATIENCE:
            share, waited = min(1.0, 2 * share), 0
        cosines = np.asarray(source @ matrix @ target.T, dtype=np.float32)
        seen = _csls(cosines)
        if share < 1:
            seen[generator.random(seen.shape, dtype=np.float32) >= share] = -np.inf
        nearest = cosines[np.arange(len(source)), seen.argmax(axis=1)]
        value = float(nearest.mean(dtype=np.float64))
        waited += 1
        if value > best.criterion + GAIN:
            best, waited = Mapping(matrix=matrix, criterion=value), 0
        matrix = _fitted(source, target, seen)
    return best


def _frequent(source: Matrix, target: Matrix) -> tuple[Matrix, Matrix]:
    count = min(FREQUENT, len(source), len(target))
    return source[:count], target[:count]


def _profiles(rows: Matrix) -> Matrix:
    """Return each word's sorted similarities to all of its side: comparable rows (F, F)."""
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    similarities = (left * values) @ left.T  # the square root of rows @ rows.T: section 3.2
    return comparable_rows(np.sort(similarities, axis=1))


def _csls(cosines: Matrix) -> Matrix:
    """Return 2 cos less the means of the best of each row and each column: float32 (F, F)."""
    count = min(NEIGHBOURS, len(cosines))
    rows, columns = (
        np.partition(cosines, -count, axis=axis)
        .take(range(-count, 0), axis)
        .mean(axis, keepdims=True)
        for axis in (1, 0)
    )
    return np.asarray(2 * cosines - rows - columns)


def _fitted(source: Matrix, target: Matrix, similarities: Matrix) -> Matrix:
    """Return the map of each source to its best target, and of the best source to each target."""
    own = np.arange(len(similarities))
    sources = np.concatenate([own, similarities.argmax(axis=0)])
    targets = np.concatenate([similarities.argmax(axis=1), own])
    return procrustes(source[sources], target[targets])
