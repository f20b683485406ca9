import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miner
from miner import mine
from miner.arrays import Neighbours
from miner.margin import MARGINS
from miner.selection import RETRIEVALS, candidate_pairs
from tests.miner import oracle
from tests.miner.strategies import hard_vectors
from tests.miner.test_selection import FIELDS, edges_of


def random_vectors(rows, dim=16, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize("margin", MARGINS)
def test_equals_the_oracle(margin, retrieval):
    source, target = random_vectors(23, seed=1), random_vectors(31, seed=2)
    source[5] *= 1e20
    target[7] *= 1e-20
    options = {"k": 4, "margin": margin, "retrieval": retrieval, "threshold": 0.01}
    found = mine(source, target, **options)
    expected = oracle.mine(source, target, **options)
    assert len(found) == len(expected) > 5
    for name in FIELDS:
        values = [getattr(edge, name) for edge in expected]
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-12)


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@settings(max_examples=30)
@given(
    source=st.integers(1, 12).flatmap(lambda rows: hard_vectors(rows, 8)),
    target=st.integers(1, 12).flatmap(lambda rows: hard_vectors(rows, 8)),
    k=st.integers(1, 5),
)
def test_equals_the_oracle_among_ties(retrieval, source, target, k):
    """Scores are the fast path's own here: the oracle rounds them otherwise, which undoes ties."""
    table = oracle.cosines(oracle.unit_rows(source), oracle.unit_rows(target))
    (forward_ids, forward), (backward_ids, backward) = (
        oracle.nearest(similar, k) for similar in (table, table.T)
    )
    candidates = candidate_pairs(
        Neighbours(ids=forward_ids, cosines=forward),
        Neighbours(ids=backward_ids, cosines=backward),
        source_ids=np.arange(len(source)),
        target_ids=np.arange(len(target)),
    )
    expected = oracle.select(edges_of(candidates), retrieval)
    assert edges_of(mine(source, target, k=k, retrieval=retrieval)) == expected


@given(seed=st.integers(0, 999))
@settings(max_examples=20)
def test_the_order_of_sentences_does_not_matter(seed):
    random = np.random.default_rng(seed)
    source, target = random.standard_normal((20, 8)), random.standard_normal((25, 8))
    rows, columns = random.permutation(20), random.permutation(25)
    plain, shuffled = mine(source, target), mine(source[rows], target[columns])
    np.testing.assert_array_equal(rows[shuffled.source], plain.source)
    np.testing.assert_array_equal(columns[shuffled.target], plain.target)
    np.testing.assert_array_equal(shuffled.score, plain.score)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("retrieval", ["max", "intersect"])
def test_the_sides_are_alike(margin, retrieval):
    source, target = random_vectors(40, seed=3), random_vectors(30, seed=4)
    one = mine(source, target, margin=margin, retrieval=retrieval)
    other = mine(target, source, margin=margin, retrieval=retrieval)
    np.testing.assert_array_equal(one.source, other.target)
    np.testing.assert_array_equal(one.target, other.source)
    np.testing.assert_array_equal(one.score, other.score)


def test_translations_are_found():
    source = random_vectors(200, 32, seed=5)
    order = np.random.default_rng(6).permutation(200)
    found = mine(source, source[order] + 0.1 * random_vectors(200, 32, seed=7))
    assert len(found) == 200
    np.testing.assert_array_equal(order[found.target], found.source)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-7, 1e-4, 1, 3e4])
def test_any_scale_and_dtype(dtype, scale):
    """In float16, squares of 3e4 overflow and those of 1e-4 vanish."""
    source = np.array([[1, 0], [0, 1], [1, 1]])
    found = mine((source * scale).astype(dtype), source.astype(dtype), k=2)
    assert sorted(zip(found.source, found.target, strict=True)) == [(0, 0), (1, 1), (2, 2)]
    np.testing.assert_allclose(found.cosine, 1, atol=1e-6)


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 3), (3, 0)])
def test_an_empty_side_gives_no_pairs(retrieval, rows, columns):
    assert len(mine(random_vectors(rows), random_vectors(columns), retrieval=retrieval)) == 0


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("value", [0, np.nan, np.inf, -np.inf])
def test_rows_without_a_direction_are_refused(side, value):
    vectors = {"source": random_vectors(6), "target": random_vectors(6)}
    vectors[side][[2, 4]] = 0
    vectors[side][[2, 4], 3] = value
    message = rf"^{side} row 2 is zero or not finite \(2 such rows\); remove these sentences$"
    with pytest.raises(ValueError, match=message):
        mine(**vectors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "^k is 0; a neighbourhood needs at least 1 sentence$"),
        ({"k": -3}, "^k is -3;"),
        ({"margin": "cosine"}, "^margin 'cosine' is unknown; choose one of ratio, "),
        ({"retrieval": "both"}, "^retrieval 'both' is unknown; choose one of max, "),
    ],
)
def test_options_are_checked_before_any_work(options, message, monkeypatch):
    monkeypatch.setattr("miner.knn.exact.search_table", None)
    with pytest.raises(ValueError, match=message):
        mine(random_vectors(3), random_vectors(3), **options)


def test_sides_of_different_encoders_are_refused():
    with pytest.raises(ValueError, match="source vectors have 16 dimensions, target vectors 8;"):
        mine(random_vectors(3, 16), random_vectors(3, 8))


def test_arguments_are_left_as_they_were():
    source, target = random_vectors(9), random_vectors(9, seed=1)
    copies = source.copy(), target.copy()
    source.flags.writeable = target.flags.writeable = False
    mine(source, target)
    np.testing.assert_array_equal(source, copies[0])
    np.testing.assert_array_equal(target, copies[1])


def test_public_names():
    assert {name: callable(getattr(miner, name)) for name in miner.__all__} == dict.fromkeys(
        miner.__all__, True
    )
    with pytest.raises(AttributeError, match="'miner' has no attribute 'nothing'"):
        _ = miner.nothing
