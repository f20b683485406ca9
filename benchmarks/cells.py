"""Measure the exact search and the cell join as corpora grow.

    python benchmarks/cells.py --rows 16384 65536 262144
    python benchmarks/cells.py --rows 16384 65536 262144 --vectors de.npy en.npy

For each number of rows a side: seconds of both, with the training of the cells, and those that the
model of `--plan` expects of the exact search; the peak memory of a process that does nothing else;
the share of the 4 nearest neighbours that the join finds; and F1 on the planted pairs (of given
vectors: those in the same row) at the best threshold, of both. Above ``--exact-up-to`` rows the
model's seconds stand for the exact search, and only some rows of each side are searched exactly.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np

from miner.arrays import Neighbours
from miner.knn.cells import (
    ProbeRadius,
    by_nearest_cell,
    find_floors,
    fit_probe_radius,
    join_cells,
    nearest_cells,
    train_cells,
)
from miner.knn.core.tuning import PART_TRIAL_ROWS, choose
from miner.knn.cost_model import Problem, exact_cost, measure_machine
from miner.knn.exact import search_unit_rows
from miner.knn.method import POINTS, PROBES, default_cells
from miner.knn.tiled import search_one_way
from miner.selection import candidate_pairs, select
from miner.threads import blocks, run_in_threads
from worlds import PLANTED, load_sides, make_sides

K = 4
SAMPLE = 2048  # rows of each side that are searched where not all are
SHOWN = 1021  # rows of a side that show how far cells are to reach, as in a run
COLUMNS = 64  # that are reordered at a time


def find(
    method: str, vectors: list[str] | None, rows: int, dim: int, probes: int, tell: Any
) -> None:
    """Search in a new process, and report seconds, peak bytes and neighbours."""
    x, y = load_sides(vectors, rows) if vectors else make_sides("clustered", rows, dim)
    search_unit_rows(x[:8192], y[:8192], k=K)  # compiles
    join(x[:8192].copy(), y[:8192].copy(), x[:16], probes, None)
    start = time.perf_counter()
    if method == "exact":
        found = search_unit_rows(x, y, k=K)
    elif method == "sample":
        some = sample(rows)
        found = tuple(search_unit_rows(a[some], b, k=K)[0] for a, b in ((x, y), (y, x)))
    else:
        cells = default_cells(rows)
        step = max(1, 2 * rows // (POINTS * cells))
        centroids = train_cells(np.concatenate([x[::step], y[::step]]), cells)
        shown = [side[:: -(-rows // SHOWN)] for side in (x, y)]
        near = [nearest(some, other) for some, other in zip(shown, (y, x), strict=True)]
        reach = fit_probe_radius(
            np.concatenate(shown), np.concatenate(near), centroids, probes=probes
        )
        found = join(x, y, centroids, probes, reach)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tell.put((seconds, peak, [(side.ids, side.cosines) for side in found]))


def nearest(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the nearest of ``others`` to each row, (N, D)."""
    chosen = choose(rows, others, k=1, precision=None, tried=PART_TRIAL_ROWS)
    return others[search_one_way(rows, others, k=1, precision=chosen).ids[:, 0]]


def join(
    x: np.ndarray, y: np.ndarray, centroids: np.ndarray, probes: int, reach: ProbeRadius | None
) -> tuple[Neighbours, Neighbours]:
    """Join both sides as a run does, with vectors in the order of cells.

    The nearest cell of each row is first, and gives floors.
    """
    part = range(len(centroids))
    cells = [nearest_cells(side, centroids, probes=probes, reach=reach) for side in (x, y)]
    orders = [by_nearest_cell(own, part) for own in cells]
    for side, own, order in zip((x, y), cells, orders, strict=True):
        put_in_order(side, order)
        put_in_order(own, order)
    both = (x, y), (cells[0], cells[1])
    floors = find_floors(*both, part=part, k=K)
    forward, backward = join_cells(
        *both, part=part, k=K, names=(orders[0], orders[1]), floors=floors
    )
    return forward.take(np.argsort(orders[0])), backward.take(np.argsort(orders[1]))


def put_in_order(rows: np.ndarray, order: np.ndarray) -> None:
    """Reorder rows in place by blocks of columns, without a second copy."""

    def move(columns: slice) -> None:
        rows[:, columns] = rows[order, columns]

    run_in_threads(move, blocks(rows.shape[1], COLUMNS))


def sample(rows: int) -> slice:
    return slice(None, None, max(1, rows // SAMPLE))


def expected(rows: int, dim: int) -> float:
    """Return the seconds of the exact search by the model of ``--plan``."""
    problem = Problem(sources=rows, targets=rows, dim=dim, k=K)
    return exact_cost(problem, measure_machine(dim=dim, k=K)).seconds


def best_f1(found: tuple[Neighbours, Neighbours], gold_every: int) -> float:
    """Return the best F1 over thresholds, where pairs of equal rows are gold."""
    ids = [np.arange(len(side)) for side in found]
    pairs = select(candidate_pairs(*found, source_ids=ids[0], target_ids=ids[1]))
    right = np.cumsum((pairs.source == pairs.target) & (pairs.source % gold_every == 0))
    gold = -(-len(ids[0]) // gold_every)
    return float((2 * right / (np.arange(1, len(right) + 1) + gold)).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1 << n for n in range(14, 19)])
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--probes", type=int, default=PROBES, help="cells of a row")
    parser.add_argument("--exact-up-to", type=int, default=1 << 18, metavar="ROWS")
    parser.add_argument("--vectors", nargs=2, metavar=("SRC", "TGT"), help=".npy files")
    args = parser.parse_args()
    dim = np.load(args.vectors[0], mmap_mode="r").shape[1] if args.vectors else args.dim
    expected(1, dim)  # compiles
    context = multiprocessing.get_context("spawn")
    print("     rows  method    seconds  ratio  peak GiB  recall@4     F1")
    for rows in args.rows:
        model = expected(rows, dim)
        whole = rows <= args.exact_up_to
        truth, exact_seconds = None, model
        for method in ("exact" if whole else "sample", "cells"):
            queue = context.Queue()
            given = (method, args.vectors, rows, args.dim, args.probes, queue)
            process = context.Process(target=find, args=given)
            process.start()
            seconds, peak, sides = queue.get()
            process.join()
            found = tuple(Neighbours(ids=ids, cosines=cosines) for ids, cosines in sides)
            if truth is None:
                truth = found
                exact_seconds = seconds if whole else model
                print(f"{rows:9,}  {'model':<8} {model:8.2f} {exact_seconds / model:6.2f}")
            if method == "sample":
                continue
            some = slice(None) if whole else sample(rows)
            recall = np.mean(
                [
                    (a.cosines[some] >= b.cosines[:, -1:]).mean()
                    for a, b in zip(found, truth, strict=True)
                ]
            )
            f1 = best_f1(found, 1 if args.vectors else PLANTED)
            print(
                f"{rows:9,}  {method:<8} {seconds:8.2f} {exact_seconds / seconds:6.2f} "
                f"{peak / 2**30:9.2f} {recall:9.4f} {100 * f1:6.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
