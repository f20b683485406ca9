"""Measure the time of each stage and the peak memory of whole runs.

    python benchmarks/pipeline.py DATA --rows 100000 --encoder mini mini+use

takes that many German and English sentences from DATA/de-en.tsv.xz (source, TAB, target, TAB,
corpus), one in ten of them a translation of one on the other side, and mines them with each encoder
in a process of its own.
"""

from __future__ import annotations

import argparse
import lzma
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARED = 10  # one source sentence in this many has its translation among the targets


def read_sides(path: Path, rows: int) -> tuple[list[str], list[str]]:
    """Return ``rows`` distinct sentences per side, some of them shared.

    The first ``rows / SHARED`` pairs are on both sides.
    """
    both = rows // SHARED
    source: dict[str, None] = {}
    target: dict[str, None] = {}
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines):
            left, right, _ = line.rstrip("\n").split("\t")
            wanted = number < both
            if len(source) < rows and (wanted or number % 2):
                source[left] = None
            if len(target) < rows and (wanted or not number % 2):
                target[right] = None
    return list(source), list(target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--encoder", nargs="+", default=["mini"], metavar="SPEC")
    args = parser.parse_args()
    sides = read_sides(args.data / "de-en.tsv.xz", args.rows)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"text.{language}" for language in ("de", "en")]
        for path, sentences in zip(paths, sides, strict=True):
            path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        for encoder in args.encoder:
            print(f"{encoder}: {measured(paths, Path(folder) / 'o.tsv', encoder)}", flush=True)
    print(f"{len(sides[0]):,} x {len(sides[1]):,} sentences, on {platform.machine()}")
    return 0


def measured(paths: list[Path], out: Path, encoder: str) -> str:
    """Return a run's summary, with its time and memory as seen from outside."""
    program = Path(sys.executable).with_name("mine-corpus")
    command = [program, *paths, "-o", out, "--encoder", encoder]
    start = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(said)
    pairs = sum(1 for _ in open(out, encoding="utf-8"))
    peak = used.ru_maxrss / 2**20
    shown = said[said.index("source:") :].rstrip()
    return f"{pairs:,} pairs in {seconds:.1f} s and {peak:.2f} GiB, seen from outside\n{shown}"


if __name__ == "__main__":
    sys.exit(main())
