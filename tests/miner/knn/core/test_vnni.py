"""Products of int8 codes by compiled code, against NumPy's of int64."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.knn.core import compiled, products, vnni
from miner.knn.core.codes import Codes
from tests.miner.knn.core.test_compiled import exact_bounds
from tests.miner.knn.core.test_compiled import side as exact_side

pytestmark = pytest.mark.skipif(not vnni.AVAILABLE, reason="not on this processor")

ROWS = st.sampled_from([1, 5, 6, 7, 13, 64, 90])
COLUMNS = st.sampled_from([1, 15, 16, 63, 64, 65, 130, 200])
DIMENSIONS = st.sampled_from([1, 3, 4, 60, 64, 67, 256])


def product(x, y):
    return vnni.Columns(y).multiplied(x)


def extreme(random, shape):
    return random.choice(np.array([-127, -1, 0, 1, 127], dtype=np.int8), shape)


def spread(random, shape):
    return random.integers(-127, 128, shape).astype(np.int8)


@settings(max_examples=60)
@given(
    shape=st.tuples(ROWS, COLUMNS, DIMENSIONS),
    numbers=st.sampled_from([extreme, spread]),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_are_exact(shape, numbers, seed):
    random = np.random.default_rng(seed)
    rows, columns, dim = shape
    x, y = numbers(random, (rows, dim)), numbers(random, (columns, dim))
    expected = x.astype(np.int64) @ y.T.astype(np.int64)
    np.testing.assert_array_equal(product(x, y), expected)
    np.testing.assert_array_equal(product(x[1:], y[1:]), expected[1:, 1:])


def test_sums_of_the_largest_codes_of_the_most_dimensions():
    dim = products.INT8_DIMENSIONS - 1
    x = np.full((1, dim), 127, dtype=np.int8)
    assert product(x, x).item() == product(-x, -x).item() == 127 * 127 * dim
    assert product(-x, x).item() == -127 * 127 * dim


def side(random, numbers, scale, bias):
    rows = len(numbers)
    return Codes(
        ids=np.arange(rows, dtype=np.int32),
        numbers=numbers,
        scale=(scale * random.uniform(0.5, 1, rows)).astype(np.float32),
        bias=(bias * random.standard_normal(rows)).astype(np.float32),
        slack=np.float32(0),
    )


def hits_of(x, y, row_floor, column_floor):
    codes = (*x.terms, row_floor), (*y.terms, column_floor)
    return vnni.hits(x.numbers, y.numbers, *codes)


def floors_of(bounds, level, random):
    """Some of the bounds, or none yet."""
    for axis in (1, 0):
        floor = np.quantile(bounds, level, axis=axis, method="nearest").astype(np.float32)
        floor[random.random(len(floor)) < 0.1] = -np.inf
        yield floor


@settings(max_examples=60)
@given(
    shape=st.tuples(ROWS, COLUMNS, DIMENSIONS),
    level=st.sampled_from([0.0, 0.9, 0.999, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_hits_are_those_of_the_product(shape, level, seed):
    """Of numbers that float32 adds and multiplies exactly: what equals its floor is no hit."""
    random = np.random.default_rng(seed)
    rows, columns, dim = shape
    x, y = (
        replace(exact_side(count, random, 0), numbers=spread(random, (count, dim)) >> 4)
        for count in (rows, columns)
    )
    tile = product(x.numbers, y.numbers)
    floors = list(floors_of(exact_bounds(tile, x, y), level, random))
    places, bounds = compiled.hits(tile, x.slack, (*x.terms, floors[0]), (*y.terms, floors[1]))
    found = hits_of(x, y, *floors)
    order = np.argsort(found[0])
    np.testing.assert_array_equal(found[0][order], places)
    np.testing.assert_array_equal(found[1][order], bounds)


@settings(max_examples=60)
@given(
    shape=st.tuples(ROWS, COLUMNS, DIMENSIONS),
    scale=st.sampled_from([1e-30, 1e-7, 1e-3, 1.0]),
    bias=st.sampled_from([0.0, 0.01, 5.0]),
    level=st.sampled_from([0.0, 0.9, 0.999, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_hits_where_float32_rounds(shape, scale, bias, level, seed):
    """Nothing that is above a floor by more than its rounding is missed, nothing below is found."""
    random = np.random.default_rng(seed)
    rows, columns, dim = shape
    x = side(random, spread(random, (rows, dim)), scale, bias)
    y = side(random, spread(random, (columns, dim)), scale, bias)
    tile = product(x.numbers, y.numbers)
    bounds = exact_bounds(tile, x, y)
    row_floor, column_floor = floors_of(bounds, level, random)
    above = bounds - np.minimum(row_floor[:, None], column_floor)
    errors = 1e-6 * (np.abs(bounds) + np.abs(x.bias)[:, None] + np.abs(y.bias)) + 2.0**-48
    found = np.zeros(bounds.shape, dtype=np.bool_)
    places, found_bounds = hits_of(x, y, row_floor, column_floor)
    found.flat[places] = True
    assert found[above > errors].all()
    assert not found[above < -errors].any()
    np.testing.assert_allclose(found_bounds, bounds.flat[places], atol=errors.max())


def test_more_hits_than_there_was_room_for():
    random = np.random.default_rng(0)
    x, y = (side(random, spread(random, (rows, 8)), 1e-3, 0) for rows in (90, 200))
    none = np.full(90, -np.inf, dtype=np.float32), np.full(200, -np.inf, dtype=np.float32)
    assert sorted(hits_of(x, y, *none)[0].tolist()) == list(range(90 * 200))


@pytest.mark.parametrize("shape", [(0, 5, 8), (5, 0, 8)])
def test_an_empty_tile(shape):
    rows, columns, dim = shape
    x, y = np.zeros((rows, dim), dtype=np.int8), np.zeros((columns, dim), dtype=np.int8)
    assert product(x, y).shape == (rows, columns)


NARROW = """
from llvmlite import binding
features = binding.get_host_cpu_features()
features["avx512vnni"] = False
binding.get_host_cpu_features = lambda: features
import pytest
from miner.knn.core import vnni
assert vnni.LANES == 8
import sys
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1], "-k", "not narrow"]))
"""


@pytest.mark.skipif(not vnni._FEATURES.get("avxvnni"), reason="not on this processor")
def test_narrow_registers_do_the_same(tmp_path, monkeypatch):
    """Of laptops' processors, which lack the wide ones: all the tests above."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", NARROW, __file__], check=True)


def test_what_multiplies_int8(fresh, monkeypatch):
    """Not where torch has a unit of its own for it, and torch is there."""
    assert (products.compiled_int8() is None) == vnni.HAS_AMX
    monkeypatch.setattr(vnni, "HAS_AMX", True)
    products.compiled_int8.cache_clear()
    assert products.compiled_int8() is None
    monkeypatch.setattr(products, "find_spec", lambda name: None)
    products.compiled_int8.cache_clear()
    assert products.compiled_int8() is vnni
