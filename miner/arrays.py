"""Neighbours and pairs as plain arrays.

Axes: ``N`` rows of vectors, ``D`` dimensions, ``K`` neighbours per row, ``P`` pairs.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float32]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = slice | NDArray[np.integer[Any]]  # a slice, or positions

NO_NEIGHBOUR = -1
# Held while a header of arrays is parsed. Before 3.11.5, Python fails at random if threads do this
# at once (CPython's gh-106905).
PARSING = threading.Lock()


def load_array(path: Path, *, mmap_mode: Literal["r"] | None = None) -> NDArray[Any]:
    """Load an array as ``np.load`` does, in one thread at a time."""
    with PARSING:
        array: NDArray[Any] = np.load(path, mmap_mode=mmap_mode)
    return array


def take_rows(array: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return a view of the rows in a slice, or a copy of rows at positions."""
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def evenly_spaced(rows: int, count: int) -> IntArray:
    """Return ``count`` evenly spaced positions from 0, below ``rows``.

    They are int64, ascending, and repeat if ``count`` exceeds ``rows``, which is at least 1.
    """
    return np.arange(count) * rows // count


def code_points(texts: Sequence[str]) -> tuple[NDArray[np.uint32], IntArray]:
    """Return the joined code points of N texts, and offsets (N + 1,) of texts.

    Text i has ``codes[offsets[i] : offsets[i + 1]]``. ``codes`` are read-only.
    """
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return codes, np.cumsum([0, *map(len, texts)])


class Columns(NamedTuple):
    """Columns ``start`` to ``stop`` - 1, and the factor of their values."""

    start: int
    stop: int
    weight: float


def take_columns(vectors: NDArray[np.floating], columns: Sequence[Columns]) -> NDArray[np.floating]:
    """Select columns of vectors (N, D), weighted, as float32 (N, columns).

    They are in the order of ``columns``. Without ``columns``, ``vectors`` itself is returned.
    """
    if not columns:
        return vectors
    parts = [vectors[:, a:b].astype(np.float32) * np.float32(weight) for a, b, weight in columns]
    return np.concatenate(parts, axis=1)


class Direction(IntEnum):
    """Neighbour lists with a pair, its source's (1), its target's (2) or both."""

    FORWARD = 1  # the source's list
    BACKWARD = 2  # the target's list
    BOTH = 3


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The K nearest neighbours of N rows, best first, ties by ascending id.

    ``ids``, int64 (N, K), are rows of the other side, and ``cosines`` float32 (N, K). Unused
    columns are last, with id -1 and cosine -inf.
    """

    ids: IntArray
    cosines: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Rows) -> "Neighbours":
        """Return the neighbours of the rows in a slice, or at positions (P,)."""
        return Neighbours(ids=take_rows(self.ids, rows), cosines=take_rows(self.cosines, rows))

    @classmethod
    def empty(cls, rows: int, k: int) -> "Neighbours":
        """Return ids of -1 and cosines of -inf, (``rows``, ``k``) each."""
        return cls(
            ids=np.full((rows, k), NO_NEIGHBOUR, dtype=np.int64),
            cosines=np.full((rows, k), -np.inf, dtype=np.float32),
        )

    def means(self) -> FloatArray:
        """Return each row's mean cosine, float64 (N,), 0 without neighbours."""
        is_neighbour = self.ids != NO_NEIGHBOUR
        total = self.cosines.sum(axis=1, dtype=np.float64, where=is_neighbour)
        return np.asarray(total / np.maximum(is_neighbour.sum(axis=1), 1))


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """P scored pairs, in fields of shape (P,).

    ``source`` and ``target`` are rows of both sides, and ``cosine`` is between them. ``score`` is
    the margin or the judge's score. ``source_mean`` is the mean cosine of the source's nearest
    targets, ``target_mean`` of the target's nearest sources. ``rank``, from 1, is the position in
    the source's neighbour list, or in the target's if only that contains the pair. ``direction`` is
    a ``Direction``. Both are 0 if neither list contains it, 0 and 3 after an alignment in order.
    """

    source: IntArray
    target: IntArray
    score: FloatArray
    cosine: NDArray[np.float32]
    source_mean: FloatArray
    target_mean: FloatArray
    rank: NDArray[np.int32]
    direction: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: IntArray | Mask) -> Self:
        """Return the pairs at positions (Q,), in their order, or in a mask (P,)."""
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class JudgedPairs(Pairs):
    """P judged pairs, whose ``score`` is the judge's log likelihood ratio.

    ``margin`` has the margins, and ``probability`` the probabilities of being correct, (P,) each.
    """

    probability: FloatArray
    margin: FloatArray
