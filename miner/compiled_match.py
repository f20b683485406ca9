"""The greatest cosines of words, compiled by Numba; ``miner.word_match`` has the same in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from miner.compiling import compiled
from miner.word_match import SCALE

TILE = 4  # rows that one is multiplied by at once: it is loaded once for all

# Reordered sums and fused products change no result: sums are exact in float64 in any order.
_compile = compiled(fastmath={"nnan", "nsz", "contract", "reassoc"})


@_compile
def _take_whole(vectors: Any, ids: Any, rows: Any) -> None:
    """Write the vectors of some words to ``rows`` as whole numbers of 1 / ``SCALE``."""
    for word in range(len(ids)):
        vector, row = vectors[np.uint32(ids[word])], rows[word]
        for place in range(len(vector)):
            row[place] = np.rint(np.float64(vector[place]) * SCALE)


@_compile
def _products(row: Any, rows: Any) -> Any:
    """Return the products of a row with ``TILE`` others."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for place in range(len(row)):
        number = row[place]
        first += number * rows[0, place]
        second += number * rows[1, place]
        third += number * rows[2, place]
        fourth += number * rows[3, place]
    return first, second, third, fourth


@_compile
def _rows_of(vectors: Any, offsets: Any) -> Any:
    """Return room for the words of any one sentence, and for a tile's more."""
    most = 0
    for sentence in range(len(offsets) - 1):
        most = max(most, offsets[sentence + 1] - offsets[sentence])
    return np.zeros((most + TILE, vectors.shape[1]))


@_compile
def match_pairs(source: Any, target: Any, nearest: Any, nearest_of_target: Any) -> None:
    """Raise the numbers of words, float32 (W,), to their greatest cosine in the pair's other part.

    ``source`` and ``target`` are three arrays each: the vectors of different words, float32 (U, D);
    all words as rows of these, int32 (W,); and where in them the sentences of P pairs begin and
    end, int64 (P + 1,).
    """
    (vectors, ids, offsets), (others, other_ids, other_offsets) = source, target
    rows, other_rows = _rows_of(vectors, offsets), _rows_of(others, other_offsets)
    for pair in range(len(offsets) - 1):
        own = slice(offsets[pair], offsets[pair + 1])
        theirs = slice(other_offsets[pair], other_offsets[pair + 1])
        _take_whole(vectors, ids[own], rows)
        _take_whole(others, other_ids[theirs], other_rows)
        best, other_best = nearest[own], nearest_of_target[theirs]
        for word in range(len(best)):
            for start in range(0, len(other_best), TILE):
                products = _products(rows[word], other_rows[start : start + TILE])
                for place in range(min(TILE, len(other_best) - start)):
                    cosine, other = np.float32(products[place] / SCALE**2), start + place
                    best[word] = max(best[word], cosine)
                    other_best[other] = max(other_best[other], cosine)
