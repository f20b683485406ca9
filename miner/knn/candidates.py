"""The candidates of each row with the largest bounds so far, kept while tiles go by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import NO_NEIGHBOUR

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Of N rows the C columns with the largest bounds, best first.

    ``bounds`` is float32 (N, C), -inf where fewer were seen; ``ids`` int32 (N, C), -1 there.
    ``floor``, float32 (N,), is the last bound of each row: no column left out has a larger one.
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

    def part(self, rows: slice) -> Candidates:
        """A view of some rows; what is written there is written here."""
        return Candidates(bounds=self.bounds[rows], ids=self.ids[rows], floor=self.floor[rows])
