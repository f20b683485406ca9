"""A bag whose words have given vectors: the least squares of the sums of their features.

Zhao et al. 2018, "Generalizing Word Embeddings using Bag of Subwords", so that words without a
vector have one, too; here at the length that says how much a word counts. Axes: ``V`` words, ``R``
rows of the table, ``D`` dimensions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder.rows import normalize_rows, sum_rows
from encoder.tokenizer import Tokens

Matrix = NDArray[np.float32]

RAREST = 1e-6  # share of the sentences that any feature is taken to be in
STEPS = 20  # of conjugate gradients


def weighted(vectors: Matrix, weights: NDArray[np.float32]) -> Matrix:
    """Return rows (V, D) of the length that weights (V,) say; zero rows stay zero."""
    rows = vectors.copy()
    normalize_rows(rows)
    return rows * weights[:, None]


def fit_table(words: Tokens, wanted: Matrix, *, rows: int, penalty: float) -> Matrix:
    """Return the table whose sums over each word's rows are nearest to the vectors wanted.

    Each dimension is solved by conjugate gradients on the normal equations (Hestenes & Stiefel
    1952).

    Args:
        words: the rows of each of V words.
        wanted: float32 (V, D).
        rows: R, of the table.
        penalty: of the squared rows, above 0 (ridge regression).

    Returns:
        float32 (R, D).
    """
    back = _transposed(words, rows)
    table = np.zeros((rows, wanted.shape[1]), dtype=np.float32)
    residual = sum_rows(wanted, back)
    direction = residual.copy()
    size = _squares(residual)
    for _ in range(STEPS):
        product = sum_rows(sum_rows(direction, words), back) + np.float32(penalty) * direction
        step = _ratio(size, np.einsum("rd,rd->d", direction, product, dtype=np.float64))
        table += step * direction
        residual -= step * product
        before, size = size, _squares(residual)
        direction = residual + _ratio(size, before) * direction
    return table


def spelling_table(
    words: Sequence[Tokens],
    weights: Sequence[NDArray[np.float32]],
    *,
    rows: int,
    dim: int,
    seed: int,
) -> Matrix:
    """Return random rows by which words are alike that share rare features.

    A row is as long as the logarithm of how rarely sentences have a word with its feature, as far
    as the words say; all are scaled so that words are as long as their weights in the mean over
    the text.

    Args:
        words: the rows of each of the V words of each language.
        weights: of these, their idf: float32 (V,) for each language.
        rows: R, of the table.
        dim: D.
        seed: of the random numbers.

    Returns:
        float32 (R, D).
    """
    often = [np.exp(-each.astype(np.float64)) for each in weights]  # shares of the sentences
    found = np.full(rows, RAREST)
    for each, shares in zip(words, often, strict=True):
        np.add.at(found, each.ids, shares[each.owners] / len(words))
    table = np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)
    table *= -np.log(np.minimum(found, 1)).astype(np.float32)[:, None]
    asked = there = 0.0
    for each, shares, idf in zip(words, often, weights, strict=True):
        sums = sum_rows(table, each)
        asked += float(shares @ idf.astype(np.float64) ** 2)
        there += float(shares @ np.einsum("vd,vd->v", sums, sums, dtype=np.float64))
    return table * np.float32(np.sqrt(asked / there))


def _transposed(words: Tokens, rows: int) -> Tokens:
    order = np.argsort(words.ids, kind="stable")
    offsets = np.searchsorted(words.ids[order], np.arange(rows + 1))
    return Tokens(ids=words.owners[order].astype(np.int32), offsets=offsets)


def _squares(matrix: Matrix) -> NDArray[np.float64]:
    return np.einsum("rd,rd->d", matrix, matrix, dtype=np.float64)


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Matrix:
    """Return quotients (D,), 0 where a dimension is solved."""
    found = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found.astype(np.float32)
