"""Vectors of kinds that differ in the difficulty of a search."""

from __future__ import annotations

import numpy as np

from miner.knn.core.rescore import unit_rows
from miner.threads import blocks

PLANTED = 3  # every third source has a noisy copy among the targets
BLOCK = 1 << 14


def make_sides(kind: str, rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit rows of both sides, of the kind of vectors ``kind``."""
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, dim), dtype=np.float32) for _ in range(2))
    if kind == "clustered":
        centres = random.standard_normal((max(1, rows // 100), dim), dtype=np.float32)
        for side in (x, y):  # in place, for there may be a million
            side *= np.float32(0.7)
            own = random.integers(len(centres), size=rows)
            for block in blocks(rows, BLOCK):
                side[block] += centres[own[block]]
    y[::PLANTED] *= np.float32(0.4 if kind == "clustered" else 1.0)
    y[::PLANTED] += x[::PLANTED]
    if kind == "repeated":
        x, y = (np.tile(side[: -(-rows // 8)], (8, 1))[:rows] for side in (x, y))
    return unit_rows(x, out=x), unit_rows(y, out=y)


def load_sides(paths: list[str], rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return unit rows of both sides from two .npy files."""
    x, y = (unit_rows(np.load(path, mmap_mode="r")[:rows]) for path in paths)
    return x, y
