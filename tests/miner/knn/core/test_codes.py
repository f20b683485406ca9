import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.knn.core import codes, passes
from miner.knn.core.codes import (
    PRECISIONS,
    UNIT,
    encode_both,
    product_rounding,
    round_to_bfloat16,
)
from miner.knn.core.products import numbers_of, product
from miner.knn.core.rescore import unit_rows
from tests.miner.knn.test_exact import assert_is_full_sort, search, set_tiles
from tests.miner.strategies import two_sides

# Float32 operations on a product and two biases, in any order: each errs by a UNIT of their sizes.
OPERATIONS = 6


def excess(source, target, precision, axes=None):
    """By how much bounds exceed cosines, computed with the worst float32 that there may be."""
    left, right = encode_both(source, target, precision, axes=axes)
    scale = left.scale[:, None].astype(np.float64) * right.scale
    value = scale * numbers_of(product(left.numbers, right.numbers)).astype(np.float64)
    bound = value + np.abs(value) * left.slack + left.bias[:, None].astype(np.float64) + right.bias
    sizes = np.abs(value) * 1.01 + np.abs(left.bias)[:, None] + np.abs(right.bias)
    cosines = source.astype(np.float64) @ target.T.astype(np.float64)
    return bound - OPERATIONS * UNIT * sizes - cosines


def hard(kind, rows, dim, random):
    """Vectors whose codes, means or lengths are as bad as they get."""
    if kind == "spike":  # one large number sets the scale of int8, all others are rounded to 0
        vectors = random.uniform(0.3, 0.499, (rows, dim)) / 127
        vectors[np.arange(rows), random.integers(dim, size=rows)] = 1
    elif kind == "ones":  # all numbers rounded the same way; the length is off by the most
        vectors = np.ones((rows, dim))
    elif kind == "lone":  # one row opposite to all others: twice as long when centred
        vectors = np.tile(random.standard_normal(dim), (rows, 1))
        vectors[0] *= -1
    elif kind == "halves":  # between two codes
        vectors = (random.integers(-63, 63, (rows, dim)) + 0.5) / 127
        vectors[:, 0] = 1
    elif kind == "crowd":
        vectors = random.standard_normal(dim) + 1e-4 * random.standard_normal((rows, dim))
    elif kind == "tiny":  # numbers of the last bits of unit rows
        vectors = 2e-8 * random.standard_normal((rows, dim))
        vectors[:, 0] = 1
    else:
        assert kind == "anisotropic"
        vectors = random.standard_normal((rows, dim)) * np.exp(-8 * np.arange(dim) / dim) + 0.3
    return unit_rows(vectors)


KINDS = st.sampled_from(["spike", "ones", "lone", "halves", "crowd", "tiny", "anisotropic"])
DIMS = st.sampled_from([1, 2, 3, 5, 16, 63, 300])


@given(sides=two_sides(), precision=st.sampled_from(PRECISIONS))
def test_no_cosine_exceeds_its_bound(sides, precision):
    assert excess(*sides, precision).min() >= 0


@settings(max_examples=300)
@given(
    kinds=st.tuples(KINDS, KINDS),
    rows=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    dim=DIMS,
    related=st.sampled_from([0, 1, -1]),
    seed=st.integers(0, 2**32 - 1),
    precision=st.sampled_from(PRECISIONS),
)
def test_no_cosine_of_hard_vectors_exceeds_its_bound(kinds, rows, dim, related, seed, precision):
    random = np.random.default_rng(seed)
    source, target = (hard(kinds[side], rows[side], dim, random) for side in range(2))
    if related:
        target = np.concatenate([target, related * source])
    assert excess(source, target, precision).min() >= 0


@settings(max_examples=100)
@given(
    kinds=st.tuples(KINDS, KINDS),
    rows=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    dim=st.sampled_from([1, 3, 6, 8, 16, 63, 300]),
    seed=st.integers(0, 2**32 - 1),
)
def test_int8_codes_keep_to_their_limits(kinds, rows, dim, seed):
    """Those of instructions that sum eight products in 16 bits."""
    random = np.random.default_rng(seed)
    sides = [hard(kinds[side], rows[side], dim, random) for side in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "largest_code", lambda: 79)
        patch.setattr(codes, "largest_sum", lambda: 206)
        left, right = encode_both(*sides, "int8")
        assert excess(*sides, "int8").min() >= 0
    assert np.abs(right.numbers.astype(int)).max() <= 79
    padded = np.pad(left.numbers.astype(int), ((0, 0), (0, -dim % 16)))
    eights = padded.reshape(rows[0], -1, 4, 2, 2)
    for sign in (1, -1):
        assert np.maximum(sign * eights, 0).sum(axis=(2, 4)).max() <= 206


def some_axes(dim, count, noise, random):
    """Return orthonormal columns plus ``noise``."""
    axes = np.linalg.qr(random.standard_normal((dim, dim)))[0][:, :count]
    return (axes + noise * random.standard_normal(axes.shape)).astype(np.float32)


@settings(max_examples=300)
@given(
    kinds=st.tuples(KINDS, KINDS),
    rows=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    dim=DIMS,
    share=st.floats(0, 1),
    noise=st.sampled_from([0, 1e-6, 1e-3]),
    related=st.sampled_from([0, 1, -1]),
    seed=st.integers(0, 2**32 - 1),
    precision=st.sampled_from(PRECISIONS),
)
def test_no_cosine_exceeds_its_bound_along_axes(
    kinds, rows, dim, share, noise, related, seed, precision
):
    random = np.random.default_rng(seed)
    source, target = (hard(kinds[side], rows[side], dim, random) for side in range(2))
    if related:
        target = np.concatenate([target, related * source])
    axes = some_axes(dim, max(1, round(share * dim)), noise, random)
    assert excess(source, target, precision, axes).min() >= 0


def test_rests_of_rows_are_in_their_bounds():
    """Rows that differ only beyond the axes have products of 0."""
    source = unit_rows(np.array([[1.0, 1, 0], [1, -1, 0]]))
    axes = np.eye(3, dtype=np.float32)[:, [2]]
    left, right = encode_both(source, source, "float32", axes=axes)
    bounds = left.bias[:, None] + right.bias
    np.testing.assert_array_equal(product(left.numbers, right.numbers), 0)
    np.testing.assert_allclose(bounds, [[1, 1], [1, 1]], atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", ["ones", "spike", "anisotropic", "crowd"])
def test_no_bound_is_exceeded_in_20000_dimensions(kind, precision):
    random = np.random.default_rng(1)
    source, target = hard(kind, 9, 20_000, random), hard(kind, 12, 20_000, random)
    assert excess(source, np.concatenate([target, source, -source]), precision).min() >= 0


@pytest.mark.parametrize(
    ("precision", "most"), [("int8", 0.02), ("bfloat16", 0.008), ("float32", 2e-4)]
)
@pytest.mark.parametrize("dim", [64, 1024])
def test_bounds_are_tight_enough_to_sort_by(precision, most, dim):
    random = np.random.default_rng(2)
    sides = tuple(unit_rows(random.standard_normal((rows, dim))) for rows in (200, 300))
    is_limited = precision == "int8" and codes.largest_code() < 127
    assert excess(*sides, precision).mean() < most * (1.3 if is_limited else 1)


@pytest.mark.parametrize(("precision", "most"), [("int8", 2e-3), ("bfloat16", 1e-3)])
def test_what_all_rows_share_costs_no_bits(precision, most):
    """Bounds of rows a tenth of a length apart are ten times as tight, at least."""
    random = np.random.default_rng(3)
    sides = tuple(unit_rows(1 + 0.1 * random.standard_normal((rows, 256))) for rows in (200, 300))
    assert excess(*sides, precision).mean() < most


def adversary(left, right):
    """The product of codes that errs by all that it may, against the row's best and for others."""
    x, y = (numbers_of(side).astype(np.float64) for side in (left, right))
    table = x @ y.T
    name = "bfloat16" if left.dtype == np.uint16 else "float32"
    lengths = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
    errors = product_rounding(name, x.shape[1]) * lengths
    median = np.median(table, axis=1, keepdims=True)
    wrong = (table - np.where(table >= median, errors, -errors)).astype(np.float32)
    return round_to_bfloat16(wrong) if name == "bfloat16" else wrong


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("dim", [16, 4096])
def test_a_product_that_errs_by_all_it_may_changes_nothing(monkeypatch, precision, dim):
    random = np.random.default_rng(dim)
    centre = random.standard_normal(dim)
    near = 3 * np.sqrt(product_rounding("float32", dim))
    sides = tuple(unit_rows(centre + near * random.standard_normal((n, dim))) for n in (40, 70))
    set_tiles(monkeypatch, 7, 16)
    monkeypatch.setattr(passes, "product", adversary)
    assert_is_full_sort(*sides, 3, search(sides, k=3, precision=precision))


@pytest.mark.parametrize("dim", [1, 2, 3, 64])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 9), (9, 1), (40, 70)])
def test_int8_products_are_exact(rows, columns, dim):
    """torch._int_mm leaves products of one dimension unset."""
    random = np.random.default_rng(dim)
    x, y = (random.choice([-127, 127, 126], (n, dim)).astype(np.int8) for n in (rows, columns))
    found = product(x, y)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, x.astype(np.int32) @ y.T.astype(np.int32))


@given(
    numbers=st.lists(
        st.floats(
            width=32, allow_nan=False, allow_infinity=False, max_value=2.0**99, min_value=-(2.0**99)
        )
    )
)
def test_bfloat16_rounds_to_the_nearest_as_torch_does(numbers):
    row = np.array([numbers], dtype=np.float32)
    found = round_to_bfloat16(row)
    expected = torch.from_numpy(row).to(torch.bfloat16)
    np.testing.assert_array_equal(numbers_of(found), expected.float().numpy())


def saturating(left, right):
    """What oneDNN computes without VNNI: sums of two products in 16 bits."""
    products = (left.int() + 128)[:, :, None] * right.int()
    pairs = (products[:, ::2] + products[:, 1::2]).clamp(-(2**15), 2**15 - 1)
    return pairs.sum(dim=1, dtype=torch.int32) - 128 * right.sum(dim=0, dtype=torch.int32)


def test_int8_products_that_saturate_are_refused(monkeypatch, no_kernels):
    monkeypatch.setattr(torch, "_int_mm", saturating)
    unit = unit_rows(np.ones((3, 8)))
    with pytest.raises(
        ValueError, match="--search-precision int8: products are inexact on this CPU; use"
    ):
        encode_both(unit, unit, "int8")


def test_part():
    units = unit_rows(np.random.default_rng(0).standard_normal((9, 6)))
    whole, _ = encode_both(units, units, "int8")
    for rows in (slice(2, 5), np.array([7, 0])):
        part = whole.take(rows)
        assert len(part) == len(units[rows])
        np.testing.assert_array_equal(part.ids, np.arange(9)[rows])
        for name in ("scale", "bias"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])
        np.testing.assert_array_equal(part.numbers, whole.numbers[rows])
        assert part.slack == whole.slack


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("sizes", [(0, 4), (4, 0), (0, 0)])
def test_an_empty_side(sizes, precision):
    left, right = encode_both(*(unit_rows(np.ones((n, 8))) for n in sizes), precision)
    assert (len(left), len(right)) == sizes
    assert np.isfinite(left.bias).all()
    assert np.isfinite(right.bias).all()


def test_errors():
    unit = np.ones((1, 4), dtype=np.float32) / 2
    for axes in (np.ones((4, 2)), np.full((4, 2), np.nan)):
        with pytest.raises(ValueError, match="2 axes are not orthonormal columns"):
            encode_both(unit, unit, "float32", axes=axes.astype(np.float32))
    with pytest.raises(ValueError, match="precision 'int4' is unknown; choose one of int8, bfl"):
        encode_both(unit, unit, "int4")
    wide = np.zeros((1, 1 << 17), dtype=np.float32)
    with pytest.raises(ValueError, match="sums of 131072 dimensions may overflow; use bfloat16"):
        encode_both(wide, wide, "int8")
