"""What a search would cost, before it is run: operations, seconds and memory.

It is arithmetic over a ``Problem`` and a ``Machine``, which a trial measures in about a second.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from miner.arrays import Matrix, Neighbours
from miner.knn.core.codes import Codes, Precision, codes_of, encode_both
from miner.knn.core.passes import (
    MIN_COLUMNS_TO_SEED,
    SEEDS,
    TILE_COLUMNS,
    TILE_ROWS,
    Candidates,
    find_hits,
)
from miner.knn.core.products import (
    INT8_DIMENSIONS,
    LARGE,
    TORCH_FROM,
    compiled_int8,
    loops,
    low_precision_pays,
    numbers_of,
    product,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.core.tuning import MAX_KEPT, SPARE, choose, product_rates, type_of_integers
from miner.knn.exact import find_distinct
from miner.knn.method import POINTS, PROBES, ROUNDS, default_cells
from miner.threads import on_one_thread, run_in_threads, thread_count

# The cell join's cells are uneven: it compares so many times the pairs of even ones. A row lies in
# so many parts of both rounds; in each it is prepared, and a candidate that is kept in the end has
# been so many hits before. Crowded cells are split, so that there are so many times the number
# asked for. The neighbours of so many rows a side are all searched for, to measure recall.
UNEVEN, PARTS, TAKEN, SPLIT, SAMPLED = 1.3, 4.8, 2, 1.2, 1021
# FAISS: k-means on at most so many rows a cell, so many times, and the share of cells that is read:
# row by row, so that an operation takes so many times as long as one of a product (7.1 and 8.8 for
# 32,768 rows of 256 and 16,384 of 1024 dimensions, one thread of an AMD EPYC, 2026-11-22).
TRAINING_ROWS, TRAINING_ROUNDS = 256, 10
PROBED_CELLS = 1 / 16
SCANNING = 8
# Bytes of a row while it is searched, beside its vectors, candidates and neighbours: the groups of
# equal rows and how they are found, and the numbers that bounds are made of.
ROW_BYTES = 160
# A tile of products (4 MiB), what the library copies to multiply, and a block that is rescored.
THREAD_BYTES = 24 << 20

# Of the trial.
REPEATS = 3
# Seconds of products in all threads: one alone is faster, and an idle processor takes some tenths
# of a second to reach its pace.
SUSTAINED = 0.3
ROWS = 8192  # of each side: 8 MiB of 256 dimensions, more than a core's own caches hold
# Candidates that a row keeps, about: what bounds ask for where vectors are spread as usual.
KEPT: dict[Precision, int] = {"int8": 16, "int16": 16, "bfloat16": 16, "float32": 8}
WANTED = 4  # of a tile by each list, while the time of insertions is taken


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A two-way search of N ``sources`` and M ``targets`` of ``dim`` numbers for K neighbours."""

    sources: int
    targets: int
    dim: int
    k: int

    @property
    def similarities(self) -> int:
        """N M: those of an exact search, one for both directions."""
        return self.sources * self.targets

    @property
    def rows(self) -> int:
        """N + M."""
        return self.sources + self.targets


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What one of ``threads`` threads does.

    ``products`` are operations a second by precision, with the test of what they come to, and
    ``integers`` those of codes by which rows find their cells; all else is in seconds:
    ``insertion`` of a candidate, ``fetch`` of a vector that is rescored and ``preparation`` of a
    row. Of each row ``kept`` candidates are kept. ``int8`` says what multiplies int8.
    """

    threads: int
    int8: str
    products: Mapping[Precision, float]
    integers: float
    kept: Mapping[Precision, int]
    insertion: float
    fetch: float
    preparation: float


@dataclass(frozen=True, kw_only=True)
class Cost:
    """``operations`` of products (a multiplication and an addition are two) and all ``seconds``."""

    method: str
    operations: float
    seconds: float


def exact_cost(problem: Problem, machine: Machine, precision: Precision | None = None) -> Cost:
    """Estimate the exact two-way search, in the precision that is given, otherwise the fastest."""
    choices = [precision] if precision else list(machine.products)
    seeds = (
        SEEDS * problem.rows if min(problem.sources, problem.targets) >= MIN_COLUMNS_TO_SEED else 0
    )
    seconds = min(
        (problem.similarities + seeds) * _similarity(problem, machine, choice)
        + _candidates(problem, machine, choice)
        + problem.rows * machine.preparation
        for choice in choices
    )
    operations = 2.0 * problem.similarities * problem.dim
    return Cost(method="exact", operations=operations, seconds=seconds / machine.threads)


def _similarity(problem: Problem, machine: Machine, precision: Precision) -> float:
    """Return seconds of one similarity: its product, and its test against two rows' candidates."""
    return 2 * problem.dim / machine.products[precision]


def _candidates(problem: Problem, machine: Machine, precision: Precision) -> float:
    """Return seconds of keeping and rescoring candidates.

    Of M columns in random order, place m is among the best C so far with odds C / m.
    """
    total = 0.0
    for rows, columns in ((problem.sources, problem.targets), (problem.targets, problem.sources)):
        kept = max(1, min(machine.kept[precision], columns))
        total += rows * kept * (1 + math.log(max(1.0, columns / kept))) * machine.insertion
        total += rows * kept * machine.fetch
    return total


def cells_cost(problem: Problem, machine: Machine) -> Cost:
    """Estimate the cell join, an approximate search, with the sample that shows its recall."""
    cells = default_cells(max(problem.sources, problem.targets))
    share = min(1.0, UNEVEN * PROBES**2 / cells)
    precision = min(machine.products, key=lambda choice: _similarity(problem, machine, choice))
    similarities = share * problem.similarities + problem.rows * SAMPLED
    assigned = problem.rows * SPLIT * cells + (2 * ROUNDS + 1) * POINTS * cells * cells
    row = machine.kept[precision] * (TAKEN * machine.insertion + machine.fetch)
    seconds = (
        similarities * _similarity(problem, machine, precision)
        + 2 * assigned * problem.dim / machine.integers
        + problem.rows * (PARTS * (row + machine.preparation) + machine.preparation)
    )
    name = f"cells, {PROBES} of {cells:,} a row"
    operations = 2.0 * (similarities + assigned) * problem.dim
    return Cost(method=name, operations=operations, seconds=seconds / machine.threads)


def index_cost(problem: Problem, machine: Machine, cells: int) -> Cost:
    """Estimate two searches of FAISS's ``IVFn,Flat`` with n ``cells``: approximate."""
    probed = max(1, round(cells * PROBED_CELLS))
    scans = 2 * 2.0 * problem.similarities * problem.dim * probed / cells
    products = 2 * 2.0 * problem.rows * cells * problem.dim  # rows are added, then searched for
    for rows in (problem.sources, problem.targets):  # k-means
        trained = min(rows, TRAINING_ROWS * cells)
        products += 2.0 * trained * cells * problem.dim * TRAINING_ROUNDS
    seconds = (SCANNING * scans + products) / machine.products["float32"] / machine.threads
    return Cost(method=f"IVF{cells},Flat", operations=scans + products, seconds=seconds)


def tile_bytes(problem: Problem, *, threads: int) -> int:
    """Return how much a search holds at most: of its vectors, all codes and all results.

    Unit rows are float32; where many are equal, the distinct ones are copied; codes take up to two
    bytes a number; a candidate takes 8 bytes, a neighbour 12, and there may be three copies of it.
    """
    kept = max(MAX_KEPT, problem.k + SPARE)
    row = problem.dim * (4 + 4 + 2) + 8 * kept + 3 * 12 * problem.k + ROW_BYTES
    return problem.rows * row + threads * THREAD_BYTES


def rows_per_shard(room: int, *, dim: int, k: int, threads: int, least: int, most: int) -> int:
    """Return the most rows, up to ``most``, of which ``room`` bytes can search two shards.

    They are ``least`` times a power of two; 0 if not even ``least`` fit.
    """

    def fits(rows: int) -> bool:
        problem = Problem(sources=rows, targets=rows, dim=dim, k=k)
        return tile_bytes(problem, threads=threads) <= room

    if not fits(least):
        return 0
    rows = least
    while rows < most and fits(2 * rows):
        rows *= 2
    return min(rows, most)


def measure_machine(*, dim: int, k: int) -> Machine:
    """Time the steps of a search of random vectors of ``dim`` numbers, each on one thread."""
    low_precision_pays(TORCH_FROM)  # before the thread begins: it is to compute alone
    return on_one_thread(lambda: _measure(dim, k))


def _measure(dim: int, k: int) -> Machine:
    random = np.random.default_rng(0)
    wide = dim >= INT8_DIMENSIONS
    rates = product_rates()
    usable = [each for each in rates if not (wide and each in ("int8", "int16"))]
    kept = {precision: max(KEPT[precision], k + SPARE) for precision in usable}
    products, insertions = {}, []
    x, y = (unit_rows(random.standard_normal((ROWS, dim))) for _ in range(2))
    for precision in usable:
        left, right = encode_both(x[:TILE_ROWS], y[:TILE_COLUMNS], precision)
        products[precision], insertion = _passing(left, right, kept[precision])
        insertions.append(insertion)
    integers = type_of_integers(dim, TORCH_FROM)
    left, right = (codes_of(side, integers) for side in (x[:TILE_ROWS], y[:TILE_COLUMNS]))
    kernels = compiled_int8()
    return Machine(
        threads=thread_count(),
        int8=kernels.CHOSEN.name if kernels else "torch" if "int8" in products else "none",
        products=products,
        integers=_rate(left, right),
        kept=kept,
        insertion=float(np.mean(insertions)),
        fetch=_fetching(x, y, k),
        preparation=_preparing(x, y, k),
    )


def _sustained(work: Callable[[], object]) -> float:
    """Return seconds of a call, on the mean, while every thread makes one after the other."""
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


def _passing(left: Codes, right: Codes, kept: int) -> tuple[float, float]:
    """Return operations a second of a thread in tiles without hits, and seconds of taking one."""
    tile = product(left.numbers, right.numbers)
    bounds = numbers_of(tile) * left.scale[:, None] * right.scale
    bounds += left.bias[:, None] + right.bias
    # Lists as if so many rows had gone by that each wants a few of the tile.
    some = [np.partition(bounds, -WANTED, axis=axis).take(-WANTED, axis=axis) for axis in (1, 0)]
    found = find_hits(left, right, *some)
    sides = [(np.arange(len(codes)), codes.ids) for codes in (left, right)]

    def take() -> float:
        lists = []
        for floor in some:
            candidates = Candidates.empty(len(floor), kept)
            candidates.bounds[:], candidates.floor[:] = floor[:, None], floor
            lists.append(candidates)
        start = time.perf_counter()
        loops().take(found, *sides, *lists, False)
        return time.perf_counter() - start

    taking = min(take() for _ in range(1 + REPEATS)) / (WANTED * (len(left) + len(right)))
    return _rate(left, right), taking


def _rate(left: Codes, right: Codes) -> float:
    """Return operations a second of a thread in tiles without hits."""
    floors = np.full(len(left), LARGE, np.float32), np.full(len(right), LARGE, np.float32)
    seconds = _sustained(lambda: find_hits(left, right, *floors))
    operations: float = 2.0 * len(left) * left.numbers.shape[1] * len(right)
    return operations / seconds


def _fetching(x: Matrix, y: Matrix, k: int) -> float:
    """Return seconds of rescoring one candidate."""
    random = np.random.default_rng(1)
    queries = x[:TILE_ROWS]
    candidates = Candidates.empty(len(queries), 2 * k)
    candidates.bounds[:] = 2
    candidates.ids[:] = random.integers(len(y), size=candidates.ids.shape)

    def verify() -> float:
        start = time.perf_counter()
        found = Neighbours.empty(len(queries), k)
        names, incomplete = np.arange(len(y)), np.zeros(len(queries), dtype=np.bool_)
        loops().verify(queries, y, names, candidates, found.ids, found.cosines, incomplete)
        return time.perf_counter() - start

    return min(verify() for _ in range(1 + REPEATS)) / candidates.ids.size


def _preparing(x: Matrix, y: Matrix, k: int) -> float:
    """Return seconds a row: unit length, equal rows, the choice of a precision, and codes."""
    start = time.perf_counter()
    x, y = unit_rows(x), unit_rows(y)
    find_distinct(x), find_distinct(y)
    encode_both(x, y, choose(x, y, k=k, precision=None).precision)
    return (time.perf_counter() - start) / (len(x) + len(y))
