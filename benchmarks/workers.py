"""Measure how the encode stage scales with worker processes.

    python benchmarks/workers.py news.de news.en --encoder mini

encodes both sides in one worker process on one core, then in two on two, and so on. Counted is what
each process did between its first shard and its last, so that loading the encoder is left out; the
best of several runs, in turn, as others may use the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"


def rates(work_dir: Path) -> Iterator[float]:
    """Return the shards per second of each process after its first shard."""
    for path in (work_dir / "progress").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        ends = [line["since"] + line["seconds"] for line in lines if line["stage"] == "embed_shard"]
        if len(ends) > 1:
            yield (len(ends) - 1) / (ends[-1] - ends[0])


def shards_a_second(workers: int, shards: int, options: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        work_dir = Path(folder) / "work"
        places = ["-o", f"{folder}/o.tsv", "--work-dir", str(work_dir), "--max-rejected", "0"]
        run = [sys.executable, "-c", RUN, *options, *places, "--shards", str(shards), "-q"]
        cores = sorted(os.sched_getaffinity(0))[:workers]
        # A blank line ends the run after encoding.
        done = subprocess.run(
            [*run, *(["--workers", str(workers)] if workers > 1 else [])],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "--max-rejected 0: " in done.stderr, done.stderr
        return sum(rates(work_dir))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--shards", type=int, default=12, help="of each side")
    parser.add_argument("--runs", type=int, default=3)
    args, options = parser.parse_known_args()  # others are mine-corpus's own
    most = len(os.sched_getaffinity(0))
    best = dict.fromkeys(range(1, most + 1), 0.0)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.write_bytes(args.source.read_bytes() + b"\n \n")
        sentences = sum(path.read_bytes().count(b"\n") for path in (source, args.target))
        each = sentences / (2 * args.shards)
        for _ in range(args.runs):
            for workers in best:
                found = shards_a_second(
                    workers, args.shards, [str(source), str(args.target), *options]
                )
                best[workers] = max(best[workers], found)
                print(f"{workers} workers: {each * found:,.0f} sentences a second", flush=True)
    for workers, rate in best.items():
        times = rate / best[1]
        print(f"{workers} workers: {each * rate:,.0f} sentences a second, {times:.2f} times one's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
