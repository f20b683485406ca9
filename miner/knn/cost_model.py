"""Estimate operations, seconds and memory of a search on a machine.

A multiply-add is two operations.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from miner.arrays import Matrix
from miner.knn.core import passes
from miner.knn.core.codes import Codes, Precision, codes_of, encode_both
from miner.knn.core.passes import TopK, find_hits
from miner.knn.core.products import (
    INT8_DIMENSIONS,
    LARGE,
    TORCH_FROM,
    compiled_int8,
    loops,
    low_precision_pays,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.core.tuning import choose, product_rates, type_of_integers
from miner.knn.exact import find_distinct
from miner.knn.method import POINTS, PROBES, ROUNDS, default_cells
from miner.threads import on_one_thread, run_in_threads, thread_count

# The cell join.
UNEVEN = 1.3  # compared pairs, relative to even cells
PARTS = 4.8  # parts of both rounds that contain a row, which each prepares
SPLIT = 1.2  # cells after splitting, relative to the requested number
SAMPLED = 1021  # rows per side whose exact neighbours measure recall
# FAISS.
TRAINING_ROWS, TRAINING_ROUNDS = 256, 10  # of k-means, rows per cell
PROBED_CELLS = 1 / 16  # share of the cells that a search reads
# Time of an operation in a cell, read row by row, relative to a product: 7.1 and 8.8 for 32,768
# rows of 256 and 16,384 of 1024 dimensions, one thread of an AMD EPYC, 2026-11-22.
SCANNING = 8
ROW_BYTES = 160  # per row, of unique rows and bounds
THREAD_BYTES = 24 << 20  # a tile of products (4 MiB), the library's copies, a rescored block

# The trial.
REPEATS = 3
SUSTAINED = 0.3  # seconds in all threads; an idle CPU takes some tenths to reach its speed
ROWS = 8192  # per side: 8 MiB of 256 dimensions, more than a core's caches
# Typical bounds of a row that exceed its k-th cosine, though their cosines don't.
HIDDEN = 8
# The axes of codes of longer vectors of text, and then such bounds (65,536 rows of 768 and 1,024).
AXES, HIDDEN_BY_AXES = 384, 200
HITS = 1 << 15


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The numbers of rows, dimensions and neighbours of a two-way search."""

    sources: int
    targets: int
    dim: int
    k: int

    @property
    def similarities(self) -> int:
        """The number of pairs of a source and a target."""
        return self.sources * self.targets

    @property
    def rows(self) -> int:
        """The sum of the numbers of rows of both sides."""
        return self.sources + self.targets


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The measured speed of each of ``threads`` threads.

    ``int8`` names the instruction set or library of int8 products, or is ``none``. Per second, a
    thread does ``products`` operations by precision, and ``integers`` operations to assign rows to
    cells. ``cosine`` is seconds per exact cosine and its insertion, and ``preparation`` per row.
    """

    threads: int
    int8: str
    products: Mapping[Precision, float]
    integers: float
    cosine: float
    preparation: float


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The estimated operations and elapsed seconds of ``method``, in words."""

    method: str
    operations: float
    seconds: float


def exact_cost(problem: Problem, machine: Machine, precision: Precision | None = None) -> Cost:
    """Estimate the cost of exact search in ``precision``, or in the fastest.

    Raises KeyError if ``machine.products`` lacks the precision.
    """
    rate = machine.products[precision] if precision else max(machine.products.values())
    ways = [(problem.dim, HIDDEN)] + [(AXES, HIDDEN_BY_AXES)] * (problem.dim > AXES)
    fewest = min(problem.sources, problem.targets)
    seeds = passes.SEEDS * problem.rows * (fewest >= passes.MIN_COLUMNS_TO_SEED)
    seconds = min(
        (problem.similarities + seeds) * 2 * width / rate
        + (_hits(problem) + problem.rows * hidden) * machine.cosine
        + problem.rows * machine.preparation
        for width, hidden in ways
    )
    operations = 2.0 * problem.similarities * problem.dim
    return Cost(method="exact", operations=operations, seconds=seconds / machine.threads)


def _hits(problem: Problem) -> float:
    # Of M columns in random order, column m is among the best k so far with odds k / m.
    total = 0.0
    for rows, columns in ((problem.sources, problem.targets), (problem.targets, problem.sources)):
        k = max(1, min(problem.k, columns))
        total += rows * k * (1 + math.log(max(1.0, columns / k)))
    return total


def cells_cost(problem: Problem, machine: Machine) -> Cost:
    """Estimate the cost of the default cell join, and of measuring its recall."""
    cells = default_cells(max(problem.sources, problem.targets))
    share = min(1.0, UNEVEN * PROBES**2 / cells)
    similarities = share * problem.similarities + problem.rows * SAMPLED
    assigned = problem.rows * SPLIT * cells + (2 * ROUNDS + 1) * POINTS * cells * cells
    row = (HIDDEN + problem.k) * machine.cosine
    seconds = (
        2 * similarities * problem.dim / max(machine.products.values())
        + 2 * assigned * problem.dim / machine.integers
        + problem.rows * (PARTS * (row + machine.preparation) + machine.preparation)
    )
    name = f"cells, {PROBES} of {cells:,} per row"
    operations = 2.0 * (similarities + assigned) * problem.dim
    return Cost(method=name, operations=operations, seconds=seconds / machine.threads)


def index_cost(problem: Problem, machine: Machine, cells: int) -> Cost:
    """Estimate the cost of FAISS's IVF,Flat with ``cells`` in both directions."""
    probed = max(1, round(cells * PROBED_CELLS))
    scans = 2 * 2.0 * problem.similarities * problem.dim * probed / cells
    products = 2 * 2.0 * problem.rows * cells * problem.dim  # rows are added, then searched for
    for rows in (problem.sources, problem.targets):  # k-means
        trained = min(rows, TRAINING_ROWS * cells)
        products += 2.0 * trained * cells * problem.dim * TRAINING_ROUNDS
    seconds = (SCANNING * scans + products) / machine.products["float32"] / machine.threads
    return Cost(method=f"IVF{cells},Flat", operations=scans + products, seconds=seconds)


def tile_bytes(problem: Problem, *, threads: int) -> int:
    """Return an upper bound of an exact search's bytes, unit rows included."""
    row = problem.dim * (4 + 4 + 2) + 3 * 12 * problem.k + ROW_BYTES
    return problem.rows * row + threads * THREAD_BYTES


def rows_per_shard(room: int, *, dim: int, k: int, threads: int, least: int, most: int) -> int:
    """Return the number of rows per shard for a search in ``room`` bytes.

    It is ``least`` times the largest power of two such that two shards fit at once
    (``tile_bytes``), at most ``most``, or 0 if two shards of ``least`` rows do not fit.
    """
    row_of_each = Problem(sources=1, targets=1, dim=dim, k=k)
    rows = (room - threads * THREAD_BYTES) // tile_bytes(row_of_each, threads=0)
    if rows < least:
        return 0
    doublings = (rows // least).bit_length() - 1
    return min(least << doublings, most)


def measure_machine(*, dim: int, k: int) -> Machine:
    """Measure the speed of this machine in a few seconds.

    It may load torch, and times steps of a search of ``dim`` dimensions for ``k`` neighbours.
    """
    low_precision_pays(TORCH_FROM)  # may load torch, which would use other threads
    return on_one_thread(lambda: _measure(dim, k))


def _measure(dim: int, k: int) -> Machine:
    random = np.random.default_rng(0)
    x, y = (unit_rows(random.standard_normal((ROWS, dim))) for _ in range(2))
    tile = x[: passes.TILE_ROWS], y[: passes.TILE_COLUMNS]
    products = {
        precision: _rate(*encode_both(*tile, precision))
        for precision in product_rates()
        if dim < INT8_DIMENSIONS or precision not in ("int8", "int16")
    }
    integers = type_of_integers(dim, TORCH_FROM)
    kernels = compiled_int8()
    return Machine(
        threads=thread_count(),
        int8=kernels.CHOSEN.name if kernels else "torch" if "int8" in products else "none",
        products=products,
        integers=_rate(*(codes_of(side, integers) for side in tile)),
        cosine=_taking(x, y, k),
        preparation=_preparing(x, y, k),
    )


def _sustained(work: Callable[[], object]) -> float:
    """Return the mean seconds of a call, while each thread makes calls."""
    work()
    means = []

    def call(_: int) -> None:
        calls, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < SUSTAINED:
            work()
            calls += 1
        means.append(spent / calls)

    run_in_threads(call, range(thread_count()))
    return float(np.mean(means))


def _rate(left: Codes, right: Codes) -> float:
    """Return a thread's operations per second in tiles without hits."""
    floors = np.full(len(left), LARGE, np.float32), np.full(len(right), LARGE, np.float32)
    seconds = _sustained(lambda: find_hits(left, right, *floors))
    return 2.0 * left.numbers.size * len(right) / seconds


def _taking(x: Matrix, y: Matrix, k: int) -> float:
    """Return a thread's seconds per hit, of random pairs of rows."""
    pairs = np.random.default_rng(1).integers(len(x) * len(y), size=HITS, dtype=np.int32)
    hits, places = (pairs, np.full(HITS, 2, dtype=np.float32)), (np.arange(ROWS), np.arange(ROWS))

    def take() -> float:
        both = TopK.empty(len(x), k), TopK.empty(len(y), k)
        start = time.perf_counter()
        loops().take(hits, places, (x, y), places, both, np.float32(0), False)
        return time.perf_counter() - start

    return min(take() for _ in range(1 + REPEATS)) / HITS


def _preparing(x: Matrix, y: Matrix, k: int) -> float:
    """Return seconds per row, without the time to compile loops."""

    def prepare() -> float:
        start = time.perf_counter()
        sides = unit_rows(x), unit_rows(y)
        find_distinct(sides[0]), find_distinct(sides[1])
        encode_both(*sides, choose(*sides, k=k, precision=None))
        return (time.perf_counter() - start) / (len(x) + len(y))

    return min(prepare() for _ in range(2))
