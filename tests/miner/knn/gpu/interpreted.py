"""The fused kernel under Triton's interpreter; test_fused runs this file in its own process.

float16 stands for bfloat16: the interpreter of Triton 3.9 multiplies the latter's bits as integers.
"""

import os
import threading

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.knn.gpu import fused, keys, products, sweep
from miner.knn.gpu.fused import TILINGS, Tiling, fault, find_hits
from tests.miner.knn.generating import HOST, assert_complete, generate_candidates, shrink, two_sides

TINY = Tiling(rows=16, columns=32, depth=16, warps=4, stages=1)


@pytest.fixture(autouse=True)
def tiny_tiles(monkeypatch):
    monkeypatch.setattr(sweep, "working_tiling", lambda device, dtype: TINY)


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch):
    """The interpreter exchanges parts of Triton while it runs, for all threads."""
    lock = threading.Lock()

    def locked(*args, **kwargs):
        with lock:
            return find_hits(*args, **kwargs)

    monkeypatch.setattr(fused, "find_hits", locked)


@pytest.fixture
def looked_for(monkeypatch):
    """The cells whose hits the kernel is asked for."""
    cells = []

    def by_hits(cell, tiling):
        cells.append(cell)
        return products.by_hits(cell, tiling)

    monkeypatch.setattr(sweep, "by_hits", by_hits)
    return cells


@pytest.mark.parametrize("tiling", [TINY, *TILINGS])
def test_the_kernel_finds_all_hits(tiling):
    assert fault(tiling, HOST, torch.float16) == ""


@settings(max_examples=25)
@given(
    sides=two_sides(max_rows=40),
    kept=st.integers(1, 12),
    devices=st.integers(1, 2),
    hits=st.sampled_from([1, 2, 4]),
)
def test_candidates_are_complete(sides, kept, devices, hits):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, hits=hits)
        patch.setattr(fused, "MAX_HITS_PER_TILE_ROW", 4)
        found = generate_candidates(
            *sides, kept=kept, dtype=torch.float16, devices=[HOST] * devices
        )
    assert_complete(found, *sides, kept=kept)


@pytest.mark.parametrize("rising", [1, -1])
def test_lines_with_more_hits_than_there_is_room_for(monkeypatch, looked_for, rising):
    """Each source is more similar to the next target than to all before, or less."""
    shrink(monkeypatch, seed=4, hits=1, largest=64)
    source = np.ones((70, 8))
    target = np.arange(70.0)[::rising, None] + np.zeros((70, 8))
    found = generate_candidates(source, target, kept=3, dtype=torch.float16)
    assert_complete(found, source, target, kept=3)
    assert len(looked_for) > 9


def test_hits_that_do_not_fit_are_counted():
    x = torch.arange(1.0, 41)[:, None].half() * torch.ones(8).half()
    floors = torch.full((40,), 8.0 * 40)
    of_rows, of_columns = find_hits(
        x, x, floors, floors + 1e9, first_row=5, first_column=6, capacity=7, tiling=TINY
    )
    table = 8.0 * torch.outer(x[:, 0].float(), x[:, 0].float())
    assert of_rows.counts.tolist() == (table > 320).sum(dim=1).tolist()
    for number, count in enumerate(of_rows.counts.tolist()):
        found = of_rows.keys[number]
        found = found[found != keys.EMPTY]
        assert len(found) == min(count, 7)
        assert torch.equal(keys.products(found), table[number, keys.positions(found) - 6])
    assert (of_columns.counts == 0).all()
    assert (of_columns.keys == keys.EMPTY).all()


def test_no_hit_beyond_the_edges():
    """Beyond an edge products are 0, which is above floors below 0."""
    x, y = -torch.ones((17, 8)).half(), torch.ones((33, 8)).half()
    of_rows, of_columns = find_hits(
        x,
        y,
        torch.full((17,), -9.0),
        torch.full((33,), -9.0),
        first_row=0,
        first_column=0,
        capacity=40,
        tiling=TINY,
    )
    assert of_rows.counts.tolist() == [33] * 17
    assert of_columns.counts.tolist() == [17] * 33


def test_a_tile_with_too_many_hits_gives_up(monkeypatch):
    """The lines whose hits it leaves out, and no others, count as overflowed."""
    monkeypatch.setattr(fused, "MAX_HITS_PER_TILE_ROW", 3)
    x, y = torch.zeros((40, 8)).half(), torch.zeros((70, 8)).half()
    x[:, 0] = 1.0
    y[40:46, 0] = torch.arange(1.0, 7).half()  # six hits of row 20, in one tile
    row_floors = torch.full((40,), 9.0)
    row_floors[20] = 0.5
    row_floors[30] = 5.5
    of_rows, of_columns = find_hits(
        x,
        y,
        row_floors,
        torch.full((70,), 9.0),
        first_row=0,
        first_column=0,
        capacity=50,
        tiling=TINY,
    )
    assert (of_rows.counts > 50).nonzero().flatten().tolist() == [20]
    assert of_rows.counts[30] == 1
    assert (of_columns.counts > 50).nonzero().flatten().tolist() == [40, 41, 42]


def test_most_cells_go_through_the_kernel(monkeypatch, looked_for):
    shrink(monkeypatch)
    sides = np.random.default_rng(0).integers(-9, 10, (2, 90, 16)).astype(float)
    assert_complete(generate_candidates(*sides, kept=3, dtype=torch.float16), *sides, kept=3)
    assert sum(len(cell.x) * len(cell.y) for cell in looked_for) == (90 - 8) ** 2


class TestTheChoice:
    @pytest.fixture(autouse=True)
    def fresh(self):
        products.working_tiling.cache_clear()
        yield
        products.working_tiling.cache_clear()

    def test_the_first_that_works(self, monkeypatch):
        monkeypatch.setattr(fused, "TILINGS", (TINY, *TILINGS))
        assert products.working_tiling(HOST, torch.float16) == TINY

    def test_one_that_cannot_be_launched_is_passed_over(self, monkeypatch):
        def fail_once(*args, tiling, **kwargs):
            if tiling is not TINY:
                raise RuntimeError("out of resource: shared memory")
            return find_hits(*args, tiling=tiling, **kwargs)

        monkeypatch.setattr(fused, "find_hits", fail_once)
        monkeypatch.setattr(fused, "TILINGS", (*TILINGS, TINY))
        assert products.working_tiling(HOST, torch.float16) == TINY

    def test_a_kernel_that_computes_wrong_is_not_used(self, monkeypatch, caplog):
        def off_by_one(x, *args, **kwargs):
            return find_hits(x + 1, *args, **kwargs)

        monkeypatch.setattr(fused, "find_hits", off_by_one)
        monkeypatch.setattr(fused, "TILINGS", (TINY,))
        for _ in range(2):
            assert products.working_tiling(HOST, torch.float16) is None
        assert caplog.messages == [
            "cpu: the fused kernel does not work (its products are wrong); "
            "the search takes up to five times as long"
        ]
