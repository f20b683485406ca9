"""Measure the cost of Flink, and the gain by a second host.

    python benchmarks/engines.py news.de news.en --lines 200000

mines the corpora with ``--workers 2`` and on Flink with two hosts (their processes are this
machine's), in turn, the best of several runs; then encodes on one host of one core and on two; then
searches in cells, each tile a part of its own, with the second host's workers at a quarter of their
speed. ``--only`` measures one of the three.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clusters.cluster import HOSTS, KEPT, ROOT, cluster, flink
from tests.clusters.downloads import fetch

PARTS = "--parallelism=8"  # that Flink cuts each stage into
QUICK = ("--score", "margin", "--index", "cells1024:probes=1")
RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"


def begun_anew(run: list[str], folder: Path) -> list[str]:
    """Return the command of a run after its work folder is removed."""
    subprocess.run(["rm", "-rf", folder / "work"], check=True)
    own = ["-o", str(folder / "out.tsv"), "--work-dir", str(folder / "work")]
    return [sys.executable, "-c", RUN, *own, *run]


def seconds(run: list[str], folder: Path) -> float:
    """Return the seconds of a run in a new work folder."""
    command = begun_anew(run, folder)
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True)
    return time.perf_counter() - start


def elements(folder: Path, stage: str) -> dict[str, list[tuple[float, float]]]:
    """Return when each worker started and finished each element of a stage."""
    found: dict[str, list[tuple[float, float]]] = {}
    for path in (folder / "work" / "progress").glob("*.jsonl"):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if line["stage"] == stage:
                span = line["since"], line["since"] + line["seconds"]
                found.setdefault(line["worker"], []).append(span)
    return found


def encoding_seconds(run: list[str], folder: Path) -> float:
    """Return the seconds of encoding, and end the run."""
    with subprocess.Popen(begun_anew(run, folder), cwd=ROOT) as process:
        spans: list[tuple[float, float]] = []
        while len(spans) < 2 * int(run[run.index("--shards") + 1]) and process.poll() is None:
            time.sleep(1)
            spans = [span for own in elements(folder, "embed_shard").values() for span in own]
        process.send_signal(signal.SIGINT)
    return max(end for _, end in spans) - min(begun for begun, _ in spans)


@contextmanager
def slowed(pool: int) -> Iterator[None]:
    """Let the workers of a pool run a quarter of the time."""
    done = threading.Event()

    def stop_and_go() -> None:
        while not done.wait(0.1):
            os.killpg(pool, signal.SIGSTOP)
            done.wait(0.3)
            os.killpg(pool, signal.SIGCONT)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def overhead(run: list[str], folder: Path, runs: int) -> None:
    """Compare Flink with worker processes."""
    here, there = [], []
    with cluster(fetch("flink"), folder / "flink") as daemons, flink(daemons) as engine:
        for _ in range(runs):
            here.append(seconds([*run, "--workers", "2"], folder))
            there.append(seconds([*run, *engine.options, KEPT, PARTS], folder))
    print(f"--workers 2: {min(here):.1f} s; Flink: {min(there):.1f} s", end="")
    print(f", {100 * (min(there) / min(here) - 1):.0f} % more")


def hosts(run: list[str], folder: Path, runs: int) -> None:
    """Compare encoding on one host with encoding on two."""
    best = []
    for number in (1, 2):
        name = folder / f"{number}-hosts"
        with cluster(fetch("flink"), name) as daemons, flink(daemons, HOSTS[:number]) as engine:
            spent = []
            for _ in range(runs):
                spent.append(encoding_seconds([*run, *engine.options, KEPT, PARTS], folder))
            best.append(min(spent))
    shards = ", ".join(str(len(own)) for own in elements(folder, "embed_shard").values())
    print(f"encoding on one host {best[0]:.1f} s, on two {best[1]:.1f} s", end="")
    print(f": {best[0] / best[1]:.2f} times as fast; shards of each {shards}")


def straggler(run: list[str], folder: Path, runs: int) -> None:
    """Search with one slow host."""
    tiles = int(run[run.index("--shards") + 1]) ** 2
    with cluster(fetch("flink"), folder / "slow") as daemons, flink(daemons) as engine:
        with slowed(daemons.running["flink-pool-two"].pid):
            seconds([*run, *QUICK, *engine.options, KEPT, f"--parallelism={tiles}"], folder)
    found = elements(folder, "search_tile").values()
    ends = sorted(max(end for _, end in own) for own in found)
    longest = max(end - begun for own in found for begun, end in own)
    counts = ", ".join(str(len(own)) for own in found)
    print(f"one host slowed: tiles of each worker {counts}; the last ended", end="")
    print(f" {ends[-1] - ends[0]:.1f} s after the other; the longest tile took {longest:.1f} s")


MEASURED = {"overhead": overhead, "hosts": hosts, "straggler": straggler}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--lines", type=int, default=200_000, help="of each side")
    parser.add_argument("--shards", type=int, default=8, help="of each side")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", choices=MEASURED)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = ["--shards", str(args.shards), "-q"]
        for path in (args.target, args.source):
            lines = path.read_bytes().splitlines(keepends=True)[: args.lines]
            run.insert(0, str(folder / path.name))
            Path(run[0]).write_bytes(b"".join(lines))
        for what, measure in MEASURED.items():
            if args.only in (None, what):
                measure(run, folder, args.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
