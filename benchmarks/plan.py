"""Compare the planned and the measured seconds of the exact search.

    OMP_NUM_THREADS=1 python benchmarks/plan.py --rows 8192 16384 32768 --dim 256

searches random vectors in each precision; prints estimated and measured seconds, and their ratio.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time

import numpy as np

from miner.knn.core.codes import PRECISIONS
from miner.knn.core.rescore import unit_rows
from miner.knn.cost_model import Problem, exact_cost, measure_machine
from miner.knn.exact import search_unit_rows

K = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[8192, 16384, 32768])
    parser.add_argument("--dim", type=int, default=256)
    args = parser.parse_args()
    measure_machine(dim=args.dim, k=K)  # compiles
    machine = measure_machine(dim=args.dim, k=K)
    random = np.random.default_rng(0)
    print(f"{args.dim} dimensions, threads: {machine.threads}, {platform.machine()}")
    for rows in args.rows:
        sides = [random.standard_normal((rows, args.dim), dtype=np.float32) for _ in range(2)]
        problem = Problem(sources=rows, targets=rows, dim=args.dim, k=K)
        for precision in (each for each in machine.products if each in PRECISIONS):
            start = time.perf_counter()
            search_unit_rows(*(unit_rows(side) for side in sides), k=K, precision=precision)
            measured = time.perf_counter() - start
            estimated = exact_cost(problem, machine, precision).seconds
            print(
                f"{rows:>7,} rows a side, {precision:<8}: estimated {estimated:7.2f} s, "
                f"measured {measured:7.2f} s, ratio {estimated / measured:.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
