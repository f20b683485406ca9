"""Measure the resident memory of a run's processes as corpora grow.

    python benchmarks/resident.py news.de news.en --rows 50000 500000 --workers 2

mines the first so many lines of both, in shards of the same size each time, and looks every tenth
of a second at what each process of the run holds. A worker's memory should depend on the size of
shards, not on that of the corpus.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

LOOK_SECONDS = 0.1
RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"


def head(path: Path, rows: int, folder: Path) -> Path:
    """Write the first lines of a file to a new file."""
    short = folder / path.name
    with path.open("rb") as lines, short.open("wb") as first:
        first.writelines(itertools.islice(lines, rows))
    return short


def peaks(run: subprocess.Popen) -> dict[str, int]:
    """Return the peak bytes of each process, by ``lead`` or ``worker PID``."""
    most: dict[str, int] = {}
    lead = psutil.Process(run.pid)
    while run.poll() is None:
        for process in [lead, *lead.children(recursive=True)]:
            try:
                held, command = process.memory_info().rss, process.cmdline()
            except psutil.Error:  # it has ended
                continue
            if process == lead or "pipelines.run.worker" in command:
                name = "lead" if process == lead else f"worker {process.pid}"
                most[name] = max(held, most.get(name, 0))
        time.sleep(LOOK_SECONDS)
    return most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 500_000])
    parser.add_argument("--shard", type=int, default=25_000, help="rows of each shard")
    args, options = parser.parse_known_args()  # others are mine-corpus's own
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            sides = [head(path, rows, Path(folder)) for path in (args.source, args.target)]
            shards = -(-rows // args.shard)
            command = [sys.executable, "-c", RUN, *map(str, sides), "-o", f"{folder}/o.tsv", "-q"]
            start = time.perf_counter()
            with subprocess.Popen([*command, "--shards", str(shards), *options]) as run:
                most = peaks(run)
            seconds = time.perf_counter() - start
            if run.returncode:
                return run.returncode
        print(f"{rows:,} rows a side in {shards} shards: {seconds:.0f} s", flush=True)
        for name, held in most.items():
            print(f"  {name}: {held / 2**20:,.0f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
