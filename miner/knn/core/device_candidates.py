"""What a search in low precision hands on to be rescored: candidates, and what may be missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class DeviceCandidates:
    """Candidates of N rows among those of the other side.

    ``ids`` is int64 (N, C): positions, each at most once in a row, in no particular order, -1 for
    none. ``floor`` is float32 (N,): the computed product of the row with anything that is not among
    its candidates is at most this; -inf if nothing was left out, +inf if nothing is known.
    """

    ids: NDArray[np.int64]
    floor: NDArray[np.float32]
