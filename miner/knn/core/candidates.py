"""The candidates of each row with the largest bounds so far, kept while tiles go by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, Rows, taken


class Candidates(NamedTuple):
    """Of N rows the C columns with the largest bounds, best first.

    ``bounds`` is float32 (N, C), -inf where fewer were seen; ``ids`` int32 (N, C), -1 there.
    ``floor``, float32 (N,), is the last bound of each row, or higher: no column left out has a
    larger one.
    """

    bounds: NDArray[np.float32]
    ids: NDArray[np.int32]
    floor: NDArray[np.float32]

    @classmethod
    def none(cls, rows: int, kept: int) -> Candidates:
        """Room for ``kept`` candidates of each row."""
        return cls(
            bounds=np.full((rows, kept), -np.inf, dtype=np.float32),
            ids=np.full((rows, kept), NO_NEIGHBOUR, dtype=np.int32),
            floor=np.full(rows, -np.inf, dtype=np.float32),
        )

    def part(self, rows: Rows) -> Candidates:
        """Return those of some rows: a view of a slice, a copy of what positions name."""
        return Candidates(
            bounds=taken(self.bounds, rows),
            ids=taken(self.ids, rows),
            floor=taken(self.floor, rows),
        )
