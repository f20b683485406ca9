import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.knn import exact, running
from miner.knn.exact import BFLOAT16, FLOAT32, Precision, search_both
from miner.knn.rescore import unit_rows
from tests.miner import oracle
from tests.miner.strategies import two_sides

TILES = st.sampled_from([(1, 1, 1), (3, 5, 2), (4, 8, 2), (5, 12, 1), (2, 16, 4), (64, 64, 8)])


@pytest.fixture
def small_tiles(monkeypatch):
    set_tiles(monkeypatch, 7, 16, 2)


def set_tiles(monkeypatch, rows, columns, block):
    monkeypatch.setattr(exact, "TILE_ROWS", rows)
    monkeypatch.setattr(exact, "TILE_COLUMNS", columns)
    monkeypatch.setattr(running, "BLOCK", block)


def assert_is_full_sort(source, target, k, found):
    table = oracle.cosines(source, target)
    for neighbours, similar in zip(found, (table, table.T), strict=True):
        ids, cosines = oracle.nearest(similar, k)
        np.testing.assert_array_equal(neighbours.ids, ids)
        np.testing.assert_array_equal(neighbours.cosines, cosines)
        assert (neighbours.ids.dtype, neighbours.cosines.dtype) == (np.int64, np.float32)


def random_units(rows, dim, seed=0):
    return unit_rows(np.random.default_rng(seed).standard_normal((rows, dim)))


@settings(max_examples=200)
@given(
    sides=two_sides(max_rows=30),
    k=st.integers(1, 6),
    tiles=TILES,
    dtype=st.sampled_from(["float32", "bfloat16"]),
    spare=st.sampled_from([0, 1, 4]),
)
def test_equals_a_full_sort(sides, k, tiles, dtype, spare):
    # Fewer spare candidates leave more rows open: the certificate has more to do.
    precision = Precision(dtype=dtype, spare=spare)
    with pytest.MonkeyPatch.context() as patch:
        set_tiles(patch, *tiles)
        assert_is_full_sort(*sides, k, search_both(*sides, k=k, precision=precision))


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 9, 33])
@pytest.mark.parametrize("columns", [1, 3, 4, 5, 8, 9, 64, 100])
def test_sizes_about_k_and_the_tiles(small_tiles, rows, columns):
    source, target = random_units(rows, 12, 1), random_units(columns, 12, 2)
    found = search_both(source, target, k=4)
    assert found[0].ids.shape == (rows, min(4, columns))
    assert found[1].ids.shape == (columns, min(4, rows))
    assert_is_full_sort(source, target, 4, found)


def test_the_tiles_of_production():
    source, target = random_units(70, 8, 3), random_units(exact.TILE_COLUMNS + 65, 8, 4)
    forward, backward = search_both(source, target, k=4)
    table = (source.astype(np.float64) @ target.T.astype(np.float64)).astype(np.float32)
    for found, similar in ((forward, table), (backward, table.T)):
        np.testing.assert_array_equal(found.ids, np.argsort(-similar, axis=1, kind="stable")[:, :4])


def crowd(rows, dim, spread, seed):
    """Unit rows about one direction; the smaller the spread, the closer together."""
    random = np.random.default_rng(seed)
    return unit_rows(1 + spread * random.standard_normal((rows, dim)))


def test_the_precision_suits_the_vectors(monkeypatch):
    monkeypatch.setattr(exact, "TRIAL_ROWS", 16)
    apart, close = (
        exact.fastest_precision(crowd(90, 32, spread, 1), crowd(300, 32, spread, 2), k=4)
        for spread in (3.0, 0.03)
    )
    hardware = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert (apart, close) == (BFLOAT16 if hardware else FLOAT32, FLOAT32)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: not hardware)
    other = exact.fastest_precision(crowd(90, 32, 3.0, 1), crowd(300, 32, 3.0, 2), k=4)
    assert other == (FLOAT32 if hardware else BFLOAT16)


def test_equal_rows_come_in_order_of_position(small_tiles):
    rows = np.tile(random_units(1, 24), (50, 1))
    forward, backward = search_both(rows, rows[:37], k=4)
    assert (forward.ids == np.arange(4)).all()
    assert (backward.ids == np.arange(4)).all()
    assert (forward.cosines == forward.cosines[0, 0]).all()


def test_more_duplicates_than_candidates_hide_behind_better_ones(small_tiles):
    """The k-th neighbour is one of 40 equal rows, of which the candidates hold but some."""
    x = random_units(3, 24)
    target = np.concatenate([np.tile(x[1], (40, 1)), x[[0, 2]]])[::-1].copy()
    forward, _ = search_both(x[:1], target, k=4)
    assert forward.ids[0, 0] == 1
    assert_is_full_sort(x[:1], target, 4, search_both(x[:1], target, k=4))


@pytest.mark.parametrize("dim", [2, 256, 2048, 16384])
def test_what_float32_cannot_rank(small_tiles, dim):
    """Neighbours that differ by less than the product's rounding, in any order."""
    random = np.random.default_rng(dim)
    centre = random.standard_normal(dim)
    steps = random.permutation(60)[:, None] * 2e-8 * random.choice([-1, 1], dim)
    target = unit_rows(centre + np.linalg.norm(centre) * steps)
    source = unit_rows(centre + 0.3 * random.standard_normal((4, dim)))
    assert_is_full_sort(source, target, 4, search_both(source, target, k=4))


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16])
def test_a_wrong_product_is_found_out(small_tiles, monkeypatch, precision):
    """Products may err by their rounding in whichever way is worst, and nothing changes."""
    source, target = random_units(20, 64, 5), random_units(50, 64, 6)
    target[10:40] = unit_rows(target[10] + 1e-6 * np.random.default_rng(0).normal(size=(30, 64)))
    tiles = exact._tiles

    def worst(x, y):
        for number, (top, left, tile) in enumerate(tiles(x, y)):
            error = 64 * 2.0**-24 * (-1) ** number
            yield top, left, tile + error

    monkeypatch.setattr(exact, "_tiles", worst)
    found = search_both(source, target, k=4, precision=precision)
    assert_is_full_sort(source, target, 4, found)


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize("dim", [1, 16, 384, 2000])
def test_the_bound_on_the_product_holds(dim, precision):
    x, y = random_units(300, dim, 7), random_units(300, dim, 8)
    y[:100] = x[:100]
    left, right = exact._Rounded(x, precision), exact._Rounded(y, precision)
    (_, _, tile), *_ = exact._tiles(left, right)
    exactly = (x.astype(np.float64) @ y.astype(np.float64).T).astype(np.float32)
    product = tile.double().numpy()
    for column in range(300):
        bound = exact._rounding(left, right, product[:, column])
        assert (exactly[:, column] - product[:, column] <= bound).all()


def test_bfloat16_finds_what_float32_finds():
    """On vectors of many near ties: noise about a few centres."""
    random = np.random.default_rng(3)
    centres = random.standard_normal((20, 96))
    source, target = (
        unit_rows(centres[random.integers(20, size=rows)] + 0.05 * random.normal(size=(rows, 96)))
        for rows in (700, 900)
    )
    found, expected = (
        search_both(source, target, k=4, precision=precision) for precision in (BFLOAT16, FLOAT32)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.cosines, other.cosines)


def test_the_search_in_full_gives_the_same_as_rescoring(small_tiles):
    source, target = random_units(20, 300, 9), random_units(90, 300, 10)
    found = exact._search_in_full(source, target, k=6)
    table = oracle.cosines(source, target)
    expected_ids, expected_cosines = oracle.nearest(table, 6)
    np.testing.assert_array_equal(found.ids, expected_ids)
    np.testing.assert_array_equal(found.cosines, expected_cosines)


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16])
def test_most_rows_are_not_searched_in_full(monkeypatch, precision):
    monkeypatch.delattr(exact, "_search_in_full")
    search_both(random_units(300, 64, 1), random_units(300, 64, 2), k=4, precision=precision)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_an_empty_side_has_no_neighbours_and_is_none(rows, columns):
    forward, backward = search_both(random_units(rows, 8), random_units(columns, 8), k=4)
    assert forward.ids.shape == forward.cosines.shape == (rows, min(4, columns))
    assert backward.ids.shape == backward.cosines.shape == (columns, min(4, rows))
    assert (forward.means() == 0).all()
    assert (backward.means() == 0).all()


@given(sides=two_sides(), seed=st.integers(0, 99))
def test_the_order_of_rows_decides_ties_only(sides, seed):
    source, target = sides
    order = np.random.default_rng(seed).permutation(len(target))
    plain, _ = search_both(source, target, k=3)
    shuffled, _ = search_both(source, target[order], k=3)
    np.testing.assert_array_equal(shuffled.cosines, plain.cosines)


def test_progress_counts_every_similarity(small_tiles):
    counts = []
    search_both(random_units(20, 4), random_units(33, 4), k=2, progress=counts.append)
    assert sum(counts) == 20 * 33
    assert len(counts) == 3 * 3


def test_errors():
    x = random_units(3, 4)
    with pytest.raises(ValueError, match=r"^k is 0; a neighbourhood needs at least 1 sentence$"):
        search_both(x, x, k=0)
    with pytest.raises(ValueError, match="source vectors have 4 dimensions, target vectors 3"):
        search_both(x, x[:, :3], k=1)
