"""What a search would cost, before it is run: operations, seconds and memory.

Pure arithmetic over a ``Problem`` and a ``Machine``; ``miner.knn.machine_trial`` measures the
latter.
Axes: ``N`` source rows, ``M`` target rows, ``D`` dimensions, ``K`` neighbours, ``C`` candidates
of each row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from miner.knn.core.codes import Precision
from miner.knn.core.passes import SEEDED_FROM, SEEDS
from miner.knn.method import POINTS, PROBES, ROUNDS, default_cells

# The cell join's cells are uneven: it compares so many times the pairs of even ones. A row lies in
# so many parts of both rounds; in each it is prepared, and a candidate that is kept in the end has
# been so many hits before. Crowded cells are split, so that there are so many times the number
# asked for.
UNEVEN = 1.3
PARTS = 4.8
TAKEN = 2
SPLIT = 1.2
SAMPLED = 1021  # rows a side whose neighbours are all searched for, to measure recall
# FAISS: k-means on at most so many rows a cell, so many times, and the share of cells that is read:
# row by row, so that an operation takes so many times as long as one of a product (7.1 and 8.8 for
# 32,768 rows of 256 and 16,384 of 1024 dimensions, one thread of an AMD EPYC, 2026-11-22).
TRAINING_ROWS, TRAINING_ROUNDS = 256, 10
PROBED_CELLS = 1 / 16
SCANNING = 8
# At most so many candidates of a row are kept, see miner.knn.core.tuning.
MAX_KEPT, SPARE = 64, 4
# Bytes of a row while it is searched, beside its vectors, candidates and neighbours: the groups of
# equal rows and how they are found, and the numbers that bounds are made of.
ROW_BYTES = 160
# A tile of products (4 MiB), what the library copies to multiply, and a block that is rescored.
THREAD_BYTES = 24 << 20


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

    ``products`` are operations a second by precision, with the test of what they come to; all else
    is in seconds: ``insertion`` of a candidate, ``fetch`` of a vector that is rescored and
    ``preparation`` of a row. Of each row ``kept`` candidates are kept.
    """

    threads: int
    products: Mapping[Precision, float]
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
    seeds = SEEDS * problem.rows if min(problem.sources, problem.targets) >= SEEDED_FROM else 0
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
    """Estimate the cell join, an approximate search of both directions at once.

    It is done in parts, of which each row is in several; its recall is measured by a sample.
    """
    cells = default_cells(max(problem.sources, problem.targets))
    share = min(1.0, UNEVEN * PROBES**2 / cells)
    precision = _soonest(problem, machine)
    similarities = share * problem.similarities + problem.rows * (SPLIT * cells + SAMPLED)
    training = 2.0 * (2 * ROUNDS + 1) * POINTS * cells * cells * problem.dim
    row = machine.kept[precision] * (TAKEN * machine.insertion + machine.fetch)
    seconds = (
        similarities * _similarity(problem, machine, precision)
        + problem.rows * (PARTS * (row + machine.preparation) + machine.preparation)
        + training / machine.products[precision]
    )
    name = f"cells, {PROBES} of {cells:,} a row"
    operations = 2.0 * similarities * problem.dim + training
    return Cost(method=name, operations=operations, seconds=seconds / machine.threads)


def index_cost(problem: Problem, machine: Machine, cells: int) -> Cost:
    """Estimate two searches of FAISS's ``IVFn,Flat`` with n ``cells``: approximate."""
    probed = max(1, round(cells * PROBED_CELLS))
    scans = 2 * 2.0 * problem.similarities * problem.dim * probed / cells
    products = 2 * 2.0 * problem.rows * cells * problem.dim  # rows are added, then searched for
    for rows in (problem.sources, problem.targets):
        products += _training(rows, cells, problem.dim)
    seconds = (SCANNING * scans + products) / machine.products["float32"] / machine.threads
    return Cost(method=f"IVF{cells},Flat", operations=scans + products, seconds=seconds)


def _training(rows: int, cells: int, dim: int) -> float:
    """Operations of k-means."""
    return 2.0 * min(rows, TRAINING_ROWS * cells) * cells * dim * TRAINING_ROUNDS


def _soonest(problem: Problem, machine: Machine) -> Precision:
    return min(machine.products, key=lambda choice: _similarity(problem, machine, choice))


def tile_bytes(problem: Problem, *, threads: int) -> int:
    """At most what a search of that many rows holds: of its vectors, all codes and all results.

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
    if tile_bytes(_square(least, dim, k), threads=threads) > room:
        return 0
    rows = least
    while rows < most and tile_bytes(_square(2 * rows, dim, k), threads=threads) <= room:
        rows *= 2
    return min(rows, most)


def _square(rows: int, dim: int, k: int) -> Problem:
    return Problem(sources=rows, targets=rows, dim=dim, k=k)
