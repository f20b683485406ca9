"""The same output for every instruction set, precision, number of shards and of workers.

    python benchmarks/same_bytes.py eval/assets/sample/de-en/de-en.training.{de,en}

mines two corpora by `adit mine`: exactly, by cells, and with the encoder `use` in int8; each
with every set of instructions of this CPU, without one, in float32, in 7 shards, and by 2 workers.
Prints the start of each output's SHA-256. The exit status is 1 if two outputs of a kind differ.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from miner.instructions import NONE, USABLE, VARIABLE

KINDS = {
    "exact": ["--encoder", "mini"],
    "cells": ["--encoder", "mini", "--index", "cells64"],
    "use": ["--encoder", "use", "--precision", "int8"],
}
WAYS = {
    "float32": ["--search-precision", "float32"],
    "7 shards": ["--shards", "7"],
    "2 workers": ["--workers", "2"],
    "7 shards, 2 workers": ["--shards", "7", "--workers", "2"],
}
ADIT = "import sys; from pipelines.cli.main import adit; sys.exit(adit(sys.argv[1:]))"


def digest(corpora: list[str], options: list[str], chosen: str) -> str:
    """Return the start of the SHA-256 of what a run with a set of instructions writes."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "pairs.tsv"
        command = [sys.executable, "-c", ADIT, "mine", *corpora, "-o", str(output), "-q", *options]
        subprocess.run(command, env={**os.environ, VARIABLE: chosen}, check=True)
        return hashlib.sha256(output.read_bytes()).hexdigest()[:16]


def main() -> int:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", nargs=2)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    args = parser.parse_args()
    same = True
    for kind in args.kinds:
        runs = {name: (name, []) for name in USABLE}
        if kind != "use":  # int8 needs a set
            runs[NONE] = (NONE, [])
        runs |= {name: ("", options) for name, options in WAYS.items()}
        if kind == "cells":
            del runs["float32"]
        found = {}
        for name, (chosen, options) in runs.items():
            found[name] = digest(args.corpora, [*KINDS[kind], *options], chosen)
            print(f"{kind:6} {name:20} {found[name]}", flush=True)
        same &= len({*found.values()}) == 1
    print("the same" if same else "not the same")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
