"""Measure how ``adit convert`` reads and writes each format of pairs.

    python benchmarks/formats.py DATA --pairs 1000000 [--formats tmx zip]

writes that many pairs of DATA/de-en.tsv.xz from a TSV file to each format, and reads each back. In
each further round of the file, pairs end in a number. CSV and zip are made by Python.
"""

from __future__ import annotations

import argparse
import csv
import lzma
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

LANGUAGES = ("de", "en")
MADE_BY_PYTHON = ("csv", "zip")
FORMATS = ("tsv", "tsv.gz", "jsonl", "parquet", "dataset", "tmx", *MADE_BY_PYTHON)


def pairs_of(data: Path, number: int) -> Iterator[tuple[str, str]]:
    """Yield ``number`` different pairs."""

    def rounds() -> Iterator[tuple[str, str]]:
        for repetition in count():
            end = f" [{repetition}]" if repetition else ""
            with lzma.open(data / "de-en.tsv.xz", "rt", encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    source, target, _ = line.split("\t")
                    yield source + end, target + end

    return islice(rounds(), number)


def measured(command: Sequence[str], cores: int = 0) -> tuple[float, float]:
    """Return the seconds and the peak MiB of a command on some cores (default: all)."""
    chosen = ["taskset", "-c", f"0-{cores - 1}"] if cores else []
    start = time.perf_counter()
    process = subprocess.Popen([*chosen, *command], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def make(data: Path, number: int, path: Path) -> None:
    """Write pairs as TSV, as CSV, or as the two files in a zip file of OPUS."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for side, language in enumerate(LANGUAGES):
                with archive.open(f"Made.de-en.{language}", "w", force_zip64=True) as file:
                    for pair in pairs_of(data, number):
                        file.write(f"{pair[side]}\n".encode())
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.writer(file)
            writer.writerow(("source", "target"))
            writer.writerows(pairs_of(data, number))
        else:
            file.writelines(f"{source}\t{target}\n" for source, target in pairs_of(data, number))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    args = parser.parse_args()
    convert = [str(Path(sys.executable).with_name("adit")), "convert", "-q"]
    convert += ["--src-lang", "de", "--tgt-lang", "en"]
    load = os.getloadavg()[0]
    print(f"{args.pairs:,} pairs; {os.cpu_count()} cores, load {load:.1f} before the start")
    print("| format | MB | written, s per million | MiB | read, s per million | MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        start = Path(temporary) / "start.tsv"
        make(args.data, args.pairs, start)
        for name in args.formats:
            path = Path(temporary) / f"made.{name}"
            written = "| |"
            if name in MADE_BY_PYTHON:
                make(args.data, args.pairs, path)
            else:
                seconds, peak = measured([*convert, str(start), "-o", str(path)])
                written = f"{seconds * 1e6 / args.pairs:.0f} | {peak:.0f} |"
            size = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
            seconds, peak = measured([*convert, str(path), "-o", str(start.with_name("out.tsv"))])
            read = f"{seconds * 1e6 / args.pairs:.0f} | {peak:.0f} |"
            print(f"| {name} | {size / 1e6:,.0f} | {written} {read}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
