"""The cost of growth: time, memory and disk of whole runs as corpora grow, beside what is planned.

    python benchmarks/scaling.py --rows 14 15 16 17 18 --svg scaling.svg

mines clustered vectors, 2^14 to 2^18 a side, by each method in a process of its own, and prints a
table: seconds of the search, the most that the process held and the size of its work folder, each
beside the estimate of the model of `--plan` and as a multiple of it. A run whose search the model
expects to take longer than `--limit` seconds is left out. Processor seconds of the whole run stand
beside: other programs change them less.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from miner.knn.cost_model import Machine, Problem, cells_cost, exact_cost, index_cost
from miner.knn.machine_trial import measure_machine
from miner.knn.method import default_cells
from miner.storage.layout import SOURCE, TARGET
from miner.threads import thread_count
from pipelines.context import RunContext
from pipelines.job import job_of
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.resources.estimate import disk_bytes
from pipelines.resources.fitting import fit_run, measure_side
from worlds import PLANTED

BLOCK = 1 << 14
K = 4
METHODS = "exact", "cells", "IVF"
STAGES = re.compile(r"\b(?:train|fill|index|cells|search|find|merge) ([\d.]+) s")
UNITS = {"s": 1.0, "GiB": 2.0**30}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Seconds of the search, bytes held at most, and bytes of the work folder."""

    seconds: float
    memory: float
    disk: float


def write_side(folder: Path, name: str, rows: int, dim: int) -> None:
    """Vectors, a hundred to a centre, every third near the other side's; and a line for each."""
    shared = np.random.default_rng(rows)
    centres = shared.standard_normal((max(1, rows // 100), dim), dtype=np.float32)
    own = np.random.default_rng([rows, ord(name)])
    vectors = np.lib.format.open_memmap(
        folder / f"{name}.npy", mode="w+", dtype=np.float16, shape=(rows, dim)
    )
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        near = centres[own.integers(len(centres), size=count)]
        block = near + 0.7 * own.standard_normal((count, dim), dtype=np.float32)
        places = np.arange(-start % PLANTED, count, PLANTED)
        common = np.random.default_rng([rows, start])
        block[places] = common.standard_normal((len(places), dim), dtype=np.float32)
        block[places] += 0.4 * own.standard_normal((len(places), dim), dtype=np.float32)
        vectors[start : start + count] = block / np.linalg.norm(block, axis=1, keepdims=True)
    lines = (
        f"line {row} of side {name}, as long as a sentence of the news is\n" for row in range(rows)
    )
    (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def options_of(folder: Path, index: str) -> MiningOptions:
    sides = [
        CorpusOptions(path=folder / f"{name}.txt", embeddings=folder / f"{name}.npy")
        for name in "ab"
    ]
    return MiningOptions(
        source=sides[0],
        target=sides[1],
        output=folder / "o.tsv",
        work_dir=folder / "work",
        index=index,
        score="margin",
    )


def planned(options: MiningOptions, machine: Machine, rows: int, dim: int) -> Figures:
    run = RunContext(job_of(options))
    sizes = {side: measure_side(run, side) for side in (SOURCE, TARGET)}
    fit = fit_run(run, sizes)
    problem = Problem(sources=rows, targets=rows, dim=dim, k=K)
    if options.index == "exact":
        cost = exact_cost(problem, machine)
    elif options.index == "cells":
        cost = cells_cost(problem, machine)
    else:
        cost = index_cost(problem, machine, default_cells(rows))
    return Figures(seconds=cost.seconds, memory=fit.peak, disk=disk_bytes(fit.options, sizes)[0])


def measured(options: MiningOptions) -> tuple[Figures, float]:
    """Figures of a run in a process of its own, and its processor seconds."""
    source, target = options.source, options.target
    command: Sequence[str | Path | None] = [
        Path(sys.executable).with_name("mine-corpus"),
        *(source.path, target.path),
        *("--src-embeddings", source.embeddings, "--tgt-embeddings", target.embeddings),
        *("--index", options.index, "--score", options.score, "-k", str(K)),
        *("--work-dir", options.work_dir, "-o", options.output),
    ]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    report = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(report)
    times = report[report.rindex("\ntime: ") :]
    disk = sum(path.stat().st_size for path in Path(options.work_dir).rglob("*") if path.is_file())
    figures = Figures(
        seconds=sum(map(float, STAGES.findall(times))), memory=used.ru_maxrss * 1024, disk=disk
    )
    return figures, used.ru_utime + used.ru_stime


def cases(args: argparse.Namespace) -> Iterator[tuple[str, int, Figures, Figures]]:
    measure_machine(dim=args.dim, k=K)  # compiles
    machine = measure_machine(dim=args.dim, k=K)
    for rows in (1 << power for power in args.rows):
        for method in METHODS:
            with tempfile.TemporaryDirectory(dir=args.folder) as name:
                folder = Path(name)
                index = f"IVF{default_cells(rows)},Flat" if method == "IVF" else method
                options = options_of(folder, index)
                for side in "ab":
                    write_side(folder, side, rows, args.dim)
                plan = planned(options, machine, rows, args.dim)
                if plan.seconds > args.limit:
                    continue
                found, processor = measured(options)
                print(row_of(method, rows, found, plan, processor), flush=True)
                yield method, rows, found, plan


def row_of(method: str, rows: int, found: Figures, plan: Figures, processor: float) -> str:
    cells = [method, f"{rows:,}"]
    for name, unit in (("seconds", "s"), ("memory", "GiB"), ("disk", "GiB")):
        one, other = (getattr(figures, name) / UNITS[unit] for figures in (found, plan))
        cells += [f"{one:.2f} {unit}", f"{other:.2f} {unit}", f"{one / other:.2f}"]
    return f"| {' | '.join(cells)} | {processor:.1f} s |"


def draw(found: Sequence[tuple[str, int, Figures, Figures]], path: Path) -> None:
    """Points for what was measured, lines for what was planned."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4), layout="constrained")
    names = {"seconds": "search, s", "memory": "memory, GiB", "disk": "work folder, GiB"}
    for axes, (name, title) in zip(figure.subplots(1, 3), names.items(), strict=True):
        scale = 1.0 if name == "seconds" else UNITS["GiB"]
        for number, method in enumerate(METHODS):
            own = [case for case in found if case[0] == method]
            rows = [case[1] for case in own]
            for place, style in ((2, "o"), (3, "-")):
                values = [getattr(case[place], name) / scale for case in own]
                axes.plot(rows, values, style, color=f"C{number}", label=method * (place == 2))
        axes.set(title=title, xlabel="rows a side", xscale="log", yscale="log")
        axes.set_xscale("log", base=2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[14, 15, 16, 17, 18], help="powers of 2"
    )
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds of a search, by the model"
    )
    parser.add_argument("--folder", type=Path, help="for vectors and work folders")
    parser.add_argument("--svg", type=Path, help="draws time, memory and disk")
    args = parser.parse_args()
    print(f"{thread_count()} threads, {args.dim} dimensions, {platform.machine()}\n")
    heads = [f"{name} | planned | ratio" for name in ("search", "memory", "work folder")]
    print(f"| method | rows a side | {' | '.join(heads)} | processor |")
    print("| --- " * 12 + "|")
    found = list(cases(args))
    if args.svg:
        draw(found, args.svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
