"""Similarity search: how often a sentence's nearest neighbour is not its translation.

The measure of Artetxe & Schwenk 2019, "Massively Multilingual Sentence Embeddings", on Tatoeba.
Axes: ``N`` sentence pairs, ``D`` dim, ``B`` rows of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 4096  # bounds the memory of one product: 4 * B * N bytes


@dataclass(frozen=True, kw_only=True)
class SearchErrors:
    """Wrong nearest neighbours among ``sentences``, searching from each side in the other."""

    sentences: int
    forward: int
    backward: int

    @property
    def forward_rate(self) -> float:
        """Error rate of the search from source to target, 0 to 1."""
        return self.forward / self.sentences

    @property
    def backward_rate(self) -> float:
        """Error rate of the search from target to source, 0 to 1."""
        return self.backward / self.sentences

    @property
    def rate(self) -> float:
        """Mean of the two, the figure usually reported."""
        return (self.forward + self.backward) / (2 * self.sentences)


def search_errors(source: NDArray[np.float32], target: NDArray[np.float32]) -> SearchErrors:
    """Count the errors of 1-nearest-neighbour search by cosine, both ways.

    Row i of one side translates row i of the other. Of equally near neighbours the first counts.
    A zero row (a sentence of which nothing was left to encode) is near to nothing: an error.

    Args:
        source: float32 (N, D), rows of any length.
        target: float32 (N, D).

    Raises:
        ValueError: the shapes differ or there is no row.
    """
    if source.shape != target.shape or not len(source):
        raise ValueError(
            f"similarity search needs two arrays of one shape with at least one row, "
            f"not {source.shape} and {target.shape}"
        )
    source, target = _unit_rows(source), _unit_rows(target)
    return SearchErrors(
        sentences=len(source),
        forward=_wrong(source, target),
        backward=_wrong(target, source),
    )


def _wrong(query: NDArray[np.float32], base: NDArray[np.float32]) -> int:
    wrong = 0
    for start in range(0, len(query), BLOCK_ROWS):
        block = query[start : start + BLOCK_ROWS]
        nearest = (block @ base.T).argmax(axis=1)
        right = nearest == np.arange(start, start + len(block))
        wrong += int((~(right & block.any(axis=1))).sum())
    return wrong


def _unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = np.zeros_like(vectors)
    np.divide(vectors, lengths, out=unit, where=lengths > 0)
    return unit
