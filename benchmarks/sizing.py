"""Estimate the cost of corpora of many sizes by the model of ``--plan``.

    python benchmarks/sizing.py news.en

times the search's steps and, on a file's first lines, the encoder on this machine, and computes the
rest from both.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from pathlib import Path

from encoder import load_encoder
from miner.knn.cost_model import Problem, cells_cost, exact_cost, measure_machine
from miner.knn.method import Exact, auto_method
from miner.storage.layout import SOURCE, TARGET
from pipelines.memory import show_size
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.run.estimate import disk_bytes, show_time
from pipelines.run.fitting import ENCODED_BYTES, SideSize

TRIED = 20_000  # sentences that the encoder is timed on


def encoding_rate(encoder: str, path: Path) -> float:
    """Return the encoded lines of a file per second."""
    loaded = load_encoder(encoder)
    with path.open(encoding="utf-8") as lines:
        texts = list(itertools.islice(lines, TRIED))
    loaded.encode(texts[:1000])
    start = time.perf_counter()
    loaded.encode(texts)
    return len(texts) / (time.perf_counter() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("text", type=Path, help="sentences, one a line")
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e8, 1e9])
    parser.add_argument("--encoder", default="mini")
    parser.add_argument("--hours", type=float, default=8.0, help="in which a run should be done")
    args = parser.parse_args()
    dim = load_encoder(args.encoder).dim
    machine, rate = measure_machine(dim=dim, k=4), encoding_rate(args.encoder, args.text)
    print(f"{machine.threads} threads, {dim} dimensions, {rate:,.0f} sentences encoded a second")
    print("| sentences a side | search | encoding | searching | machines | work folder | output |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rows in map(int, args.rows):
        problem = Problem(sources=rows, targets=rows, dim=dim, k=4)
        method = auto_method(rows, rows)
        exact = isinstance(method, Exact)
        cost = exact_cost(problem, machine) if exact else cells_cost(problem, machine)
        encoding = 2 * rows / rate
        machines = math.ceil((cost.seconds + encoding) / 3600 / args.hours)
        side = SideSize(rows=rows, text=100 * rows, dim=dim, width=ENCODED_BYTES)
        corpus = CorpusOptions(path=Path("corpus"))
        options = MiningOptions(
            source=corpus, target=corpus, output=Path("o.tsv"), work_dir=Path("work")
        )
        work, output = disk_bytes(options, {SOURCE: side, TARGET: side})
        print(
            f"| {rows:,} | {cost.method} | {show_time(encoding)} | {show_time(cost.seconds)} | "
            f"{machines:,} | {show_size(work)} | {show_size(output)} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
