"""Measure seconds and memory of monotone alignment of random documents.

python benchmarks/monotone.py [SENTENCES ...]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from miner.monotone.align import align
from miner.monotone.blocks import merged_blocks

DIM = 256


def main() -> None:
    counts = [int(count) for count in sys.argv[1:]] or [2_000, 50_000]
    measure(100)  # compiles
    for count in counts:
        rows, seconds = measure(count)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{count} x {rows} sentences: {seconds:.2f} s, {peak} MB")


def measure(count: int) -> tuple[int, float]:
    """Align random sentences with noisy copies of 95% of them."""
    random = np.random.default_rng(0)
    source = random.standard_normal((count, DIM), dtype=np.float32)
    kept = random.random(count) > 0.05
    target = source[kept] + 0.8 * random.standard_normal((kept.sum(), DIM), dtype=np.float32)
    lengths = random.integers(20, 200, count).astype(np.float64)
    start = time.process_time()
    align(merged_blocks(source, lengths), merged_blocks(target, lengths[kept]))
    return len(target), time.process_time() - start


if __name__ == "__main__":
    main()
