"""Measure whole runs on 10^4 to 10^7 lines, compared with the plan.

    python benchmarks/scaling.py DATA FOLDER --rows 10000 100000 1000000
    python benchmarks/scaling.py DATA FOLDER --rows 10000000 --methods cells --kills 10

makes, once, FOLDER/ROWS.{xx,en,gold}: German, French and Spanish lines and English ones, each two
sentences of DATA/{de,fr,es}-en.tsv.xz (source, TAB, target, TAB, corpus) joined, a third with their
translation on the other side. Each sentence occurs in many lines, so that the nearest neighbours of
a line without translation are half right. Then `adit mine` mines them by each method, and a table
says what that took, beside what `--plan` expected: seconds, the largest process, the most that all
processes held that is not of files, the work folder, and what was written; the neighbours that were
found, and F1 at the best threshold. A run whose plan is longer than `--limit` minutes is left out.
With `--kills`, a run is first ended so often by SIGKILL, at random moments, and started again; how
many units of work (a shard's vectors, a tile, a batch of pairs) that were done are done again is
counted, beside the one that each worker is at when it is killed.
"""

import argparse
import json
import lzma
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LANGUAGES = "de", "fr", "es"
PLANTED = 3  # every third line has its translation on the other side
BLOCK = 1 << 18
UNIT = 1.0  # seconds; what takes less is not looked at
SECONDS = 0.2  # between two looks at memory and disk


def read_pairs(data: Path) -> tuple[list[list[str]], np.ndarray]:
    """Return the sentences of both sides, and the first of each language."""
    sides: list[list[str]] = [[], []]
    starts = [0]
    for language in LANGUAGES:
        with lzma.open(
            data / f"{language}-en.tsv.xz", "rt", encoding="utf-8", newline="\n"
        ) as lines:
            pairs = {tuple(line.split("\t")[:2]) for line in lines}
        for side, texts in zip(sides, zip(*sorted(pairs), strict=True), strict=True):
            side += texts
        starts.append(len(sides[0]))
    return sides, np.array(starts)


def make_lines(data: Path, folder: Path, rows: int) -> None:
    """Write both sides and the gold pairs of line numbers, unless they exist."""
    gold = folder / f"{rows}.gold"
    if gold.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sides, starts = read_pairs(data)
    generator = np.random.default_rng(0)
    planted = rows // PLANTED
    total = 2 * rows - planted
    language = generator.integers(len(LANGUAGES), size=total)
    low, high = starts[language], starts[language + 1]
    parts = [generator.integers(low, high) for _ in range(2)]
    alone = np.arange(planted, total)
    # The planted pairs and those of one side alone, each side in an order of its own.
    chosen = [
        generator.permutation(np.concatenate([np.arange(planted), half]))
        for half in (alone[: rows - planted], alone[rows - planted :])
    ]
    for suffix, texts, pairs in zip(("xx", "en"), sides, chosen, strict=True):
        with open(folder / f"{rows}.{suffix}", "w", encoding="utf-8", newline="\n") as file:
            for start in range(0, rows, BLOCK):
                block = pairs[start : start + BLOCK]
                firsts, seconds = (part[block].tolist() for part in parts)
                file.writelines(
                    f"{texts[first]} {texts[second]}\n"
                    for first, second in zip(firsts, seconds, strict=True)
                )
    places = [np.argsort(pairs)[:planted] for pairs in chosen]  # of planted pair 0, 1, ...
    np.savetxt(gold, np.stack(places, axis=1), fmt="%d", delimiter="\t")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Seconds, and GiB of the largest process, of all and of the work folder."""

    seconds: float
    largest: float
    held: float
    disk: float
    written: float


UNITS = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 1024.0}
TIMES = {"s": 1, "min": 60, "h": 3600, "days": 86400}
COMMAND = "import sys; from pipelines.cli.main import adit; sys.exit(adit(sys.argv[1:]))"


def planned(arguments: Sequence[str]) -> Figures:
    """Parse the output of ``--plan``."""
    command = [sys.executable, "-c", COMMAND, *arguments, "--plan"]
    plan = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def size(pattern: str) -> float:
        found = re.search(pattern + r" about ([\d.,]+) (\w+)", plan)
        assert found, plan
        return float(found[1].replace(",", "")) * UNITS[found[2]]

    duration = re.search(r"time: about ([\d.,]+) (\w+) in all", plan)
    assert duration, plan
    seconds = float(duration[1].replace(",", "")) * TIMES[duration[2]]
    memory, disk = size("memory: at most"), size("disk: at most")
    return Figures(seconds=seconds, largest=memory, held=0.0, disk=disk, written=0.0)


class Watched:
    """A run in new processes, observed from its first start."""

    def __init__(self, arguments: Sequence[str], work_dir: Path) -> None:
        self._command = [sys.executable, "-c", COMMAND, *arguments]
        self._work_dir = work_dir
        self._largest = self._held = 0.0
        self._written: dict[str, int] = {}
        self._start = time.perf_counter()
        self.start()

    def start(self) -> None:
        """Start or restart the run."""
        self._process = subprocess.Popen(self._command, start_new_session=True)

    def wait(self, seconds: float = float("inf")) -> bool:
        """Observe the run for ``seconds``, and return whether it ended."""
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            self._look()
            if self._process.poll() is not None:
                return True
            time.sleep(SECONDS)
        return False

    def kill(self) -> None:
        """Kill all processes of the run."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def figures(self) -> Figures:
        """Return the figures of the run."""
        assert self._process.returncode == 0
        seconds = time.perf_counter() - self._start
        sizes = (path.stat().st_size for path in self._work_dir.rglob("*") if path.is_file())
        numbers = (self._largest, self._held, sum(sizes), sum(self._written.values()))
        largest, held, disk, written = (number / 2**30 for number in numbers)
        return Figures(seconds=seconds, largest=largest, held=held, disk=disk, written=written)

    def _look(self) -> None:
        """Read memory and written bytes of the processes in the session."""
        held = 0.0
        for folder in Path("/proc").iterdir():
            try:
                if not folder.name.isdigit() or os.getsid(int(folder.name)) != self._process.pid:
                    continue
                status = dict(
                    line.split(":", 1) for line in (folder / "status").read_text().splitlines()
                )
                held += 1024 * int(status["RssAnon"].split()[0])
                self._largest = max(self._largest, 1024 * int(status["VmHWM"].split()[0]))
                written = re.search(r"write_bytes: (\d+)", (folder / "io").read_text())
                self._written[folder.name] = int(written[1]) if written else 0
            except (OSError, KeyError):  # it has just ended
                continue
        self._held = max(self._held, held)


def best_f1(folder: Path, rows: int, output: Path) -> float:
    """Return the F1 of the pairs at the best threshold."""
    sides = [
        (folder / f"{rows}.{suffix}").read_text(encoding="utf-8").split("\n")
        for suffix in ("xx", "en")
    ]
    places = np.loadtxt(folder / f"{rows}.gold", dtype=np.int64, delimiter="\t")
    gold = {(sides[0][source], sides[1][target]) for source, target in places.tolist()}
    with output.open(encoding="utf-8", newline="\n") as lines:
        right = [tuple(line.rstrip("\n").split("\t")[1:]) in gold for line in lines]
    f1 = 2 * np.cumsum(right) / (np.arange(1, len(right) + 1) + len(gold))
    return float(f1.max(initial=0.0))


def units_done(work_dir: Path) -> dict[tuple[str, str], float]:
    """Return the seconds of units since the last start, if above ``UNIT``."""
    lines = [line for path in work_dir.glob("progress/*.jsonl") for line in path.open()]
    notes = [json.loads(line) for line in lines if line.endswith("}\n")]
    return {
        (note["stage"], note["element"]): note["seconds"]
        for note in notes
        if note.get("seconds", 0.0) > UNIT
    }


def done_again(done: dict[tuple[str, str], float], now: dict[tuple[str, str], float]) -> int:
    """Add new units to those done before, and return the number of repeats."""
    again = sum(now[unit] > done[unit] / 2 for unit in now.keys() & done.keys())
    done |= {unit: max(seconds, done.get(unit, 0.0)) for unit, seconds in now.items()}
    return again


def run(folder: Path, rows: int, method: str, args: argparse.Namespace) -> None:
    """Mine one size by one method, and print a row of the table."""
    work_dir, output = folder / f"{rows}.{method}.work", folder / f"{rows}.{method}.tsv"
    arguments = ["mine", f"{folder}/{rows}.xx", f"{folder}/{rows}.en", "-o", str(output), "-q"]
    arguments += ["--index", method, "--workers", str(args.workers), "--encoder", args.encoder]
    plan = planned(arguments)
    if plan.seconds > 60 * args.limit:
        return
    arguments += ["--work-dir", str(work_dir)]
    moments = random.Random(0)
    watched = Watched(arguments, work_dir)
    done, again = units_done(work_dir), 0
    for number in range(args.kills):
        if watched.wait(moments.uniform(0, 2 * plan.seconds / args.kills)):
            break
        watched.kill()
        again += done_again(done, units_done(work_dir))
        print(f"killed {number + 1} times", file=sys.stderr)
        watched.start()
    watched.wait()
    again += done_again(done, units_done(work_dir))
    if args.kills:
        print(f"{again} of {len(done)} units were done again", file=sys.stderr)
    found = watched.figures()
    summary = json.loads((work_dir / "run.json").read_text(encoding="utf-8"))
    recall = [summary[side].get("recall", 1.0) for side in ("source", "target")]
    cells = [method, f"{rows:,}", f"{found.seconds:.1f} s", f"{plan.seconds:.0f} s"]
    cells += [f"{found.seconds / plan.seconds:.2f}", f"{found.largest:.2f}", f"{plan.largest:.2f}"]
    cells += [f"{found.held:.2f}", f"{found.disk:.2f}", f"{plan.disk:.2f}", f"{found.written:.2f}"]
    cells += [f"{min(recall):.3f}", f"{100 * best_f1(folder, rows, output):.1f}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    if not args.keep:
        shutil.rmtree(work_dir)
        output.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path, help="for lines, and for work folders while they last")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", default=["exact", "cells"])
    parser.add_argument("--encoder", default="mini")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30.0, help="minutes of a plan")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep work folders and outputs")
    args = parser.parse_args()
    print(f"{args.workers} workers, {platform.machine()}; memory and disk in GiB\n")
    print("| method | lines per side | time | planned | ratio | largest process | planned ", end="")
    print("| all processes | work folder | planned | written | recall | best F1 |")
    print("| --- " * 13 + "|")
    for rows in args.rows:
        make_lines(args.data, args.folder, rows)
        for method in args.methods:
            run(args.folder, rows, method, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
