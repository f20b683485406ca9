"""Rows of vectors, packed into 4 bits per number, summed and normalised.

Numbers are added in a fixed order, so results do not depend on the machine. If D is a multiple of
8, results have the same bits as torch's ``embedding_bag`` and ``normalize`` on x86 CPUs. Axes:
``V`` rows of a table, ``S`` sums, ``D`` dimensions.
"""

import sys
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from encoder.tokenizer import Tokens
from miner.threads import blocks, run_in_threads

Matrix = NDArray[np.float32]

LARGEST = 7  # the largest code, of 4 bits with its sign
# Shares of a row's largest number to clip at, which gives the other numbers finer steps.
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6)

COMPILED_FROM = 1 << 18  # tokens; for fewer, loading Numba takes longer than it saves
THREAD_SUMS = 4096  # sums per call of a thread
BLOCK = 256  # sums per step without Numba, which fit into a CPU's cache
MIN_LENGTH = 1e-12  # the least divisor of a vector
LANES = 8  # partial sums of a norm

# The two numbers of each byte of codes, as the bits of two float32 in one complex64.
_PAIRS = (
    (np.stack(np.divmod(np.arange(256), 16), axis=1) - 8.0).astype(np.float32).view(np.complex64)
)


@dataclass(frozen=True, kw_only=True)
class PackedTable:
    """A table of V rows of D whole numbers in 4 bits, with a scale per row.

    Attributes:
        codes: numbers plus 8, two per byte, the first in the upper bits, uint8 (V, ceil(D / 2)).
        scales: the factors of the rows, float32 (V,).
        dim: the number of dimensions D.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]
    dim: int

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: NDArray[np.int64]) -> Matrix:
        """Return the rows at R positions, numbers times scales, float32 (R, D)."""
        numbers: Matrix = _PAIRS.take(self.codes[rows]).view(np.float32)[:, : self.dim]
        return numbers * self.scales[rows, None]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of dimensions."""
        return len(self), self.dim


def pack(table: Matrix) -> PackedTable:
    """Pack float32 (V, D) to 4 bits, each row at the most exact of 5 scales."""
    largest = np.abs(table).max(axis=1)
    codes = np.zeros(table.shape, dtype=np.int8)
    scales = np.zeros(len(table), dtype=np.float32)
    least = np.full(len(table), np.inf)
    for share in SHARES:
        scale = np.maximum(largest * (share / LARGEST), np.finfo(np.float32).tiny)[:, None]
        rounded = np.clip(np.rint(table / scale), -LARGEST, LARGEST)
        errors = np.square(rounded * scale - table, dtype=np.float64).sum(axis=1)
        is_better = errors < least
        codes[is_better], scales[is_better] = rounded[is_better], scale[is_better, 0]
        least[is_better] = errors[is_better]
    dim = table.shape[1]
    nibbles = np.pad(codes + 8, ((0, 0), (0, dim % 2))).view(np.uint8)
    packed = np.asarray(nibbles[:, ::2] << 4 | nibbles[:, 1::2], dtype=np.uint8)
    return PackedTable(codes=packed, scales=scales, dim=dim)


def sum_rows(table: Matrix | PackedTable, tokens: Tokens, out: Matrix | None = None) -> Matrix:
    """Sum the table rows in each of S lists of row numbers, float32 (S, D).

    ``table`` has V rows of D numbers, float32 or packed. The sums, which are 0 for an empty list,
    are a new array, or are written to ``out``, which is returned.
    """
    sums = np.empty((len(tokens), table.shape[1]), dtype=np.float32) if out is None else out
    if len(tokens.ids) < COMPILED_FROM and "encoder.compiled" not in sys.modules:
        _sum_without_numba(table, tokens, sums)
        return sums
    from encoder import compiled  # loads Numba

    def add(block: slice) -> None:
        ids, offsets = tokens.ids, tokens.offsets[block.start : block.stop + 1]
        if isinstance(table, PackedTable):
            compiled.sum_packed(table.codes, table.scales, ids, offsets, sums[block])
        else:
            compiled.sum_floats(table, ids, offsets, sums[block])

    run_in_threads(add, blocks(len(tokens), THREAD_SUMS))
    return sums


def _sum_without_numba(table: Matrix | PackedTable, tokens: Tokens, sums: Matrix) -> None:
    """Add the first rows of all lists, then the second rows, and so on."""
    used = np.zeros(len(table), dtype=np.bool_)
    used[tokens.ids] = True
    rows = table[np.flatnonzero(used)]
    ids = (used.cumsum() - 1)[tokens.ids]
    lengths = np.diff(tokens.offsets)
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        total = np.zeros((len(block), rows.shape[1]), dtype=np.float32)
        for position in range(lengths[block[0]]):
            longer = block[lengths[block] > position]
            total[: len(longer)] += rows[ids[tokens.offsets[longer] + position]]
        sums[block] = total


def normalize_rows(rows: Matrix) -> Matrix:
    """Scale rows, float32 (S, D), to unit length in place.

    Zero rows stay zero. The result is the lengths that the rows had, float32 (S,).
    """
    count, dim = rows.shape
    if compiled := sys.modules.get("encoder.compiled"):
        norms = np.empty(count, dtype=np.float32)
        compiled.normalize(rows, norms, np.float32(MIN_LENGTH))
        return norms
    whole = dim - dim % LANES
    sums = np.zeros((count, LANES), dtype=np.float32)
    for start in range(0, whole, LANES):
        sums += np.square(rows[:, start : start + LANES])
    parts = [*sums.T, *np.square(rows[:, whole:]).T]
    lengths = np.sqrt(reduce(np.add, parts))
    rows /= np.maximum(lengths, np.float32(MIN_LENGTH))[:, None]
    return lengths
