"""Measure the stages of a run that only one worker executes.

    python benchmarks/one_worker.py news.en --rows 1e7

times the read stage on lines made of a file's, each of them new, and the select stage on made-up
neighbours, 4 of each row, in shards as a run of that size has them. Their rates, and those of
encoding and searching by the model of ``--plan``, say how many machines like this one end the rest
of a run of ``--sizes`` in the time that the one worker takes.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sizing import encoding_rate
from encoder import load_encoder
from miner.arrays import Neighbours
from miner.knn.cost_model import Problem, cells_cost, exact_cost, measure_machine
from miner.knn.method import Exact, auto_method
from miner.storage.artefacts import Draft
from miner.storage.layout import SOURCE
from pipelines.context import RunContext
from pipelines.memory import peak_bytes, show_size
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.run.estimate import show_time
from pipelines.stages.reading.read import read_side
from pipelines.stages.select import _select

K, SHARD_ROWS = 4, 262_144


@dataclass(frozen=True)
class MadeUp:
    """A shard's made-up neighbours, in the form of ``ShardNeighbours``."""

    folder: Path
    side: str
    start: int
    rows: int

    @property
    def embedded(self) -> MadeUp:
        return self

    def __len__(self) -> int:
        return self.rows

    def row_ids(self) -> Any:
        return np.load(self._file("ids"))

    def load(self, scope: str) -> Neighbours:
        return Neighbours(ids=np.load(self._file("lists")), cosines=np.load(self._file("cosines")))

    def make(self, of: int) -> MadeUp:
        random = np.random.default_rng([self.start, self.side == SOURCE])
        ids = np.arange(self.start, self.start + self.rows)
        lists = random.integers(0, of, (self.rows, K))
        lists[:, 0] = ids
        cosines = np.sort(random.random((self.rows, K), dtype=np.float32))[:, ::-1]
        for name, values in (("ids", ids), ("lists", lists), ("cosines", cosines)):
            np.save(self._file(name), values)
        return self

    def _file(self, name: str) -> Path:
        return self.folder / f"{self.side}-{self.start}-{name}.npy"


def options_of(corpus: Path, folder: Path) -> MiningOptions:
    side = CorpusOptions(path=corpus)
    return MiningOptions(
        source=side,
        target=side,
        output=folder / "o.tsv",
        work_dir=folder,
        rows_per_shard=SHARD_ROWS,
    )


def reading_seconds(text: Path, rows: int, folder: Path) -> float:
    corpus = folder / "lines.txt"
    with text.open(encoding="utf-8") as lines, corpus.open("w", encoding="utf-8") as out:
        some = [line[:-1] for line in lines]
        for number, line in zip(range(rows), itertools.cycle(some)):
            out.write(f"{line} {number}\n")
    run = RunContext(job_of(options_of(corpus, folder)))
    start = time.perf_counter()
    read_side(run, SOURCE)
    return time.perf_counter() - start


def choosing_seconds(rows: int, folder: Path) -> float:
    sides = [
        [
            MadeUp(folder, side, start, min(SHARD_ROWS, rows - start)).make(rows)
            for start in range(0, rows, SHARD_ROWS)
        ]
        for side in ("s", "t")
    ]
    run = RunContext(job_of(options_of(folder, folder)))
    start = time.perf_counter()
    _select(run, *sides, Draft(folder))
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("text", type=Path, help="sentences, one a line")
    parser.add_argument("--rows", type=float, default=1e7, help="of each side, to measure with")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e7, 1e8, 1e9])
    args = parser.parse_args()
    rows = int(args.rows)
    spent = []
    for what, measure in (
        ("choosing", lambda folder: choosing_seconds(rows, folder)),
        ("reading", lambda folder: reading_seconds(args.text, rows, folder)),
    ):
        with tempfile.TemporaryDirectory() as name:
            spent.append(measure(Path(name)))
        peak = show_size(peak_bytes())
        print(f"{what}: {spent[-1]:.1f} s for {rows:,} rows a side; peak memory {peak}", flush=True)
    encoder = load_encoder("mini")
    machine, rate = measure_machine(dim=encoder.dim, k=K), encoding_rate("mini", args.text)
    print("| sentences a side | one worker reads | chooses | encoding and searching | machines |")
    print("| --- | --- | --- | --- | --- |")
    for size in map(int, args.sizes):
        choosing, reading = (seconds * size / rows for seconds in spent)
        problem = Problem(sources=size, targets=size, dim=encoder.dim, k=K)
        exact = isinstance(auto_method(size, size), Exact)
        search = (exact_cost if exact else cells_cost)(problem, machine)
        rest = 2 * size / rate + search.seconds
        print(
            f"| {size:,} | {show_time(reading)} | {show_time(choosing)} | {show_time(rest)} | "
            f"{rest / (reading + choosing):.1f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
