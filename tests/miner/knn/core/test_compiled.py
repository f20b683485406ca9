"""The inner loops against an obvious oracle."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.knn.core import compiled
from miner.knn.core.codes import (
    PRECISIONS,
    Codes,
    encode_both,
    product_rounding,
    round_to_bfloat16,
)
from miner.knn.core.passes import LARGE, TopK
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


def keep(tile, rows, columns, bounds, ids):
    floors = (*rows.terms, bounds[:, -1]), (*columns.terms, np.full(len(columns), LARGE))
    compiled.keep_largest(compiled.hits(tile, rows.slack, *floors), columns.ids, bounds, ids)


def empty_bounds(rows, kept):
    return np.full((rows, kept), -np.inf, np.float32), np.full((rows, kept), -1, np.int32)


@settings(max_examples=60)
@given(
    shape=st.tuples(SIDES, SIDES),
    width=SIDES,
    kept=st.integers(1, 12),
    dtype=st.sampled_from(DTYPES),
    spread=st.sampled_from([1, 7, 250]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_largest_bounds_are_kept(shape, width, kept, dtype, spread, seed):
    """Best first; of equal ones, those of the first columns."""
    random = np.random.default_rng(seed)
    slack = 2.0**-8 if dtype == np.uint16 else 0
    rows, columns = side(shape[0], random, slack), side(shape[1], random, slack)
    whole = tile_of(random.integers(-spread, spread + 1, shape), dtype)
    bounds, ids = empty_bounds(shape[0], kept)
    for part in cuts(shape[1], width):
        keep(np.ascontiguousarray(whole[:, part]), rows, columns.take(part), bounds, ids)
    expected_ids, expected = oracle.nearest(exact_bounds(whole, rows, columns), kept)
    there = expected.shape[1]
    np.testing.assert_array_equal(bounds[:, :there], expected)
    np.testing.assert_array_equal(ids[:, :there], expected_ids)
    assert (ids[:, there:] == -1).all()


@pytest.mark.parametrize("order", [1, -1])
def test_bounds_that_rise_or_fall(order):
    """All of a row's bounds are replaced in each block, or none ever is."""
    tile = order * np.arange(300, dtype=np.float32).reshape(1, -1)
    ones = side(300, np.random.default_rng(0), 0)
    ones.scale[:], ones.bias[:] = 1, 0
    bounds, ids = empty_bounds(1, 12)
    keep(tile, ones.take(slice(1)), ones, bounds, ids)
    np.testing.assert_array_equal(bounds[0], -np.sort(-tile[0])[:12])


@settings(max_examples=60)
@given(sides=two_sides(max_rows=20), k=st.integers(1, 8), more=st.integers(0, 12), data=st.data())
def test_candidates_are_ranked_by_exact_cosines(sides, k, more, data):
    queries, base = sides
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    candidates = np.stack([random.permutation(len(base)) for _ in queries])[:, : k + more]
    candidates[random.random(candidates.shape) < 0.3] = -1
    found = Neighbours.empty(len(queries), k)
    compiled.rescore(queries, base, candidates, found.ids, found.cosines)
    table = oracle.cosines(queries, base)
    for row, ids in enumerate(candidates):
        near = sorted(ids[ids >= 0].tolist(), key=lambda y: (-table[row, y], y))[:k]
        missing = k - len(near)
        assert found.ids[row].tolist() == near + [-1] * missing
        assert found.cosines[row].tolist() == [*table[row, near].tolist(), *[-np.inf] * missing]


def insert(tile, left, right, sides, both, *, repeated=False, places=None):
    """Insert the hits of a tile, whose rows and columns are at ``places`` of their sides."""
    places = places or (np.arange(len(left)), np.arange(len(right)))
    floors = [part.floors[at] for part, at in zip(both, places, strict=True)]
    hits = compiled.hits(tile, left.slack, (*left.terms, floors[0]), (*right.terms, floors[1]))
    names = [np.arange(len(side)) for side in sides]
    rounding = np.float32(2 * product_rounding("float32", sides[0].shape[1]))
    compiled.take(hits, places, tuple(sides), tuple(names), both, rounding, repeated)


@settings(max_examples=100)
@given(
    sides=two_sides(max_rows=40),
    ks=st.tuples(st.integers(0, 8), st.integers(1, 8)),
    tiles=st.tuples(st.sampled_from([1, 3, 16, 64]), st.sampled_from([1, 3, 16, 64])),
    precision=st.sampled_from(MULTIPLIED),
    repeats=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_tiles_in_any_order_give_the_nearest(sides, ks, tiles, precision, repeats, seed):
    """In both directions or one, each once, ties to the lower id."""
    left, right = encode_both(*sides, precision)
    both = TopK.empty(len(left), ks[0]), TopK.empty(len(right), ks[1])
    every = [
        (top, beside) for top in cuts(len(left), tiles[0]) for beside in cuts(len(right), tiles[1])
    ]
    for place in np.random.default_rng(seed).permutation(
        np.repeat(np.arange(len(every)), 1 + repeats)
    ):
        rows, columns = (np.arange(part.start, part.stop) for part in every[place])
        x, y = left.take(rows), right.take(columns)
        tile = product(x.numbers, y.numbers)
        insert(tile, x, y, sides, both, repeated=repeats > 0, places=(rows, columns))
    table = oracle.cosines(*sides)
    for found, similar, k in zip(both, (table, table.T), ks, strict=True):
        ids, cosines = oracle.nearest(similar, k)
        np.testing.assert_array_equal(found.ids[:, : ids.shape[1]], ids)
        np.testing.assert_array_equal(found.cosines[:, : ids.shape[1]], cosines)
        assert (found.ids[:, ids.shape[1] :] == -1).all()


def one_row(tile, *, base, ids, nearest):
    """Insert hits of a row (1, 0) among rows (``base``, 0) at ``ids``, by a quarter of products."""
    left, right = (
        Codes(
            ids=np.array(names, dtype=np.int32),
            numbers=np.zeros((len(names), 2), dtype=np.float32),
            scale=np.full(len(names), factor, dtype=np.float32),
            bias=np.zeros(len(names), dtype=np.float32),
            slack=np.float32(0),
        )
        for names, factor in (([0], 1), (ids, 0.25))
    )
    x, y = np.array([[1, 0]], dtype=np.float32), np.zeros((max(ids) + 1, 2), dtype=np.float32)
    y[ids, 0] = base
    both = nearest, TopK.empty(len(y), 0)
    insert(tile, left, right, (x, y), both, places=(np.array([0]), np.array(ids)))


def top_of(number, cosine):
    floors = np.nextafter(np.float32([cosine]), np.float32(-np.inf))
    return TopK(np.array([[number]]), np.array([[cosine]], dtype=np.float32), floors)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosines_are_computed_where_bounds_exceed_the_floor_only(dtype):
    nearest = top_of(9, 0.5)
    tile = tile_of(np.array([[4, 4, 1]]), dtype)  # the last bound, a quarter, is a lie
    one_row(tile, base=[0.75, 0.875, 1], ids=[0, 1, 2], nearest=nearest)
    assert (nearest.ids.item(), nearest.cosines.item()) == (1, 0.875)
    assert nearest.floors.item() == np.nextafter(np.float32(0.875), np.float32(0))


@pytest.mark.parametrize(("other", "expected"), [(3, 3), (9, 7)])
def test_a_bound_that_equals_the_last_cosine_may_hide_a_lower_id(other, expected):
    nearest = top_of(7, 0.5)
    one_row(np.array([[2]], dtype=np.int32), base=[0.5], ids=[other], nearest=nearest)
    assert (nearest.ids.item(), nearest.cosines.item()) == (expected, 0.5)
