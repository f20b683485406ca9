import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from miner.knn import running
from miner.knn.running import RunningBest


@given(
    rows=st.integers(1, 6),
    columns=st.integers(1, 40),
    kept=st.integers(1, 9),
    widths=st.lists(st.integers(1, 15), min_size=40, max_size=40),
    block=st.integers(1, 5),
    dense=st.sampled_from([0.0, 0.25, 1.0]),
    levels=st.sampled_from([3, 1000]),
    transposed=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 999),
)
def test_keeps_the_best_of_all_tiles(
    rows, columns, kept, widths, block, dense, levels, transposed, dtype, seed
):
    """In any cut into tiles, by any path, contiguous or transposed; few levels make many ties."""
    random = np.random.default_rng(seed)
    values = random.integers(levels, size=(rows + 2, columns)) / levels
    matrix = torch.from_numpy(values).to(dtype)
    best = RunningBest(rows + 2, kept, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "BLOCK", block)
        patch.setattr(running, "DENSE", dense)
        start = 0
        for width in widths:
            tile = matrix[1:-1, start : start + width].contiguous()
            if tile.shape[1]:
                best.add(1, start, tile.T.contiguous().T if transposed else tile)
            start += width
    expected = matrix.sort(dim=1, descending=True).values[1:-1, :kept]
    seen = expected.shape[1]
    assert torch.equal(best.values[1:-1, :seen], expected)
    found = best.ids[1:-1, :seen]
    assert torch.equal(matrix[1:-1].gather(1, found), expected)
    assert all(len(set(row)) == seen for row in found.tolist())
    for nothing in (best.ids[[0, -1]], best.ids[:, seen:]):
        assert (nothing == -1).all()
