import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.knn import exact
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import expand, find_distinct
from tests.miner import oracle
from tests.miner.strategies import two_sides


def random_units(rows, dim, seed=0):
    return unit_rows(np.random.default_rng(seed).standard_normal((rows, dim)))


def assert_groups_equal_rows(rows, found):
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found.first, np.sort(first))
    np.testing.assert_array_equal(found.first[found.group], first[group.reshape(-1)])
    assert len(found.start) == len(found.first) + 1
    for number in range(len(found.first)):
        members = found.members[found.start[number] : found.start[number + 1]]
        np.testing.assert_array_equal(members, np.flatnonzero(found.group == number))


@given(sides=two_sides(max_rows=30), data=st.data())
def test_equal_rows_are_one_group(sides, data):
    rows = np.concatenate(sides)
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=40))
    assert_groups_equal_rows(rows[picked], find_distinct(rows[picked]))


@pytest.mark.parametrize("dim", [1, 1024, 4096])
def test_equal_rows_of_many_blocks(monkeypatch, dim):
    monkeypatch.setattr(exact, "BLOCK_ROWS", 7)
    rows = random_units(20, dim)[np.random.default_rng(1).integers(20, size=90)]
    assert_groups_equal_rows(rows, find_distinct(rows))


def test_rows_with_equal_keys_need_not_be_equal(monkeypatch):
    """Different rows are never one group; equal ones may stay apart."""
    monkeypatch.setattr(exact, "BLOCK_ROWS", 4)
    monkeypatch.setattr(exact, "_keys", lambda rows: np.zeros(len(rows)))
    rows = random_units(3, 8)[[0, 1, 0, 2, 1, 0, 0, 2, 1]]
    found = find_distinct(rows)
    np.testing.assert_array_equal(rows[found.first][found.group], rows)
    assert (found.first[found.group] <= np.arange(9)).all()
    assert len(np.unique(found.first[found.group[[0, 2, 5, 6]]])) == 1  # as the first row of all


def test_the_sign_of_zero_makes_no_difference():
    rows = np.array([[1, 0.0], [1, -0.0], [-0.0, 1]], dtype=np.float32)
    assert find_distinct(rows).group.tolist() == [0, 0, 1]


def test_no_rows():
    found = find_distinct(np.empty((0, 4), dtype=np.float32))
    assert len(found.first) == len(found.group) == len(found.members) == 0
    assert found.start.tolist() == [0]


def expanded(source, target, k):
    rows, columns = find_distinct(source), find_distinct(target)
    table = oracle.cosines(source[rows.first], target[columns.first])
    ids, cosines = oracle.nearest(table, k)
    return expand(Neighbours(ids=ids, cosines=cosines), rows, columns, k=min(k, len(target)))


@given(sides=two_sides(max_rows=6), k=st.integers(1, 9), data=st.data())
def test_expanding_equals_searching_everything(sides, k, data):
    """Also with fewer groups than k, and with cosines that several groups share."""
    source, target = (
        side[data.draw(st.lists(st.integers(0, len(side) - 1), min_size=1, max_size=25))]
        for side in sides
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "BLOCK_ROWS", 3)
        found = expanded(source, target, k)
    ids, cosines = oracle.nearest(oracle.cosines(source, target), k)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.cosines, cosines)


def test_groups_with_equal_cosines_are_taken_row_by_row():
    """Two groups as near as each other: their rows come by position, not group by group."""
    source = np.array([[1, 0, 0]], dtype=np.float32)
    a, b = np.array([[0.6, 0.8, 0], [0.6, 0, 0.8]], dtype=np.float32)
    found = expanded(source, np.stack([a, b, a, b, a, a]), 5)
    assert found.ids.tolist() == [[0, 1, 2, 3, 4]]


def test_a_group_larger_than_k():
    rows = np.tile(random_units(1, 8), (50, 1))
    found = expanded(rows[:3], rows, 4)
    assert found.ids.tolist() == [[0, 1, 2, 3]] * 3


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_expanding_nothing(rows, columns):
    found = expanded(random_units(rows, 8), random_units(columns, 8), 4)
    assert found.ids.shape == found.cosines.shape == (rows, min(4, columns))
