"""Measures, in about a second, how long this machine takes for the steps of a search."""

import time
from collections.abc import Callable

import numpy as np

from miner.arrays import Matrix, Neighbours
from miner.knn.core.codes import Codes, Precision, encode_both
from miner.knn.core.passes import TILE_COLUMNS, TILE_ROWS, Candidates, find_hits
from miner.knn.core.products import INT8_DIMENSIONS, loops, numbers_of, product
from miner.knn.core.rescore import unit_rows
from miner.knn.core.tuning import choose, product_rates
from miner.knn.cost_model import SPARE, Machine
from miner.knn.duplicates import find_distinct
from miner.threads import in_threads, on_one_thread, thread_count

REPEATS = 3
# Seconds of products in all threads: one alone is faster, and an idle processor takes some tenths
# of a second to reach its pace.
SUSTAINED = 0.3
ROWS = 8192  # of each side: 8 MiB of 256 dimensions, more than a core's own caches hold
# Candidates that a row keeps, about: what bounds ask for where vectors are spread as usual.
KEPT: dict[Precision, int] = {"int8": 16, "bfloat16": 16, "float32": 8}
WANTED = 4  # of a tile by each list, while the time of insertions is taken


def measure_machine(*, dim: int, k: int) -> Machine:
    """Time the steps of a search of random vectors of ``dim`` numbers, each on one thread."""
    return on_one_thread(lambda: _measure(dim, k))


def _measure(dim: int, k: int) -> Machine:
    random = np.random.default_rng(0)
    usable = [
        precision for precision in product_rates() if precision != "int8" or dim < INT8_DIMENSIONS
    ]
    kept = {precision: max(KEPT[precision], k + SPARE) for precision in usable}
    products, insertions = {}, []
    x, y = (unit_rows(random.standard_normal((ROWS, dim))) for _ in range(2))
    for precision in usable:
        left, right = encode_both(x[:TILE_ROWS], y[:TILE_COLUMNS], precision)
        products[precision], insertion = _passing(left, right, kept[precision])
        insertions.append(insertion)
    return Machine(
        threads=thread_count(),
        products=products,
        kept=kept,
        insertion=float(np.mean(insertions)),
        fetch=_fetching(x, y, k),
        preparation=_preparing(x, y, k),
    )


def _soonest(work: Callable[[], object]) -> float:
    """Return seconds of the fastest of some calls; one before them loads what needs loading."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


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

    in_threads(call, range(thread_count()))
    return float(np.mean(means))


def _passing(left: Codes, right: Codes, kept: int) -> tuple[float, float]:
    """Return operations a second of a thread in tiles without hits, and seconds of taking one."""
    tile = product(left.numbers, right.numbers)
    bounds = numbers_of(tile) * left.scale[:, None] * right.scale
    bounds += left.bias[:, None] + right.bias
    full = np.full(len(left), 2, dtype=np.float32), np.full(len(right), 2, dtype=np.float32)
    seconds = _sustained(lambda: find_hits(left, right, *full))
    # Lists as if so many rows had gone by that each wants a few of the tile.
    some = _best_but(bounds, WANTED, axis=1), _best_but(bounds, WANTED, axis=0)
    found = find_hits(left, right, *some)

    sides = [(np.arange(len(codes)), codes.ids) for codes in (left, right)]

    def take() -> float:
        lists = []
        for floor in some:
            candidates = Candidates.none(len(floor), kept)
            candidates.bounds[:], candidates.floor[:] = floor[:, None], floor
            lists.append(candidates)
        start = time.perf_counter()
        loops().take(found, *sides, *lists, False)
        return time.perf_counter() - start

    taking = min(take() for _ in range(1 + REPEATS)) / (WANTED * (len(left) + len(right)))
    return 2 * tile.size * left.numbers.shape[1] / seconds, taking


def _best_but(bounds: Matrix, place: int, *, axis: int) -> Matrix:
    """Return the ``place``-th largest of each row (axis 1) or column (axis 0)."""
    return np.asarray(np.partition(bounds, -place, axis=axis).take(-place, axis=axis))


def _fetching(x: Matrix, y: Matrix, k: int) -> float:
    """Return seconds of rescoring one candidate."""
    random = np.random.default_rng(1)
    queries = x[:TILE_ROWS]
    candidates = Candidates.none(len(queries), 2 * k)
    candidates.bounds[:] = 2
    candidates.ids[:] = random.integers(len(y), size=candidates.ids.shape)

    def verify() -> None:
        found = Neighbours.none(len(queries), k)
        names, incomplete = np.arange(len(y)), np.zeros(len(queries), dtype=np.bool_)
        loops().verify(queries, y, names, candidates, found.ids, found.cosines, incomplete)

    return _soonest(verify) / candidates.ids.size


def _preparing(x: Matrix, y: Matrix, k: int) -> float:
    """Return seconds a row: unit length, equal rows, the choice of a precision, and codes."""
    start = time.perf_counter()
    x, y = unit_rows(x), unit_rows(y)
    find_distinct(x), find_distinct(y)
    encode_both(x, y, choose(x, y, k=k, precision=None).precision)
    return (time.perf_counter() - start) / (len(x) + len(y))
