"""The inner loops against an obvious oracle."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.knn.core import compiled
from miner.knn.core.codes import PRECISIONS, Codes, encode_both, round_to_bfloat16
from miner.knn.core.passes import LARGE, Candidates
from miner.knn.core.products import numbers_of, product
from tests.miner import oracle
from tests.miner.strategies import two_sides

DTYPES = [np.int32, np.float32, np.uint16]  # the last are bits of bfloat16
# Multiples of the loops' blocks, and others.
SIDES = st.sampled_from([1, 2, 5, 31, 32, 33, 64, 65, 100, 130])
# torch multiplies bfloat16, and an emulated CPU does without it.
MULTIPLIED = [name for name in PRECISIONS if name != "bfloat16" or find_spec("torch")]


def side(rows, random, slack):
    """Scales and biases with which float32 bounds are exact in any order, and often equal."""
    return Codes(
        ids=np.arange(rows, dtype=np.int32),
        numbers=np.empty((rows, 1), dtype=np.float32),
        scale=np.ldexp(np.float32(1), random.integers(-3, 2, rows)).astype(np.float32),
        bias=(random.integers(-8, 9, rows) / 4).astype(np.float32),
        slack=np.float32(slack),
    )


def tile_of(integers, dtype):
    """Small integers as a product of one of the types."""
    if dtype == np.uint16:
        return round_to_bfloat16(integers.astype(np.float32))
    return integers.astype(dtype)


def exact_bounds(tile, rows, columns):
    value = (
        numbers_of(tile).astype(np.float64) * rows.scale[:, None].astype(np.float64) * columns.scale
    )
    return value + np.abs(value) * rows.slack + rows.bias[:, None] + columns.bias


def cuts(length, size):
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def assert_best(candidates, bounds):
    """The largest bounds, best first; of equal ones at the floor any will do."""
    kept, width = candidates.bounds.shape[1], bounds.shape[1]
    expected = np.full(candidates.bounds.shape, -np.inf)
    expected[:, : min(kept, width)] = -np.sort(-bounds, axis=1)[:, :kept]
    np.testing.assert_array_equal(candidates.bounds, expected)
    np.testing.assert_array_equal(candidates.floor, expected[:, -1])
    for row, ids in enumerate(candidates.ids):
        there = ids[:width]
        assert len(set(there.tolist())) == len(there)
        np.testing.assert_array_equal(bounds[row, there], candidates.bounds[row, :width])
        assert (ids[width:] == -1).all()


def take(tile, rows, columns, forward, backward, *, repeated=False):
    floors = (*rows.terms, forward.floor), (*columns.terms, backward.floor)
    found = compiled.hits(tile, rows.slack, *floors)
    sides = [(np.arange(len(codes)), codes.ids) for codes in (rows, columns)]
    compiled.take(found, *sides, forward, backward, repeated)


@settings(max_examples=60)
@given(
    shape=st.tuples(SIDES, SIDES),
    tiles=st.tuples(SIDES, SIDES),
    kept=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    dtype=st.sampled_from(DTYPES),
    spread=st.sampled_from([1, 7, 250]),
    repeats=st.sampled_from([0, 0, 1, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_take_keeps_the_largest_bounds(shape, tiles, kept, dtype, spread, repeats, seed):
    random = np.random.default_rng(seed)
    slack = 2.0**-8 if dtype == np.uint16 else 0
    rows, columns = side(shape[0], random, slack), side(shape[1], random, slack)
    whole = tile_of(random.integers(-spread, spread + 1, shape), dtype)
    forward, backward = Candidates.empty(shape[0], kept[0]), Candidates.empty(shape[1], kept[1])
    every = [(top, left) for top in cuts(shape[0], tiles[0]) for left in cuts(shape[1], tiles[1])]
    for place in random.permutation(np.repeat(np.arange(len(every)), 1 + repeats)):
        top, left = every[place]
        take(
            np.ascontiguousarray(whole[top, left]),
            *(rows.take(top), columns.take(left), forward.take(top), backward.take(left)),
            repeated=repeats > 0,
        )
    bounds = exact_bounds(whole, rows, columns)
    assert_best(forward, bounds)
    assert_best(backward, bounds.T)


@pytest.mark.parametrize("order", [1, -1])
def test_take_of_bounds_that_rise_or_fall(order):
    """All of a row's candidates are replaced in each block, or none ever is."""
    tile = order * np.arange(300, dtype=np.float32).reshape(1, -1)
    ones = side(300, np.random.default_rng(0), 0)
    ones.scale[:], ones.bias[:] = 1, 0
    forward, backward = Candidates.empty(1, 12), Candidates.empty(300, 1)
    take(tile, ones.take(slice(1)), ones, forward, backward)
    assert_best(forward, numbers_of(tile).astype(np.float64))
    assert (backward.ids == 0).all()


def candidates_of(table, random, *, given, kept):
    """Candidates for some neighbours of each row: bounds above cosines, -1 for none."""
    rows, columns = table.shape
    candidates = Candidates.empty(rows, kept)
    for row in range(rows):
        excess = np.float32(random.choice([0, 1e-7, 0.01, 0.5]))
        ids = random.permutation(columns)[: min(given, kept)]
        bounds = table[row, ids] + excess * random.random(len(ids), dtype=np.float32)
        order = np.argsort(-bounds, kind="stable")
        candidates.ids[row, : len(ids)] = ids[order]
        candidates.bounds[row, : len(ids)] = bounds[order]
    candidates.floor[:] = candidates.bounds[:, -1]
    return candidates


@settings(max_examples=60)
@given(
    sides=two_sides(max_rows=20),
    k=st.integers(1, 8),
    more=st.integers(0, 4),
    given_=st.integers(0, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_verify_ranks_candidates_by_exact_cosines(sides, k, more, given_, seed):
    queries, base = sides
    table = oracle.cosines(queries, base)
    candidates = candidates_of(table, np.random.default_rng(seed), given=given_, kept=k + more)
    found = Neighbours.empty(len(queries), k)
    random = np.random.default_rng(seed)
    lows = random.choice([-np.inf, 0, *table[:, 0]], len(queries)).astype(np.float32)
    found.cosines[:] = lows[:, None]
    names, incomplete = random.permutation(len(base)), np.ones(len(queries), dtype=np.bool_)
    compiled.verify(queries, base, names, candidates, found.ids, found.cosines, incomplete)
    for row, ids in enumerate(candidates.ids):
        wanted = ids[ids >= 0][table[row, ids[ids >= 0]] > lows[row]].tolist()
        near = sorted(wanted, key=lambda y: (-table[row, y], names[y]))[:k]
        missing = k - len(near)
        assert found.ids[row].tolist() == names[near].tolist() + [-1] * missing
        assert found.cosines[row].tolist() == [*table[row, near].tolist(), *[lows[row]] * missing]
        left_out, last = candidates.bounds[row, -1], found.cosines[row, -1]
        assert incomplete[row] == (left_out > last if missing else left_out >= last)


def complete(tile, left, right, x, y, found):
    below = np.nextafter(found.cosines[:, -1], np.float32(-np.inf))
    none = np.full(len(right), LARGE, dtype=np.float32)
    hits = compiled.hits(tile, left.slack, (*left.terms, below), (*right.terms, none))
    names = np.arange(len(y))
    compiled.fallback_search(hits, x, left.ids, y, right.ids, names, (found.ids, found.cosines))


@settings(max_examples=60)
@given(
    sides=two_sides(max_rows=40),
    k=st.integers(1, 8),
    width=st.sampled_from([1, 3, 16, 64]),
    precision=st.sampled_from(MULTIPLIED),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_fallback_search_completes_any_neighbours(sides, k, width, precision, seed):
    """From whatever neighbours a row has to its nearest, each once, ties to the lower id."""
    random = np.random.default_rng(seed)
    left, right = encode_both(*sides, precision)
    table = oracle.cosines(*sides)
    k = min(k, len(right))
    found = Neighbours(
        ids=np.empty((len(left), k), dtype=np.int64),
        cosines=np.empty((len(left), k), dtype=np.float32),
    )
    for row in range(len(left)):
        ids = sorted(random.permutation(len(right))[:k], key=lambda y: (-table[row, y], y))
        found.ids[row], found.cosines[row] = ids, table[row, ids]
    for columns in random.permutation(cuts(len(right), width)):
        part = right.take(columns)
        tile = product(left.numbers, part.numbers)
        complete(tile, left, part, *sides, found)
    ids, cosines = oracle.nearest(table, k)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.cosines, cosines)


def fallback_search(tile, *, scale, base, ids, found):
    """One row, (1, 0), against rows (``base``, 0) named ``ids``; bounds are scaled products."""
    left, right = (
        Codes(
            ids=np.array(names, dtype=np.int32),
            numbers=np.zeros((len(names), 2), dtype=np.float32),
            scale=np.full(len(names), factor, dtype=np.float32),
            bias=np.zeros(len(names), dtype=np.float32),
            slack=np.float32(0),
        )
        for names, factor in (([0], 1), (ids, scale))
    )
    x, y = np.array([[1, 0]], dtype=np.float32), np.zeros((max(ids) + 1, 2), dtype=np.float32)
    y[ids, 0] = base
    complete(tile, left, right, x, y, found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_fallback_search_looks_at_what_may_be_better_only(dtype):
    """An exact cosine costs a vector: none is computed where the bound is too low for it."""
    found = Neighbours(ids=np.array([[9]]), cosines=np.array([[0.5]], dtype=np.float32))
    tile = tile_of(np.array([[4, 4, 1]]), dtype)  # the last bound, a quarter, is a lie
    fallback_search(tile, scale=0.25, base=[0.75, 0.875, 1], ids=[0, 1, 2], found=found)
    assert (found.ids.item(), found.cosines.item()) == (1, 0.875)


@pytest.mark.parametrize(("other", "expected"), [(3, 3), (9, 7)])
def test_a_bound_that_equals_the_last_cosine_may_hide_a_lower_id(other, expected):
    found = Neighbours(ids=np.array([[7]]), cosines=np.array([[0.5]], dtype=np.float32))
    tile = np.array([[2]], dtype=np.int32)
    fallback_search(tile, scale=0.25, base=[0.5], ids=[other], found=found)
    assert (found.ids.item(), found.cosines.item()) == (expected, 0.5)
