"""Products of codes: of float32 by NumPy, of int8 and bfloat16 by the fastest way here.

int8 is multiplied by code that is compiled here where the processor has the instructions, else by
torch where that is installed, as bfloat16 is: up to eight times as fast as float32, but torch takes
seconds to load. A build of it that lacks a call raises AttributeError or RuntimeError. Results are
the same without it. bfloat16 numbers are held as their bits, uint16.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

# Operations from which on torch pays for being loaded: some seconds of float32 products.
TORCH_FROM = 1 << 38
INT8_MAX = 127
DEPTH = 4  # codes that an instruction sums
INT8_DIMENSIONS = 1 << 17  # of fewer, 127 * 127 * D stays below 2**31


def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the product of codes, (R, D) by (C, D): int32 of int8, else in their type, (R, C)."""
    if left.dtype == np.float32 or left.dtype == np.float64:
        return np.asarray(left @ right.T)
    if left.dtype == np.int8 and (vnni := compiled_int8()):
        return np.asarray(vnni.Columns(right).multiplied(left))
    import torch

    if left.dtype == np.int8:
        return int8_product(left, right)
    return (bfloat16_rows(left) @ bfloat16_rows(right).T).view(torch.uint16).numpy()


def int8_product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the product of int8 rows by torch's private function for it."""
    import torch

    x, y = torch.from_numpy(left), torch.from_numpy(right)
    if x.shape[1] == 1:  # which _int_mm leaves unset in torch 2.13
        return (x.int() * y.int().T).numpy()
    return torch._int_mm(x, y.T).numpy()


def bfloat16_rows(bits: NDArray[Any]) -> torch.Tensor:
    """Return rows given as bits as a tensor that shares their memory."""
    import torch

    return torch.from_numpy(bits).view(torch.bfloat16)


@cache
def loops() -> ModuleType:
    """Return the compiled loops, which are loaded when first used: Numba takes half a second."""
    from miner.knn.core import compiled

    return compiled


@cache
def compiled_int8() -> ModuleType | None:
    """Return the module that compiles int8 products, or None where another way is faster."""
    from miner.knn.core import vnni  # loads Numba

    slower = vnni.HAS_AMX and find_spec("torch") is not None
    return vnni if vnni.AVAILABLE and not slower else None


def numbers_of(tile: NDArray[Any]) -> NDArray[np.float32]:
    """Return a product as float32, whatever it was computed in."""
    if tile.dtype == np.uint16:
        return (tile.astype(np.uint32) << 16).view(np.float32)
    return tile.astype(np.float32)


def torch_pays(operations: float) -> bool:
    """Return whether torch is to be used for so many operations: loaded already, or worth it."""
    loaded = sys.modules.get("torch") is not None
    return loaded or (operations >= TORCH_FROM and find_spec("torch") is not None)


@cache
def int8_is_exact() -> bool:
    """Return whether int8 products of the largest codes are right here.

    Without VNNI instructions oneDNN sums pairs of products in 16 bits, which saturate
    (pytorch/pytorch#136746). torch avoids it from 2.6 on, unless ONEDNN_MAX_CPU_ISA hides VNNI.
    """
    numbers = np.full((64, 64), INT8_MAX, dtype=np.int8)
    numbers[::2] *= -1
    exact = numbers.astype(np.int32) @ numbers.T.astype(np.int32)
    return np.array_equal(product(numbers, numbers), exact)
