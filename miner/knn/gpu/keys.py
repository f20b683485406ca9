"""A candidate as one integer: its product and its position in an int64 that sorts by product.

The high half holds the float32's bits, those of negative numbers turned round so that integers
order as the floats do; the low half holds the position. One number to write for a hit, one sort for
both, and a selection that does not depend on the order in which candidates were found.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR

MAX_ROWS = 2**31 - 1  # of one side: positions are int32
_MAGNITUDE = 2**31 - 1  # all bits but the sign
_LOW = 2**32 - 1
# Product -inf, position -1: below every candidate.
EMPTY = (-0x7F800001 << 32) | (NO_NEIGHBOUR & _LOW)


class DeviceCandidates(NamedTuple):
    """Candidates of N rows among those of the other side, and what may be missing.

    ``ids`` is int64 (N, C): positions, each at most once in a row, in no particular order, -1 for
    none. ``floor`` is float32 (N,): the computed product of the row with anything that is not among
    its candidates is at most this; -inf if nothing was left out, +inf if nothing is known.
    """

    ids: NDArray[np.int64]
    floor: NDArray[np.float32]


def no_candidates(rows: int, kept: int, device: torch.device) -> torch.Tensor:
    """Return keys (N, C) of rows that nothing was found for yet."""
    return torch.full((rows, kept), EMPTY, dtype=torch.int64, device=device)


def pack(products: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return the keys of float32 products and integer positions of the same shape."""
    high = _turned(products.contiguous().view(torch.int32)).to(torch.int64)
    return (high << 32) | positions.to(torch.int64)


def products(keys: torch.Tensor) -> torch.Tensor:
    """Return the float32 products of keys; -inf of EMPTY."""
    return _turned((keys >> 32).to(torch.int32)).contiguous().view(torch.float32)


def positions(keys: torch.Tensor) -> torch.Tensor:
    """Return the int64 positions of keys; -1 of EMPTY."""
    low = keys & _LOW
    return torch.where(low == _LOW, NO_NEIGHBOUR, low)


def best(keys: list[torch.Tensor], kept: int) -> torch.Tensor:
    """Return the ``kept`` largest of each row's keys, or all; equal products come by position."""
    together = torch.cat(keys, dim=1)
    return together.topk(min(kept, together.shape[1]), dim=1).values


def floors(keys: torch.Tensor) -> torch.Tensor:
    """Return what the product of a row (N, C) must exceed to change its keys: float32 (N,)."""
    return products(keys[:, -1])


def device_candidates(keys: torch.Tensor, *, of: int) -> DeviceCandidates:
    """Return candidates from keys (N, C) that are the best of each row among ``of`` others."""
    everything = np.full(len(keys), -np.inf, dtype=np.float32)
    floor = everything if keys.shape[1] == of else floors(keys).cpu().numpy()
    return DeviceCandidates(ids=positions(keys).cpu().numpy(), floor=floor)


def _turned(bits: torch.Tensor) -> torch.Tensor:
    """Float32 bits to ordered integers, and back."""
    return bits ^ ((bits >> 31) & _MAGNITUDE)
