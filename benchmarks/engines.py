"""What Flink costs against worker processes on the same machine, and what a second host brings.

    python benchmarks/engines.py news.de news.en --lines 200000

mines the corpora with ``--workers 2`` and on Flink with two hosts (their processes are this
machine's), in turn, the best of several runs; then encodes on one host of one core and on two, and
searches with the second host's workers at a quarter of their speed.
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

from tests.clusters.cluster import HOSTS, ROOT, cluster, flink
from tests.clusters.downloads import fetch

RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"


def seconds(run: list[str], folder: Path) -> float:
    """How long a run takes in a new work folder."""
    subprocess.run(["rm", "-rf", folder / "work"], check=True)
    own = ["-o", str(folder / "out.tsv"), "--work-dir", str(folder / "work")]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", RUN, *own, *run], cwd=ROOT, check=True)
    return time.perf_counter() - start


def elements(folder: Path, stage: str) -> dict[str, list[tuple[float, float]]]:
    """When each worker began and ended each of its elements of a stage."""
    found: dict[str, list[tuple[float, float]]] = {}
    for path in (folder / "work" / "progress").glob("*.jsonl"):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if line["stage"] == stage:
                span = line["since"], line["since"] + line["seconds"]
                found.setdefault(line["worker"], []).append(span)
    return found


def encoding_seconds(folder: Path) -> float:
    """From the first shard that was begun to the last that was done."""
    spans = [span for own in elements(folder, "embed_shard").values() for span in own]
    return max(end for _, end in spans) - min(begun for begun, _ in spans)


@contextmanager
def slowed(pool: int) -> Iterator[None]:
    """Let a pool's workers run a quarter of the time."""
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--lines", type=int, default=200_000, help="of each side")
    parser.add_argument("--shards", type=int, default=8, help="of each side")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--parts", type=int, default=8, help="that Flink cuts each stage into")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, parts = ["--shards", str(args.shards), "-q"], [f"--parallelism={args.parts}"]
        for path in (args.target, args.source):
            lines = path.read_bytes().splitlines(keepends=True)[: args.lines]
            run.insert(0, str(folder / path.name))
            Path(run[0]).write_bytes(b"".join(lines))
        with cluster(fetch(), folder / "one") as daemons, flink(daemons, HOSTS[:1]) as engine:
            options = [*run, *engine.options, *parts]
            one = min(_encoding(options, folder) for _ in range(args.runs))
        here, there, two = [], [], []
        with cluster(fetch(), folder / "two") as daemons, flink(daemons) as engine:
            for _ in range(args.runs):
                here.append(seconds([*run, "--workers", "2"], folder))
                there.append(seconds([*run, *engine.options, *parts], folder))
                two.append(encoding_seconds(folder))
            with slowed(daemons.running["flink-pool-two"].pid):
                seconds([*run, *engine.options, *parts], folder)
        tiles = elements(folder, "search_tile")
    print(f"--workers 2: {min(here):.1f} s; Flink: {min(there):.1f} s", end="")
    print(f", {100 * (min(there) / min(here) - 1):.0f} % more")
    print(f"encoding on one host {one:.1f} s, on two {min(two):.1f} s: {one / min(two):.2f} times")
    ends = sorted(max(end for _, end in own) for own in tiles.values())
    longest = max(end - begun for own in tiles.values() for begun, end in own)
    counts = ", ".join(str(len(own)) for own in tiles.values())
    print(f"one host slowed: tiles of each worker {counts}; the last ended", end="")
    print(f" {ends[-1] - ends[0]:.1f} s after the other; the longest tile took {longest:.1f} s")
    return 0


def _encoding(options: list[str], folder: Path) -> float:
    seconds(options, folder)
    return encoding_seconds(folder)


if __name__ == "__main__":
    sys.exit(main())
