"""Products that torch computes: the one module of the search that calls its private functions.

A build that lacks a call raises AttributeError or RuntimeError, and is searched in float32.
"""

from typing import Any

import torch
from numpy.typing import NDArray


def int8_product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the product of int8 rows, (R, D) by (C, D): int32 (R, C)."""
    x, y = torch.from_numpy(left), torch.from_numpy(right)
    if x.shape[1] == 1:  # which _int_mm leaves unset in torch 2.13
        return (x.int() * y.int().T).numpy()
    return torch._int_mm(x, y.T).numpy()


def bfloat16_product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the product of rows given as bfloat16's bits, uint16, rounded to such: (R, C)."""
    return (bfloat16_rows(left) @ bfloat16_rows(right).T).view(torch.uint16).numpy()


def bfloat16_rows(bits: NDArray[Any]) -> torch.Tensor:
    """Return rows given as bits as a tensor that shares their memory."""
    return torch.from_numpy(bits).view(torch.bfloat16)
