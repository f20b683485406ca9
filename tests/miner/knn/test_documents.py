"""The search within pairs of documents against a full sort of what those pairs allow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.arrays import NO_NEIGHBOUR
from miner.knn import exact
from miner.knn.exact import search_documents
from tests.miner import oracle
from tests.miner.strategies import two_sides


def allowed_nearest(table, allowed, k):
    """Each row's k best allowed columns, ties to the lower column; -1 where there are fewer."""
    ids = np.full((len(table), min(k, table.shape[1])), NO_NEIGHBOUR)
    cosines = np.full(ids.shape, -np.inf, dtype=np.float32)
    for row in range(len(table)):
        columns = sorted(np.flatnonzero(allowed[row]), key=lambda y, row=row: (-table[row, y], y))
        for place, column in enumerate(columns[: ids.shape[1]]):
            ids[row, place], cosines[row, place] = column, table[row, column]
    return ids, cosines


@given(
    sides=two_sides(),
    k=st.integers(1, 5),
    table=st.sampled_from([-1, 20, 1 << 16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_oracle(sides, k, table, seed):
    random = np.random.default_rng(seed)
    source, target = sides
    own, others = (random.integers(0, 4, len(side)) for side in sides)
    listed = random.random((4, 4)) < 0.5
    pairs = [
        (np.flatnonzero(own == x), np.flatnonzero(others == y))
        for x, y in random.permutation(np.argwhere(listed))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "MAX_SIMILARITIES", table)
        found = search_documents(source, target, pairs, k=k)
    cosines = oracle.cosines(source, target)
    allowed = listed[own][:, others]
    for side, expected in zip(
        found,
        (allowed_nearest(cosines, allowed, k), allowed_nearest(cosines.T, allowed.T, k)),
        strict=True,
    ):
        np.testing.assert_array_equal(side.ids, expected[0])
        np.testing.assert_array_equal(side.cosines, expected[1])


def test_tells_how_far_it_is():
    rows = np.eye(6, dtype=np.float32)
    pairs = [(np.array([0, 1]), np.array([2, 3, 4])), (np.array([5]), np.array([5]))]
    told = []
    search_documents(rows, rows, pairs, k=2, progress=told.append)
    assert told == [6, 1]


def test_refuses_what_cannot_be_searched():
    rows = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="k is 0"):
        search_documents(rows, rows, [], k=0)
    with pytest.raises(ValueError, match="3 dimensions, target vectors 2"):
        search_documents(rows, rows[:, :2], [], k=1)
