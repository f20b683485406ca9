"""Rows of vectors: packed into 4 bits a number, summed, and brought to unit length.

Everything is added in a fixed order, so results do not depend on the machine. Where D is a multiple
of 8 they have the bits of torch's ``embedding_bag`` and ``normalize`` on x86 processors.
Axes: ``V`` rows of a table, ``S`` sums, ``D`` dimensions.
"""

import sys
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from encoder.tokenizer import Tokens
from miner.threads import blocks, in_threads

Matrix = NDArray[np.float32]

LARGEST = 7  # of the whole numbers, of 4 bits with their sign, that stand for those of a row
# A row's largest number is cut off to one of these shares, where the others gain by finer steps.
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6)

COMPILED_FROM = 1 << 18  # tokens; for fewer, loading Numba takes longer than doing without it
THREAD_SUMS = 4096  # that a thread makes at once
BLOCK = 256  # sums that are made together without Numba: they stay in a processor's cache
MIN_LENGTH = 1e-12  # that a vector is divided by
LANES = 8  # partial sums of a norm

# The two numbers that each byte of codes stands for, as the bits of two float32 in one complex64.
_PAIRS = (
    (np.stack(np.divmod(np.arange(256), 16), axis=1) - 8.0).astype(np.float32).view(np.complex64)
)


@dataclass(frozen=True, kw_only=True)
class PackedTable:
    """A table of V rows of D whole numbers from -7 to 7, times a scale for each row, float32 (V,).

    ``codes`` are the numbers plus 8, the first of two in the upper bits: uint8 (V, ceil(D / 2)).
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]
    dim: int

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: NDArray[np.int64]) -> Matrix:
        """Unpack rows: float32 (R, D)."""
        numbers: Matrix = _PAIRS.take(self.codes[rows]).view(np.float32)[:, : self.dim]
        return numbers * self.scales[rows, None]

    @property
    def shape(self) -> tuple[int, int]:
        """Return V and D."""
        return len(self), self.dim


def pack(table: Matrix) -> PackedTable:
    """Pack float32 (V, D); each row has that scale of ``SHARES`` with the least squared error."""
    largest = np.abs(table).max(axis=1)
    codes = np.zeros(table.shape, dtype=np.int8)
    scales = np.zeros(len(table), dtype=np.float32)
    least = np.full(len(table), np.inf)
    for share in SHARES:
        tried = np.maximum(largest * (share / LARGEST), np.finfo(np.float32).tiny)[:, None]
        rounded = np.clip(np.rint(table / tried), -LARGEST, LARGEST)
        errors = np.square(rounded * tried - table, dtype=np.float64).sum(axis=1)
        better = errors < least
        codes[better], scales[better] = rounded[better], tried[better, 0]
        least[better] = errors[better]
    rows, dim = table.shape
    nibbles = np.zeros((rows, dim + dim % 2), dtype=np.uint8)
    nibbles[:, :dim] = codes + 8
    packed = np.asarray(nibbles[:, ::2] << 4 | nibbles[:, 1::2], dtype=np.uint8)
    return PackedTable(codes=packed, scales=scales, dim=dim)


def sum_rows(table: Matrix | PackedTable, tokens: Tokens, out: Matrix | None = None) -> Matrix:
    """Sum the rows (V, D) that each list of tokens names: float32 (S, D), in ``out`` if given."""
    sums = np.empty((len(tokens), table.shape[1]), dtype=np.float32) if out is None else out
    if len(tokens.ids) < COMPILED_FROM and "encoder.compiled" not in sys.modules:
        _sum_plainly(table, tokens, sums)
        return sums
    from encoder import compiled  # loads Numba

    def add(block: slice) -> None:
        ids, offsets = tokens.ids, tokens.offsets[block.start : block.stop + 1]
        if isinstance(table, PackedTable):
            compiled.sum_packed(table.codes, table.scales, ids, offsets, sums[block])
        else:
            compiled.sum_floats(table, ids, offsets, sums[block])

    in_threads(add, blocks(len(tokens), THREAD_SUMS))
    return sums


def _sum_plainly(table: Matrix | PackedTable, tokens: Tokens, sums: Matrix) -> None:
    """Add the first row of each list of tokens, the second of each that has two, and so on."""
    used = np.zeros(len(table), dtype=np.bool_)
    used[tokens.ids] = True
    rows = table[np.flatnonzero(used)]
    ids = (used.cumsum() - 1)[tokens.ids]
    lengths = np.diff(tokens.offsets)
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        total = np.zeros((len(block), rows.shape[1]), dtype=np.float32)
        for place in range(lengths[block[0]]):
            longer = block[lengths[block] > place]
            total[: len(longer)] += rows[ids[tokens.offsets[longer] + place]]
        sums[block] = total


def normalize_rows(rows: Matrix) -> Matrix:
    """Bring rows (S, D) to unit length, in place, zero rows excepted; return their lengths (S,)."""
    count, dim = rows.shape
    if compiled := sys.modules.get("encoder.compiled"):
        found = np.empty(count, dtype=np.float32)
        compiled.normalize(rows, found, np.float32(MIN_LENGTH))
        return found
    whole = dim - dim % LANES
    sums = np.zeros((count, LANES), dtype=np.float32)
    for start in range(0, whole, LANES):
        sums += np.square(rows[:, start : start + LANES])
    parts = [*sums.T, *np.square(rows[:, whole:]).T]
    lengths = np.sqrt(reduce(np.add, parts))
    rows /= np.maximum(lengths, np.float32(MIN_LENGTH))[:, None]
    return lengths
