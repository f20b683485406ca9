import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.knn.core import rescore as module
from miner.knn.core.rescore import best, merge, merge_some, rescore, unit_rows
from miner.knn.exact import search_unit_rows
from tests.miner import oracle
from tests.miner.strategies import hard_vectors, two_sides


@given(vectors=hard_vectors(rows=9, dim=40))
def test_unit_rows_equal_the_oracle(vectors):
    np.testing.assert_array_equal(unit_rows(vectors), oracle.unit_rows(vectors))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_unit_rows_are_unit_and_on_the_grid(dtype):
    vectors = np.random.default_rng(0).standard_normal((50, 300)).astype(dtype)
    units = unit_rows(vectors)
    assert units.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(units.astype(np.float64), axis=1), 1, atol=1e-7)
    steps = units.astype(np.float64) * 2**26
    np.testing.assert_array_equal(steps, np.rint(steps))
    exactly = vectors.astype(np.float64)
    exactly /= np.linalg.norm(exactly, axis=1, keepdims=True)
    np.testing.assert_allclose(units, exactly, rtol=2**-24, atol=2**-27)


@pytest.mark.parametrize(
    ("dtype", "exponents"),
    [
        (np.float16, [-14, 15]),
        (np.float32, [-126, -66, 66, 127]),
        (np.float64, [-1022, -600, 600, 1023]),
    ],
)
def test_the_scale_of_a_row_does_not_matter(dtype, exponents):
    vectors = np.random.default_rng(1).integers(-8, 9, (20, 30)) / 8
    for exponent in exponents:
        scaled = np.ldexp(vectors, exponent).astype(dtype)
        np.testing.assert_array_equal(unit_rows(scaled), unit_rows(vectors))


def test_subnormal_rows():
    smallest = np.float32(1e-45)
    row = np.array([[3, 0, 4]], dtype=np.float32) * smallest
    np.testing.assert_allclose(unit_rows(row), [[0.6, 0, 0.8]], atol=2**-26)


@pytest.mark.parametrize("dim", [100, 1024, 10_000])
def test_a_row_does_not_depend_on_its_neighbours(monkeypatch, dim):
    """Neither the unit row nor its cosines change with blocks, memory layout or dtype."""
    vectors = np.random.default_rng(2).standard_normal((23, dim)).astype(np.float32)
    units = unit_rows(vectors)
    candidates = np.random.default_rng(3).permuted(np.tile(np.arange(23), (23, 1)), axis=1)[:, :9]
    cosines = rescore(units, units, candidates, k=9).cosines
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * dim * 5)
    np.testing.assert_array_equal(unit_rows(vectors), units)
    np.testing.assert_array_equal(unit_rows(np.asfortranarray(vectors)), units)
    np.testing.assert_array_equal(unit_rows(vectors.astype(np.float64)), units)
    np.testing.assert_array_equal(rescore(units, units, candidates, k=9).cosines, cosines)
    for row in range(23):
        np.testing.assert_array_equal(unit_rows(vectors[row : row + 1])[0], units[row])


def test_sums_of_products_are_exact():
    """Any order of summation gives the same float64, bit by bit."""
    x, y = unit_rows(np.random.default_rng(4).standard_normal((2, 5000))).astype(np.float64)
    products = x * y
    forwards = np.add.accumulate(products)[-1]
    backwards = np.add.accumulate(products[::-1])[-1]
    assert forwards == backwards == np.sort(products).sum() == x @ y


@given(sides=two_sides(), seed=st.integers(0, 99), k=st.integers(1, 4))
def test_rescoring_ranks_any_candidates(sides, seed, k):
    queries, base = sides
    random = np.random.default_rng(seed)
    candidates = np.stack([random.permutation(len(base)) for _ in queries])
    candidates[random.random(candidates.shape) < 0.3] = -1
    found = rescore(queries, base, candidates, k=k)
    table = oracle.cosines(queries, base)
    for row in range(len(queries)):
        ids = sorted(candidates[row][candidates[row] >= 0], key=lambda y: (-table[row, y], y))[:k]
        missing = found.ids.shape[1] - len(ids)
        assert found.ids[row].tolist() == ids + [-1] * missing
        assert found.cosines[row].tolist() == [*table[row, ids].tolist(), *[-np.inf] * missing]


@given(sides=two_sides(max_rows=20), k=st.integers(1, 5), data=st.data())
def test_merged_parts_are_the_whole(sides, k, data):
    source, target = sides
    cuts = data.draw(st.lists(st.integers(0, len(target)), max_size=4).map(sorted))
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, len(target)], strict=True):
        part, _ = search_unit_rows(source, target[start:stop], k=k)
        parts.append(Neighbours(ids=part.ids + start, cosines=part.cosines))
    merged = merge(data.draw(st.permutations(parts)), k=k)
    whole, _ = search_unit_rows(source, target, k=k)
    np.testing.assert_array_equal(merged.ids, whole.ids)
    np.testing.assert_array_equal(merged.cosines, whole.cosines)


def test_no_neighbour_comes_last_even_behind_the_opposite():
    found = Neighbours(
        ids=np.array([[-1, 4, -1, 2]]),
        cosines=np.array([[-np.inf, -1, -np.inf, -1]], dtype=np.float32),
    )
    assert best(found, k=3).ids.tolist() == [[2, 4, -1]]


@pytest.mark.parametrize(("rows", "columns", "count"), [(0, 3, 2), (3, 3, 0), (3, 0, 0)])
def test_rescoring_nothing(rows, columns, count):
    unit = np.eye(3, dtype=np.float32)
    candidates = np.zeros((rows, count), dtype=np.int64)
    assert rescore(unit[:rows], unit[:columns], candidates, k=count).ids.shape == (rows, count)


@settings(max_examples=50)
@given(
    rows=st.integers(1, 6),
    k=st.integers(1, 5),
    width=st.integers(0, 6),
    parts=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_lists_of_some_rows_merge_to_the_best_of_all(rows, k, width, parts, seed):
    """The same neighbour may be in several lists; each list has its best first, -1 at its end."""
    random = np.random.default_rng(seed)
    cosines = random.choice([0.1, 0.2, 0.3, 0.4], size=(rows, 20)).astype(np.float32)
    merged, seen = Neighbours.empty(rows, k), [set() for _ in range(rows)]
    for _ in range(parts):
        some = np.flatnonzero(random.random(rows) < 0.7)
        lists = Neighbours.empty(len(some), width)
        for place, row in enumerate(some):
            ids = random.permutation(20)[: random.integers(0, width + 1)]
            ids = ids[np.lexsort((ids, -cosines[row, ids]))]
            seen[row] |= set(ids.tolist())
            lists.ids[place, : len(ids)] = ids
            lists.cosines[place, : len(ids)] = cosines[row, ids]
        merge_some(merged, some, lists)
    for row, ids in enumerate(seen):
        best_ids = sorted(ids, key=lambda one: (-cosines[row, one], one))[:k]
        padding = [-1] * (k - len(best_ids))
        assert merged.ids[row].tolist() == best_ids + padding
        assert merged.cosines[row, : len(best_ids)].tolist() == cosines[row, best_ids].tolist()
