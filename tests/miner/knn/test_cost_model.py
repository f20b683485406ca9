"""The arithmetic of plans, and what it takes of this machine."""

import math
from dataclasses import replace

import pytest

from miner.instructions import SETS
from miner.knn.cost_model import (
    Machine,
    Problem,
    cells_cost,
    exact_cost,
    index_cost,
    measure_machine,
    rows_per_shard,
    tile_bytes,
)

PROBLEM = Problem(sources=1 << 20, targets=1 << 19, dim=256, k=4)
MACHINE = Machine(
    threads=2,
    int8="none",
    products={"bfloat16": 4e11, "float32": 1e11},
    integers=2e11,
    cosine=0.0,
    preparation=0.0,
)


def test_the_exact_search():
    cost = exact_cost(PROBLEM, MACHINE)
    similarities = 2**39
    assert cost.operations == 2 * similarities * 256
    computed = similarities + 128 * (2**20 + 2**19)  # a sample gives each row its first floor
    assert cost.seconds == pytest.approx(computed * 512 / 4e11 / 2)
    slower = exact_cost(PROBLEM, MACHINE, "float32")
    assert slower.seconds == pytest.approx(computed * 512 / 1e11 / 2)


def test_exact_cosines_of_the_exact_search():
    """k + k ln(M / k) are among the best k for a while, and 8 more seem to be, for each row."""
    square = replace(PROBLEM, sources=1600, targets=1600)
    plain = exact_cost(square, MACHINE, "bfloat16").seconds
    rescoring = exact_cost(square, replace(MACHINE, cosine=1.0), "bfloat16").seconds - plain
    assert rescoring == pytest.approx(2 * 1600 * (8 + 4 * (1 + math.log(400))) / 2)


def test_cells():
    cost = cells_cost(PROBLEM, MACHINE)
    # 1.3 * 49 / 4096 of all similarities, the assignment and a sample, and 7 times 48 rows a cell
    similarities = 1.3 * 49 / 4096 * 2**39 + (3 << 19) * 1021
    assigned = (3 << 19) * 1.2 * 4096 + 7 * 48 * 4096**2
    assert cost.operations == pytest.approx(2 * 256 * (similarities + assigned))
    seconds = 2 * 256 * (similarities / 4e11 + assigned / 2e11)
    assert cost.seconds == pytest.approx(seconds / 2)
    assert cost.method == "cells, 7 of 4,096 per row"


def test_rows_of_the_parts_of_cells():
    """In each of 4.8 parts a row is prepared, and has exact cosines; for cells, too."""
    plain = cells_cost(PROBLEM, MACHINE).seconds
    rows = 3 << 19
    for machine, expected in (
        (replace(MACHINE, cosine=1.0), 4.8 * (8 + 4)),
        (replace(MACHINE, preparation=1.0), 4.8 + 1),
    ):
        more = cells_cost(PROBLEM, machine).seconds - plain
        assert more == pytest.approx(rows * expected / 2)


def test_an_inverted_file():
    cost = index_cost(PROBLEM, MACHINE, 4096)
    scans, rows = 4 * 2**39 * 256 / 16, (1 << 20) + (1 << 19)
    products = 4 * 4096 * 256 * rows + 2 * 4096 * 256 * 10 * (2**20 + 2**19)
    assert cost.operations == pytest.approx(scans + products)
    assert cost.seconds == pytest.approx((8 * scans + products) / 1e11 / 2)


def test_a_tile_within_its_room():
    common = {"dim": 256, "k": 4, "threads": 2}
    rows = rows_per_shard(1 << 30, **common, least=1024, most=1 << 18)
    assert rows == 131_072

    def taken(rows):
        return tile_bytes(Problem(sources=rows, targets=rows, dim=256, k=4), threads=2)

    assert taken(rows) <= 1 << 30 < taken(2 * rows)
    assert rows_per_shard(1 << 40, **common, least=1024, most=1 << 18) == 1 << 18
    assert rows_per_shard(1 << 40, **common, least=10, most=10) == 10
    assert rows_per_shard(1 << 10, **common, least=1024, most=1 << 18) == 0


@pytest.mark.parametrize("dim", [1, 48])
def test_what_a_trial_measures(dim):
    machine = measure_machine(dim=dim, k=4)
    assert machine.threads >= 1
    assert "float32" in machine.products
    assert min(*machine.products.values(), machine.integers) > 1e6
    assert machine.int8 in (*SETS, "torch", "none")
    assert (machine.int8 == "none") == ("int8" not in machine.products)
    assert 0 < machine.cosine < 1e-3
    assert 0 < machine.preparation < 1e-2
