"""Candidates as int64 keys that sort by product.

The high half contains the bits of the float32 product, inverted for negative numbers so that
integers sort like floats. The low half contains the position. So one sort orders both.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR

MAX_ROWS = 2**31 - 1  # per side, because positions are int32
_MAGNITUDE = 2**31 - 1  # all bits but the sign
_LOW = 2**32 - 1
# Product -inf, position -1: below every candidate.
EMPTY = (-0x7F800001 << 32) | (NO_NEIGHBOUR & _LOW)


class DeviceCandidates(NamedTuple):
    """Candidates of N rows, and a bound of all other products.

    ``ids``, int64 (N, C), are distinct positions in any order, or -1. ``floor``, float32 (N,), is
    at least the computed product of the row with any other position, or -inf if all are candidates.
    """

    ids: NDArray[np.int64]
    floor: NDArray[np.float32]


def no_candidates(rows: int, kept: int, device: torch.device) -> torch.Tensor:
    """Return keys that are all EMPTY, int64 (``rows``, ``kept``)."""
    return torch.full((rows, kept), EMPTY, dtype=torch.int64, device=device)


def pack(products: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Pack float32 products and positions from 0 into int64 keys.

    All shapes are equal. Keys sort like products, and if these are equal, like positions.
    """
    high = _turned(products.contiguous().view(torch.int32)).to(torch.int64)
    return (high << 32) | positions.to(torch.int64)


def products(keys: torch.Tensor) -> torch.Tensor:
    """Return the float32 products in keys of any shape, -inf for EMPTY."""
    return _turned((keys >> 32).to(torch.int32)).contiguous().view(torch.float32)


def positions(keys: torch.Tensor) -> torch.Tensor:
    """Return the int64 positions in keys of any shape, -1 for EMPTY."""
    low = keys & _LOW
    return torch.where(low == _LOW, NO_NEIGHBOUR, low)


def best(keys: list[torch.Tensor], kept: int) -> torch.Tensor:
    """Return each row's ``kept`` largest keys (N, any) or all, descending."""
    together = torch.cat(keys, dim=1)
    return together.topk(min(kept, together.shape[1]), dim=1).values


def floors(keys: torch.Tensor) -> torch.Tensor:
    """Return the product in each row's last key, float32 (N,), -inf for EMPTY."""
    return products(keys[:, -1])


def device_candidates(keys: torch.Tensor, *, of: int) -> DeviceCandidates:
    """Convert each row's best keys to candidates in host memory.

    ``keys`` (N, C) are the best among ``of`` positions, in descending order.
    """
    everything = np.full(len(keys), -np.inf, dtype=np.float32)
    floor = everything if keys.shape[1] == of else floors(keys).cpu().numpy()
    return DeviceCandidates(ids=positions(keys).cpu().numpy(), floor=floor)


def _turned(bits: torch.Tensor) -> torch.Tensor:
    """Convert float32 bits to ordered integers, and back."""
    return bits ^ ((bits >> 31) & _MAGNITUDE)
