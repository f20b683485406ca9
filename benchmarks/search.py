"""Compare the two-way exact search with two FAISS flat searches.

    python benchmarks/search.py --rows 32768 --dim 1024 --kind random clustered repeated
    python benchmarks/search.py --vectors de.npy en.npy
    python benchmarks/search.py --sets

Prints for each kind of vectors: operations a second of the bare products, tile by tile in all
threads, nothing kept; seconds of the search and of two `IndexFlatIP` searches, and their ratio;
whether the nearest neighbours are the same, and the share of FAISS's cosines of the 4 nearest that
ours reach. Equal cosines count as the same neighbour, within the rounding of a float32 product.
With `--sets`: operations a second of one thread by each set of instructions of this CPU, compared
with NumPy's float32 product on a CPU that has no faster set.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable

import faiss
import numpy as np

from miner.instructions import USABLE, VARIABLE
from miner.knn.core.codes import encode_both
from miner.knn.core.passes import TILE_COLUMNS, TILE_ROWS, blocks
from miner.knn.core.products import int8_product, product
from miner.knn.core.tuning import product_rates
from miner.knn.exact import search_unit_rows
from miner.threads import run_in_threads, thread_count
from worlds import load_sides, make_sides

K = 4
ROUNDING = 2e-6  # of FAISS's float32 cosines


def product_rate(x: np.ndarray, y: np.ndarray, precision: str, product: Callable) -> float:
    """Return the operations per second of a matrix product by tiles."""
    left, right = (side.numbers for side in encode_both(x[:32768], y[:32768], precision))
    tiles = [
        (rows, columns)
        for rows in blocks(len(left), TILE_ROWS)
        for columns in blocks(len(right), TILE_COLUMNS)
    ]
    start = time.perf_counter()
    run_in_threads(lambda tile: product(left[tile[0]], right[tile[1]]), tiles)
    return 2 * len(left) * len(right) * x.shape[1] / (time.perf_counter() - start)


def flat(queries: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Search both directions with FAISS, as LASER's mine_bitexts does."""
    index = faiss.IndexFlatIP(base.shape[1])
    index.add(base)
    return index.search(queries, K)


def measure(name: str, x: np.ndarray, y: np.ndarray) -> None:
    operations = 2 * len(x) * len(y) * x.shape[1]
    print(f"{name}: {len(x):,} x {len(y):,} x {x.shape[1]}")
    rates = {"int8 by torch": product_rate(x, y, "int8", int8_product)}
    rates |= {precision: product_rate(x, y, precision, product) for precision in product_rates()}
    told = ", ".join(f"{precision} {rate / 1e9:.0f}" for precision, rate in rates.items())
    print(f"  bare product   {told} GFLOP/s")
    search_unit_rows(x[:8192], y[:8192], k=K)  # compiles
    start = time.perf_counter()
    ours = search_unit_rows(x, y, k=K)
    seconds = time.perf_counter() - start
    print(
        f"  search_unit_rows    {seconds:7.2f} s  {operations / seconds / 1e9:.0f} GFLOP/s, "
        f"{operations / seconds / max(rates.values()):.0%} of the fastest product"
    )
    start = time.perf_counter()
    theirs = flat(x, y), flat(y, x)
    flat_seconds = time.perf_counter() - start
    print(f"  IndexFlatIP x2 {flat_seconds:7.2f} s  {flat_seconds / seconds:.2f} times ours")
    for direction, found, (cosines, ids) in zip(("forward", "backward"), ours, theirs, strict=True):
        same = (found.ids[:, 0] == ids[:, 0]) | (
            np.abs(found.cosines[:, 0] - cosines[:, 0]) <= ROUNDING
        )
        recall = (found.cosines >= cosines - ROUNDING).mean()
        print(f"  {direction:<9} top-1 agreement {same.mean():.6f}, recall@{K} {recall:.6f}")


def measure_sets(times: int) -> None:
    """Measure each instruction set with its OpenBLAS kernels, best of ``times``."""
    rates = (
        "from miner.knn.core.tuning import product_rates as r; import json; print(json.dumps(r()))"
    )
    best: dict[str, dict[str, float]] = {name: {} for name in USABLE}
    for name in USABLE * times:
        core = "SkylakeX" if "512" in name or "amx" in name else "Haswell"
        environment = {**os.environ, VARIABLE: name, "OPENBLAS_NUM_THREADS": "1"}
        if platform.machine() == "x86_64":
            environment["OPENBLAS_CORETYPE"] = core
        told = subprocess.check_output([sys.executable, "-c", rates], env=environment)
        for kind, rate in json.loads(told).items():
            best[name][kind] = max(rate, best[name].get(kind, 0.0))
    for name, found in best.items():
        told = ", ".join(
            f"{kind} {rate / 1e9:.0f} ({rate / found['float32']:.2f})"
            for kind, rate in found.items()
        )
        print(f"{name}: 10^9 operations a second of one thread (times float32): {told}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dim", type=int, default=1024)
    kinds = ("random", "clustered", "repeated")
    parser.add_argument("--kind", nargs="+", choices=kinds, default=["random"])
    parser.add_argument("--vectors", nargs=2, metavar=("SRC", "TGT"), help=".npy files")
    parser.add_argument("--sets", action="store_true", help="rates by set of instructions")
    parser.add_argument("--times", type=int, default=3, help="measurements of each set")
    args = parser.parse_args()
    if args.sets:
        measure_sets(args.times)
        return 0
    print(f"{thread_count()} threads, {platform.machine()}")
    if args.vectors:
        measure("given", *load_sides(args.vectors, args.rows))
        return 0
    for kind in args.kind:
        measure(kind, *make_sides(kind, args.rows or 32_768, args.dim))
    return 0


if __name__ == "__main__":
    sys.exit(main())
