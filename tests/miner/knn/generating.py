"""What every way of generating candidates must keep to, and vectors that make it hard."""

import numpy as np
import torch
from hypothesis import strategies as st

from miner.knn.gpu import products, sweep
from miner.knn.gpu.cuda import generate_on_devices

HOST = torch.device("cpu")


@st.composite
def two_sides(draw, max_rows=60):
    """Float64 (N, D) and (M, D) of small integers: every order of summation is exact."""
    dim = draw(st.sampled_from([1, 3, 8, 21, 40]))
    kind = draw(st.sampled_from(["random", "equal", "few", "rising", "falling"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return tuple(_rows(random, kind, draw(st.integers(0, max_rows)), dim) for _ in range(2))


def _rows(random, kind, rows, dim):
    if kind == "equal":
        return np.ones((rows, dim))
    if kind == "few":  # each row many times
        return random.integers(-3, 4, (3, dim)).astype(float)[random.integers(0, 3, rows)]
    if kind == "random":
        return random.integers(-3, 4, (rows, dim)).astype(float)
    length = np.arange(rows) if kind == "rising" else -np.arange(rows)
    return (length[:, None] + random.integers(-1, 2, (rows, dim))).astype(float)


def shrink(patch, *, seed=8, dense=150, hits=2, largest=25, smallest=1):
    """Sizes at which a few rows take all the paths of a few million."""
    patch.setattr(sweep, "SEED", seed)
    patch.setattr(sweep, "LARGEST", largest)
    patch.setattr(sweep, "SMALLEST", smallest)
    for module in (sweep, products):
        patch.setattr(module, "DENSE", dense)
        patch.setattr(module, "HITS", hits)


def generate_candidates(
    source, target, *, kept, dtype, devices=(HOST,), progress=lambda products: None
):
    rows = (torch.from_numpy(side).to(dtype) for side in (source, target))
    return generate_on_devices(*rows, kept=kept, devices=devices, progress=progress)


def assert_complete(found, source, target, *, kept, error=0.0):
    """Candidates are the best, up to ties; whatever is above the floor is among them."""
    table = source @ target.T
    for candidates, similar in zip(found, (table, table.T), strict=True):
        count = min(kept, similar.shape[1])
        assert candidates.ids.shape == (len(similar), count)
        assert (candidates.ids.dtype, candidates.floor.dtype) == (np.int64, np.float32)
        assert candidates.floor.shape == (len(similar),)
        for row, ids, floor in zip(similar, candidates.ids, candidates.floor, strict=True):
            assert len(set(ids)) == count
            best = np.sort(row)[::-1][:count]
            np.testing.assert_allclose(np.sort(row[ids])[::-1], best, rtol=0, atol=error)
            assert np.delete(row, ids).max(initial=-np.inf) <= floor + error
            assert floor == -np.inf if count == len(row) else floor <= best[-1] + error
