"""Products of codes in the fastest way.

NumPy multiplies floats. Compiled kernels (``miner.knn.core.int8``) multiply int8 by an instruction
set of the CPU. torch multiplies bfloat16, and int8 if it is faster or the CPU lacks a set: up to
eight times as fast as float32, but loading takes seconds. Results of a search do not depend on the
library. A build of torch that lacks a function raises AttributeError or RuntimeError. ``ADIT_INT8``
of the environment may choose a set instead of torch, or ``none``; an unknown one raises ValueError.
Bits of bfloat16 are stored as uint16. Axes: ``R`` rows, ``C`` columns, ``D`` dimensions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter, process_time, thread_time
from timeit import repeat
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miner.threads import on_one_thread

if TYPE_CHECKING:
    import torch

ROWS, COLUMNS, DIM, REPEATS = 256, 1024, 512, 5  # of trials of some milliseconds
BLAS_SECONDS = 0.04  # of a trial, many ticks of a system
LARGE = 2.0**99  # larger than any bound
TORCH_FROM = 1 << 38  # operations that pay for loading torch: seconds in float32
INT8_MAX = 127
DEPTH = 4  # codes that most instructions sum
FLOAT32_MAX_DIMENSIONS = 1040  # 127 * 127 * D stays below 2**24: float32 sums it exactly
INT8_DIMENSIONS = 1 << 17  # limit, below which 127 * 127 * D is less than 2**31


def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Multiply codes (R, D) by codes (C, D) of the same type, but not int16.

    Products (R, C) are int32 for int8 codes (-127 to 127), and exact if ``int8_is_exact``. They are
    float32 or float64 for floats, and bits of bfloat16 for such bits, uint16 both.
    ModuleNotFoundError says that bfloat16, or int8 on this CPU, needs torch.
    """
    if left.dtype in (np.float32, np.float64):
        return np.asarray(left @ right.T)
    if left.dtype == np.int8:
        kernels = compiled_int8()
        return kernels.Columns(right).multiplied(left) if kernels else int8_product(left, right)
    import torch

    return (bfloat16_rows(left) @ bfloat16_rows(right).T).view(torch.uint16).numpy()


def int8_product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Multiply int8 codes (R, D) by (C, D) with torch, to int32 (R, C).

    ``is_exact`` says if they are right on this CPU. ModuleNotFoundError says that torch is missing.
    """
    import torch

    x, y = torch.from_numpy(left), torch.from_numpy(right)
    if x.shape[1] == 1:  # _int_mm of torch 2.13 would leave it unset
        return (x.int() * y.int().T).numpy()
    return torch._int_mm(x, y.T).numpy()


def bfloat16_rows(bits: NDArray[Any]) -> torch.Tensor:
    """Return bits, uint16, as a bfloat16 tensor that shares their memory."""
    import torch

    return torch.from_numpy(bits).view(torch.bfloat16)


@cache
def loops() -> ModuleType:
    """Return the module ``miner.knn.core.compiled``, which loads Numba."""
    from miner.knn.core import compiled

    return compiled


@cache
def int8_kernels() -> ModuleType | None:
    """Return ``miner.knn.core.int8``, or None without an ``InstructionSet``."""
    from miner.knn.core import int8  # loads Numba

    return int8 if int8.CHOSEN else None


def compiled_int8() -> ModuleType | None:
    """Return ``int8_kernels``, or None if torch is loaded and faster."""
    kernels = int8_kernels()
    return kernels if kernels and not (torch_is_loaded() and _torch_is_faster()) else None


@cache
def _torch_is_faster() -> bool:
    kernels = int8_kernels()
    if kernels is None or kernels.ASKED:
        return kernels is None
    random = np.random.default_rng(0)
    sides = [
        random.integers(-INT8_MAX, INT8_MAX, (count, DIM), np.int8, endpoint=True)
        for count in (ROWS, COLUMNS)
    ]
    # Scale, bias and floor of each row and column.
    codes = [np.array([[1], [0], [LARGE]], np.float32).repeat(len(s), axis=1) for s in sides]
    return _torch_wins(
        lambda: loops().hits(int8_product(*sides), np.float32(0), *map(tuple, codes)),
        lambda: kernels.hits(*sides, *map(tuple, codes)),
    )


def _torch_wins(with_torch: Callable[[], object], without: Callable[[], object]) -> bool:
    """Return whether torch's int8 products are exact, and make a call faster."""
    try:
        return is_exact(int8_product) and on_one_thread(
            lambda: seconds_of(with_torch) < seconds_of(without)
        )
    except (RuntimeError, AttributeError, ImportError):  # a build without int8 products
        return False


def multiplier(
    columns: NDArray[np.int8], largest: int = INT8_MAX
) -> Callable[[NDArray[np.int8]], NDArray[np.int32]]:
    """Return a function that multiplies rows (R, D) by ``columns`` (C, D).

    The function returns exact products (R, C). It uses torch if that is loaded and faster, and
    NumPy's floats without an ``InstructionSet``. Codes of both are -``largest`` to ``largest``. If
    that is at most 63, AVX2 multiplies faster. ``columns`` must not change after the call.
    """
    from miner.knn.core import int8  # loads Numba

    if not int8.CHOSEN:
        floats = np.float32 if columns.shape[1] <= FLOAT32_MAX_DIMENSIONS else np.float64
        others: NDArray[Any] = columns.T.astype(floats)
        return lambda rows: np.asarray(rows.astype(floats) @ others, dtype=np.int32)
    kernels = int8.Columns(columns, largest).multiplied
    if int8.ASKED or not torch_is_loaded():
        return kernels

    by_torch = partial(int8_product, right=columns)
    is_faster = _torch_wins(*(partial(way, columns[:ROWS]) for way in (by_torch, kernels)))
    return by_torch if is_faster else kernels


@cache
def largest_code() -> int:
    """Return the largest int8 code of columns with exact products, 79 or 127."""
    kernels = int8_kernels()
    return kernels.LARGEST if kernels else INT8_MAX


@cache
def largest_sum() -> int:
    """Return the largest sum of eight int8 row codes of one sign.

    It is 206, or 1,016, which no eight codes exceed. ``InstructionSet`` says which eight.
    """
    kernels = int8_kernels()
    return kernels.LARGEST_SUM if kernels else 8 * INT8_MAX


def seconds_of(work: Callable[[], object]) -> float:
    """Return this thread's CPU seconds for ``work``, the least of five calls.

    For products of OpenBLAS, which may use other threads, use ``blas_seconds_of``.
    """
    return max(1e-9, min(repeat(work, timer=thread_time, number=1, repeat=REPEATS)))


def blas_seconds_of(work: Callable[[], object]) -> float:
    """Return the mean CPU seconds of this process per call of ``work``.

    It calls for 40 milliseconds or more. Systems add the time of other running threads only every
    1 to 10 milliseconds, so one call may seem as many times as fast as OpenBLAS has threads. The
    time that these threads wait for the next call counts.
    """
    work()  # starts the threads
    calls, start, used = 0, perf_counter(), process_time()
    while calls == 0 or perf_counter() - start < BLAS_SECONDS:
        work()
        calls += 1
    return max(1e-9, process_time() - used) / calls


def numbers_of(tile: NDArray[Any]) -> NDArray[np.float32]:
    """Convert codes or products to float32, uint16 as bits of bfloat16."""
    if tile.dtype == np.uint16:
        return (tile.astype(np.uint32) << 16).view(np.float32)
    return tile.astype(np.float32)


def torch_is_loaded() -> bool:
    """Return whether this process has imported torch."""
    return sys.modules.get("torch") is not None


def torch_pays(operations: float) -> bool:
    """Return whether torch is loaded, or installed and worth loading.

    It is worth loading from 2**38 ``operations``, two for each multiply-add.
    """
    return torch_is_loaded() or (operations >= TORCH_FROM and find_spec("torch") is not None)


def low_precision_pays(operations: float) -> bool:
    """Return whether precisions below float32 may be faster.

    They may with ``int8_kernels``. Otherwise, they may if ``torch_pays``, and torch is then loaded.
    """
    if int8_kernels():
        return True
    if not torch_pays(operations):
        return False
    with suppress(ImportError):
        import_module("torch")
    return True


@cache
def int8_is_exact() -> bool:
    """Return whether ``product`` is exact for int8 codes, or raise its errors."""
    return is_exact(product)


def is_exact(multiply: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]) -> bool:
    """Return whether ``multiply`` multiplies the largest int8 codes exactly.

    Without VNNI instructions, oneDNN sums pairs of products in 16 bits, which saturate
    (pytorch/pytorch#136746). torch avoids it from 2.6 on, unless ONEDNN_MAX_CPU_ISA hides VNNI.
    """
    numbers = np.full((64, 64), INT8_MAX, dtype=np.int8)
    numbers[::2] *= -1
    exact = numbers.astype(np.int32) @ numbers.T.astype(np.int32)
    return np.array_equal(multiply(numbers, numbers), exact)
