"""Multiply two sides and find large products in one kernel.

Each program computes a tile of X·Yᵀ in registers, and writes only the *hits*: products above the
floor of their row to a buffer of that row, and above the floor of their column to a buffer of that
column. The matrix itself is never written. Importing this module imports Triton.
"""

from typing import NamedTuple, Self

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from miner.knn.gpu import keys

GROUP = 8  # rows of tiles per column, whose vectors stay in the L2 cache
# Hits per row of a tile that are written. In random order, more than ten are rare. The lines of a
# tile with more hits, such as of many duplicates, count as overflowed.
MAX_HITS_PER_TILE_ROW = 32


class Tiling(NamedTuple):
    """A tile's rows and columns, dimensions per step, and Triton's options."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


# Best first, in theory. A tile reads (rows + columns) * D numbers from L2 for rows * columns * D
# multiplications, so the largest needs L2 least: 85 operations per byte compared with 64. It fills
# an SM alone. Two of the second fit, and one finds hits while the other multiplies. The last needs
# 48 KiB of shared memory, which every card since 2017 has.
TILINGS = (
    Tiling(rows=128, columns=256, depth=64, warps=8, stages=3),
    Tiling(rows=128, columns=128, depth=64, warps=4, stages=3),
    Tiling(rows=64, columns=128, depth=32, warps=4, stages=3),
)


class Hits(NamedTuple):
    """The hits of each row, or of each column, of a cell.

    ``keys``, int64 (N, B), are from ``miner.knn.gpu.keys``, in any order, EMPTY if unused.
    ``counts``, int32 (N,), are numbers of hits, or any number above B if hits may be missing.
    """

    keys: torch.Tensor
    counts: torch.Tensor

    @classmethod
    def empty(cls, side: torch.Tensor, capacity: int) -> Self:
        """Return no hits, with room for ``capacity`` per row of a side."""
        counts = torch.zeros(len(side), dtype=torch.int32, device=side.device)
        return cls(keys.no_candidates(len(side), capacity, side.device), counts)


def find_hits(
    x: torch.Tensor,
    y: torch.Tensor,
    row_floors: torch.Tensor,
    column_floors: torch.Tensor,
    *,
    first_row: int,
    first_column: int,
    capacity: int,
    tiling: Tiling,
) -> tuple[Hits, Hits]:
    """Find the hits of rows (N), and the hits of columns (M), above floors.

    ``x`` (N, D) and ``y`` (M, D) are float16 or bfloat16, contiguous and not empty, and D is a
    multiple of 8. Hits of a row exceed its floor in ``row_floors`` (N,), and hits of a column its
    floor in ``column_floors`` (M,), float32. All tensors are on one device. ``first_row`` and
    ``first_column`` are the positions of the first rows of ``x`` and ``y``, for keys. There is room
    for ``capacity`` hits per row and per column, B of ``Hits``. ``tiling`` has no ``fault``.
    """
    of_rows, of_columns = Hits.empty(x, capacity), Hits.empty(y, capacity)
    tiles = triton.cdiv(len(x), tiling.rows) * triton.cdiv(len(y), tiling.columns)
    _find_hits[(tiles,)](
        TensorDescriptor.from_tensor(x, [tiling.rows, tiling.depth]),
        TensorDescriptor.from_tensor(y, [tiling.columns, tiling.depth]),
        *(row_floors, column_floors, *of_rows, *of_columns),
        *(len(x), len(y), x.shape[1], first_row, first_column, capacity),
        ROWS=tiling.rows,
        COLUMNS=tiling.columns,
        DEPTH=tiling.depth,
        GROUP=GROUP,
        MAX_HITS_PER_TILE_ROW=MAX_HITS_PER_TILE_ROW,
        num_warps=tiling.warps,
        num_stages=tiling.stages,
    )
    return of_rows, of_columns


def fault(tiling: Tiling, device: torch.device, dtype: torch.dtype) -> str:
    """Describe why a tiling does not work on a device, or return ""."""
    rows, columns = tiling.rows + 3, 2 * tiling.columns + 5
    generator = torch.Generator().manual_seed(0)
    x, y = (
        torch.randint(-9, 10, (lines, 2 * tiling.depth + 8), generator=generator).to(dtype)
        for lines in (rows, columns)
    )
    table = x.float() @ y.float().T
    # From 2 to 4 standard deviations, so that lines have none, some, or too many hits.
    row_floors = (2 + 2 * torch.rand(rows, generator=generator)) * table.std()
    column_floors = (2 + 2 * torch.rand(columns, generator=generator)) * table.std()
    try:
        of_rows, of_columns = find_hits(
            *(tensor.to(device) for tensor in (x, y, row_floors, column_floors)),
            first_row=7,
            first_column=9,
            capacity=6,
            tiling=tiling,
        )
        right = _are_hits(of_rows, table, row_floors, first=9)
        right = right and _are_hits(of_columns, table.T, column_floors, first=7)
    except Exception as error:  # of the compiler, the driver or the card
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "" if right else "its products are wrong"


def _are_hits(hits: Hits, table: torch.Tensor, floors: torch.Tensor, *, first: int) -> bool:
    above = table > floors[:, None]
    positions = torch.arange(first, first + table.shape[1]).expand(table.shape)
    expected = keys.pack(table, positions).masked_fill(~above, keys.EMPTY)
    counts, room = above.sum(dim=1), hits.keys.shape[1]
    complete = counts <= room
    return torch.equal(hits.counts.cpu(), counts.int()) and torch.equal(
        hits.keys.cpu().sort(dim=1, descending=True).values[complete],
        expected.topk(room, dim=1).values[complete],
    )


@triton.jit(do_not_specialize=["rows", "columns", "dim", "first_row", "first_column", "capacity"])
def _find_hits(
    x,
    y,
    row_floors,
    column_floors,
    row_keys,
    row_counts,
    column_keys,
    column_counts,
    rows,
    columns,
    dim,
    first_row,
    first_column,
    capacity,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
    MAX_HITS_PER_TILE_ROW: tl.constexpr,
):
    """Write the hits of a tile, in GROUP rows of tiles, column by column."""
    across = tl.cdiv(columns, COLUMNS)
    group = tl.program_id(0) // (GROUP * across)
    place = tl.program_id(0) % (GROUP * across)
    height = min(tl.cdiv(rows, ROWS) - group * GROUP, GROUP)
    top = (group * GROUP + place % height) * ROWS
    left = place // height * COLUMNS

    # The descriptors' loads are Hopper's bulk copies; beyond an edge they give zeros.
    products = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, dim, DEPTH):
        products = tl.dot(x.load([top, start]), y.load([left, start]).T, products)

    row = top + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    if (top + ROWS > rows) | (left + COLUMNS > columns):  # at an edge
        inside = (row < rows)[:, None] & (left + column < columns)[None, :]
        products = tl.where(inside, products, float("-inf"))
    row_floor = tl.load(row_floors + row, mask=row < rows, other=float("inf"))
    column_floor = tl.load(
        column_floors + left + column, mask=left + column < columns, other=float("inf")
    )
    floor = tl.minimum(row_floor[:, None], column_floor[None, :])
    # Every tile costs three operations per product. Maxima are along rows, which are within four
    # threads of a warp. In float32, a > b if and only if a - b > 0.
    if tl.max(tl.max(products - floor, axis=1), axis=0) > 0:
        products = tl.where(products > floor, products, float("-inf"))
        best = tl.max(products, axis=1)
        # Each round writes the best hit per row. Nearly all tiles have one or two. Pointers for all
        # products at once would exceed the registers, and Triton 3.9 fails to compile them.
        rounds = 0
        while (tl.max(best, axis=0) > float("-inf")) & (rounds < MAX_HITS_PER_TILE_ROW):
            here = products == best[:, None]
            at = tl.min(tl.where(here, tl.arange(0, COLUMNS)[None, :], COLUMNS), axis=1)
            other = left + at
            least = tl.load(column_floors + other, mask=best > float("-inf"), other=float("inf"))
            above = best > row_floor
            _append(row_keys, row_counts, row, first_column + other, best, above, capacity)
            above = best > least
            _append(column_keys, column_counts, other, first_row + row, best, above, capacity)
            taken = tl.arange(0, COLUMNS)[None, :] == at[:, None]
            products = tl.where(taken, float("-inf"), products)
            best = tl.max(products, axis=1)
            rounds += 1
        if tl.max(best, axis=0) > float("-inf"):
            full = capacity + 1
            left_out = best > float("-inf")
            tl.atomic_add(row_counts + row, full, mask=left_out, sem="relaxed")
            left_out = tl.max(products, axis=0) > float("-inf")
            tl.atomic_add(column_counts + left + column, full, mask=left_out, sem="relaxed")


@triton.jit
def _append(keys, counts, lines, others, products, wanted, capacity):
    """Count a hit of each wanted line, and write it if there is room."""
    place = tl.atomic_add(counts + lines, 1, mask=wanted, sem="relaxed")
    bits = products.to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # as miner.knn.gpu.keys.pack orders them
    key = (bits.to(tl.int64) << 32) | others.to(tl.int64)
    slots = lines.to(tl.int64) * capacity + place
    tl.store(keys + slots, key, mask=wanted & (place < capacity))
