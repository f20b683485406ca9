"""Products of integers by every set of instructions of this CPU, against NumPy's of int64."""

import os
import platform
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding, ir

from miner.instructions import CHOSEN, NONE, SETS, USABLE, VARIABLE
from miner.knn.core import compiled, int8, products
from miner.knn.core.codes import Codes
from tests.miner.knn.core.test_compiled import exact_bounds
from tests.miner.knn.core.test_compiled import side as exact_side

NEEDS_SET = pytest.mark.skipif(not CHOSEN, reason="no set of instructions on this CPU")
pytestmark = NEEDS_SET

ROWS = st.sampled_from([1, 5, 6, 7, 13, 64, 90])
COLUMNS = st.sampled_from([1, 15, 16, 63, 64, 65, 130, 200])
DIMENSIONS = st.sampled_from([1, 3, 4, 60, 64, 67, 256])


LARGEST = pytest.mark.parametrize("largest", [127, 64, 63])


def product(x, y, largest=127):
    return int8.Columns(y, largest).multiplied(x)


def extreme(random, shape, largest=127):
    return random.choice(np.array([-largest, -1, 0, 1, largest], dtype=np.int8), shape)


def spread(random, shape, largest=127):
    return random.integers(-largest, largest + 1, shape).astype(np.int8)


@LARGEST
@settings(max_examples=60)
@given(
    shape=st.tuples(ROWS, COLUMNS, DIMENSIONS),
    numbers=st.sampled_from([extreme, spread]),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_are_exact(largest, shape, numbers, seed):
    random = np.random.default_rng(seed)
    rows, columns, dim = shape
    x, y = numbers(random, (rows, dim), largest), numbers(random, (columns, dim), largest)
    expected = x.astype(np.int64) @ y.T.astype(np.int64)
    np.testing.assert_array_equal(product(x, y, largest), expected)
    np.testing.assert_array_equal(product(x[1:], y[1:], largest), expected[1:, 1:])


@LARGEST
@pytest.mark.parametrize("dim", [4, 8, 67, 1024, products.INT8_DIMENSIONS - 1])
def test_sums_of_the_largest_codes(largest, dim):
    """Rows and columns of one code, of the smallest next to the largest, and of changing signs."""
    x = np.full((4, dim), largest, dtype=np.int8)
    x[1] *= -1
    x[2, ::2] *= -1
    x[3, 1::2] *= -1
    expected = x.astype(np.int64) @ x.T.astype(np.int64)
    assert expected[0, 0] == largest**2 * dim
    np.testing.assert_array_equal(product(x, x, largest), expected)


@pytest.mark.parametrize(("largest", "narrow"), [(63, True), (64, False), (127, False)])
def test_codes_are_of_8_bits_if_four_products_fill_16(largest, narrow):
    """Larger codes are of 16 bits on AVX2, which needs more time for them."""
    columns = int8.Columns(np.zeros((1, 64), np.int8), largest)
    assert columns._kind == (np.int8 if narrow or not CHOSEN.int16 else np.int16)


def side(random, numbers, scale, bias):
    rows = len(numbers)
    return Codes(
        ids=np.arange(rows, dtype=np.int32),
        numbers=numbers,
        scale=(scale * random.uniform(0.5, 1, rows)).astype(np.float32),
        bias=(bias * random.standard_normal(rows)).astype(np.float32),
        slack=np.float32(0),
    )


KINDS = [np.int8, np.int16] if CHOSEN and CHOSEN.int16 else [np.int8]


def column_codes(random, shape, kind):
    """Any codes of columns that hits are found of, and the most extreme ones."""
    largest = int8.LARGEST if kind == np.int8 else 127
    if random.random() < 0.3:
        return random.choice(np.array([-largest, largest], dtype=kind), shape)
    return random.integers(-largest, largest + 1, shape).astype(kind)


def row_codes(random, shape, kind):
    """Any codes of rows that hits are found of, many with the largest sums of eight."""
    codes = random.integers(-127, 128, shape).astype(kind)
    if random.random() < 0.3:
        codes = abs(codes) * random.choice(np.array([-1, 1], dtype=kind), (shape[0], 1))
    if kind == np.int8 and int8.LARGEST_SUM < 1016:
        padded = np.pad(codes, ((0, 0), (0, -shape[1] % 16)))
        eights = padded.reshape(shape[0], -1, 4, 2, 2)  # sixteens, fours, sums, two each
        for sign in (1, -1):
            sums = np.maximum(sign * eights.astype(int), 0).sum(axis=(2, 4), keepdims=True)
            scaled = np.trunc(eights * np.minimum(1, int8.LARGEST_SUM / np.maximum(sums, 1)))
            np.copyto(eights, scaled.astype(kind), where=sign * eights > 0)
        codes = padded[:, : shape[1]]
    return np.ascontiguousarray(codes)


def hits_of(x, y, row_floor, column_floor):
    codes = (*x.terms, row_floor), (*y.terms, column_floor)
    return int8.hits(x.numbers, y.numbers, *codes)


def floors_of(bounds, level, random):
    """Some of the bounds, or none yet."""
    for axis in (1, 0):
        floor = np.quantile(bounds, level, axis=axis, method="nearest").astype(np.float32)
        floor[random.random(len(floor)) < 0.1] = -np.inf
        yield floor


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS),
    shape=st.tuples(ROWS, COLUMNS, DIMENSIONS),
    level=st.sampled_from([0.0, 0.9, 0.999, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_hits_are_those_of_the_product(kind, shape, level, seed):
    """Of numbers that float32 adds and multiplies exactly: what equals its floor is no hit."""
    random = np.random.default_rng(seed)
    rows, columns, dim = shape
    x, y = (
        replace(
            exact_side(count, random, 0), numbers=spread(random, (count, dim)).astype(kind) >> 4
        )
        for count in (rows, columns)
    )
    tile = x.numbers.astype(np.int32) @ y.numbers.T.astype(np.int32)
    floors = list(floors_of(exact_bounds(tile, x, y), level, random))
    places, bounds = compiled.hits(tile, x.slack, (*x.terms, floors[0]), (*y.terms, floors[1]))
    found = hits_of(x, y, *floors)
    order = np.argsort(found[0])
    np.testing.assert_array_equal(found[0][order], places)
    np.testing.assert_array_equal(found[1][order], bounds)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS),
    shape=st.tuples(ROWS, COLUMNS, DIMENSIONS),
    scale=st.sampled_from([1e-30, 1e-7, 1e-3, 1.0]),
    bias=st.sampled_from([0.0, 0.01, 5.0]),
    level=st.sampled_from([0.0, 0.9, 0.999, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_hits_where_float32_rounds(kind, shape, scale, bias, level, seed):
    """Nothing that is above a floor by more than its rounding is missed, nothing below is found."""
    random = np.random.default_rng(seed)
    rows, columns, dim = shape
    x = side(random, row_codes(random, (rows, dim), kind), scale, bias)
    y = side(random, column_codes(random, (columns, dim), kind), scale, bias)
    tile = x.numbers.astype(np.int32) @ y.numbers.T.astype(np.int32)
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
    x, y = (
        side(random, codes(random, (n, 8), np.int8), 1e-3, 0)
        for codes, n in ((row_codes, 90), (column_codes, 200))
    )
    none = np.full(90, -np.inf, dtype=np.float32), np.full(200, -np.inf, dtype=np.float32)
    assert sorted(hits_of(x, y, *none)[0].tolist()) == list(range(90 * 200))


@pytest.mark.parametrize("shape", [(0, 5, 8), (5, 0, 8)])
def test_an_empty_tile(shape):
    rows, columns, dim = shape
    x, y = np.zeros((rows, dim), dtype=np.int8), np.zeros((columns, dim), dtype=np.int8)
    assert product(x, y).shape == (rows, columns)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, -1)])
@pytest.mark.parametrize("dim", [4, 8, 512, 1540, 40_000])
def test_no_sum_of_the_largest_codes_overflows(kind, signs, dim):
    """Every product is in every row and column, so each is found with its sum as its bound."""
    is_limited = kind == np.int8 and int8.LARGEST_SUM < 1016
    row = [26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 25, 25, 25, 25] if is_limited else [127]
    x = np.tile(np.resize(np.array(row, dtype=kind), dim) * signs[0], (7, 1))
    y = np.full((7, dim), signs[1] * (int8.LARGEST if kind == np.int8 else 127), dtype=kind)
    ones, zeros, none = (np.full(7, value, np.float32) for value in (1, 0, -np.inf))
    _, bounds = int8.hits(x, y, (ones, zeros, none), (ones, zeros, none))
    assert bounds.tolist() == [np.float32(x[0].astype(int) @ y[0].astype(int))] * 49


def test_of_sets_one_that_is_not_there_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", "import miner.compiling"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, VARIABLE: "mmx"},
    )
    assert done.returncode == 1
    known = ", ".join((*USABLE, NONE))
    expected = f"ValueError: ADIT_INT8=mmx: not available on this CPU; choose one of {known}"
    assert done.stderr.splitlines()[-1] == expected


@pytest.mark.parametrize("name", SETS)
def test_largest_codes_leave_room_in_16_bits(name):
    """Of what vpmaddubsw multiplies: eight products are summed before they are widened."""
    each = SETS[name]
    if each.limited:
        assert each.limited.steps == 4
        assert (each.largest + each.limited.raised) * each.largest_sum < 2**15
    assert each.int8.raised in (0, each.largest + 1)


CPUS = {  # one that has each set, and the instruction that multiplies
    "amx-int8": ("x86_64", "sapphirerapids", r"tdpbssd"),
    "avx512vnni": ("x86_64", "cascadelake", r"vpdpbusd.*%zmm"),
    "avxvnni": ("x86_64", "alderlake", r"vpdpbusd.*%ymm"),
    "avx512bw": ("x86_64", "skylake-avx512", r"vpmaddubsw.*%zmm"),
    "avx2": ("x86_64", "haswell", r"vpmaddubsw.*%ymm"),
    "dotprod": ("aarch64", "neoverse-n1", r"sdot\s+v\d+\.4s, v\d+\.16b"),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("limited", [False, True])
def test_sets_compile_to_their_instructions(name, limited):
    """For every CPU, whether or not it is this one."""
    machine, cpu, instruction = CPUS[name]
    way = (limited and SETS[name].limited) or SETS[name].int8
    vector = ir.VectorType(ir.IntType(32), SETS[name].lanes)
    module = ir.Module()
    kind = ir.FunctionType(vector, [vector] * (1 + 2 * way.steps))
    function = ir.Function(module, kind, "sums")
    builder = ir.IRBuilder(function.append_basic_block())
    total, *given = function.args
    if way.multiply:
        sums = None if way.widen else total
        for pair in zip(given[: way.steps], given[way.steps :], strict=True):
            sums = way.multiply(builder, sums, *pair)
        total = way.widen(builder, total, sums) if way.widen else sums
    else:
        int8.call_on_tiles(builder, "tdpbssd", 0, 4, 6)
    builder.ret(total)
    if "asm" in str(module) and machine != platform.machine():
        pytest.skip("llvmlite parses inline assembly of this machine only")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()
    target = binding.Target.from_triple(f"{machine}-unknown-linux-gnu")
    compiled = target.create_target_machine(cpu=cpu).emit_assembly(
        binding.parse_assembly(str(module))
    )
    assert len(re.findall(instruction, compiled)) == (way.steps if way.multiply else 1)


@pytest.mark.parametrize(("with_torch", "kernels"), [(1.0, 2.0), (2.0, 1.0)])
def test_torch_multiplies_where_it_is_faster(torch, fresh, monkeypatch, with_torch, kernels):
    monkeypatch.setattr(int8, "ASKED", "")
    times = iter((with_torch, kernels))
    monkeypatch.setattr(products, "seconds_of", lambda work: (work(), next(times))[1])
    assert products.compiled_int8() is (None if with_torch < kernels else int8)


def fails(*_):
    raise RuntimeError("_int_mm is not there")


def saturates(left, right):
    return left.int().new_full((left.shape[0], right.shape[1]), 32767)


@pytest.mark.parametrize("lack", [fails, saturates, "not loaded", "a set is asked for"])
def test_torch_does_not_multiply_otherwise(torch, fresh, monkeypatch, lack):
    monkeypatch.setattr(int8, "ASKED", "avx2" if lack == "a set is asked for" else "")
    monkeypatch.setattr(products, "seconds_of", lambda work: pytest.fail("nothing to measure"))
    if lack == "not loaded":
        monkeypatch.delitem(sys.modules, "torch")
    elif callable(lack):
        monkeypatch.setattr(torch, "_int_mm", lack)
    assert products.compiled_int8() is int8


@pytest.mark.parametrize("dim", [5, 64, 2000])
def test_weights_are_multiplied_without_a_set(monkeypatch, dim):
    monkeypatch.setattr(int8, "CHOSEN", None)
    monkeypatch.setattr(int8, "Columns", None)
    x, y = (np.full((rows, dim), 127, dtype=np.int8) for rows in (3, 2))
    x[::2] *= -1
    products_of_all = products.multiplier(y)(x)
    assert products_of_all.dtype == np.int32
    np.testing.assert_array_equal(products_of_all, x.astype(np.int64) @ y.T.astype(np.int64))


@pytest.mark.parametrize(
    ("asked", "with_torch", "kernels", "multiplies"),
    [("", 1.0, 2.0, "torch"), ("", 2.0, 1.0, "kernels"), ("avx2", 1.0, 2.0, "kernels")],
)
def test_weights_are_multiplied_by_what_is_faster(
    torch, monkeypatch, asked, with_torch, kernels, multiplies
):
    random, used, real = np.random.default_rng(0), [], torch._int_mm
    monkeypatch.setattr(int8, "ASKED", asked)
    times = iter((with_torch, kernels))
    monkeypatch.setattr(products, "seconds_of", lambda work: next(times))
    weights, rows = spread(random, (130, 67)), spread(random, (9, 67))
    multiplied = products.multiplier(weights)
    monkeypatch.setattr(torch, "_int_mm", lambda *given: (used.append("torch"), real(*given))[1])
    expected = rows.astype(np.int64) @ weights.T.astype(np.int64)
    np.testing.assert_array_equal(multiplied(rows), expected)
    assert (used or ["kernels"]) == [multiplies]


@pytest.mark.parametrize("lack", [fails, saturates, "not loaded"])
def test_weights_are_multiplied_by_kernels_where_torch_fails(torch, monkeypatch, lack):
    random = np.random.default_rng(0)
    monkeypatch.setattr(int8, "ASKED", "")
    if lack == "not loaded":
        monkeypatch.delitem(sys.modules, "torch")
    else:
        monkeypatch.setattr(torch, "_int_mm", lack)
    weights, rows = spread(random, (130, 68)), spread(random, (9, 68))
    expected = rows.astype(np.int64) @ weights.T.astype(np.int64)
    np.testing.assert_array_equal(products.multiplier(weights)(rows), expected)
