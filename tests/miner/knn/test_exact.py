import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miner import mine
from miner.knn import exact, tiled
from miner.knn.core import passes, products, rescore, tuning
from miner.knn.core.codes import PRECISIONS
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both, search_unit_rows
from miner.knn.gpu import cuda
from miner.knn.gpu.cuda import DeviceError
from miner.threads import using_threads
from tests.miner import oracle
from tests.miner.strategies import along_few_axes, two_sides

TILES = st.sampled_from([(1, 1), (3, 5), (4, 8), (5, 12), (2, 16), (64, 64)])


@pytest.fixture
def small_tiles(monkeypatch):
    set_tiles(monkeypatch, 7, 16)


def set_tiles(monkeypatch, rows, columns):
    """Search tile by tile, however few the rows."""
    monkeypatch.setattr(exact, "MAX_SIMILARITIES", -1)
    for name in ("TILE_ROWS", "FUSED_ROWS"):
        monkeypatch.setattr(passes, name, rows)
    monkeypatch.setattr(passes, "TILE_COLUMNS", columns)


def search(sides, *, k, precision):
    """A search by tiles, however few the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "MAX_SIMILARITIES", -1)
        return search_unit_rows(*sides, k=k, precision=precision)


def assert_is_full_sort(source, target, k, found):
    table = oracle.cosines(source, target)
    for neighbours, similar in zip(found, (table, table.T), strict=True):
        ids, cosines = oracle.nearest(similar, k)
        np.testing.assert_array_equal(neighbours.ids, ids)
        np.testing.assert_array_equal(neighbours.cosines, cosines)
        assert (neighbours.ids.dtype, neighbours.cosines.dtype) == (np.int64, np.float32)


def random_units(rows, dim, seed=0):
    return unit_rows(np.random.default_rng(seed).standard_normal((rows, dim)))


@settings(max_examples=300)
@given(
    sides=two_sides(max_rows=30),
    k=st.integers(1, 6),
    tiles=TILES,
    precision=st.sampled_from(PRECISIONS),
    seeds=st.sampled_from([1, 4, 9, 99]),
)
def test_equals_a_full_sort(sides, k, tiles, precision, seeds):
    with pytest.MonkeyPatch.context() as patch:
        set_tiles(patch, *tiles)
        patch.setattr(passes, "SEEDS", seeds)
        patch.setattr(passes, "MIN_COLUMNS_TO_SEED", seeds)
        found = search(sides, k=k, precision=precision)
        assert_is_full_sort(*sides, k, found)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 9, 33])
@pytest.mark.parametrize("columns", [1, 3, 4, 5, 8, 9, 64, 100])
def test_sizes_about_k_and_the_tiles(small_tiles, rows, columns):
    source, target = random_units(rows, 12, 1), random_units(columns, 12, 2)
    found = search_unit_rows(source, target, k=4)
    assert found[0].ids.shape == (rows, min(4, columns))
    assert found[1].ids.shape == (columns, min(4, rows))
    assert_is_full_sort(source, target, 4, found)


def test_the_tiles_of_production(monkeypatch):
    monkeypatch.setattr(exact, "MAX_SIMILARITIES", -1)
    sizes = passes.FUSED_ROWS + 70, passes.TILE_COLUMNS + 65
    source, target = (random_units(size, 8, size) for size in sizes)
    forward, backward = search_unit_rows(source, target, k=4)
    table = (source.astype(np.float64) @ target.T.astype(np.float64)).astype(np.float32)
    for found, similar in ((forward, table), (backward, table.T)):
        np.testing.assert_array_equal(found.ids, np.argsort(-similar, axis=1, kind="stable")[:, :4])


def crowd(rows, dim, spread, seed):
    """Unit rows about one direction; the smaller the spread, the closer together."""
    random = np.random.default_rng(seed)
    return unit_rows(1 + spread * random.standard_normal((rows, dim)))


def test_equal_rows_come_in_order_of_position(small_tiles):
    rows = np.tile(random_units(1, 24), (50, 1))
    forward, backward = search_unit_rows(rows, rows[:37], k=4)
    assert (forward.ids == np.arange(4)).all()
    assert (backward.ids == np.arange(4)).all()
    assert (forward.cosines == forward.cosines[0, 0]).all()


def test_duplicates_hide_behind_better_ones(small_tiles):
    """The k-th neighbour is one of 40 equal rows."""
    x = random_units(3, 24)
    target = np.concatenate([np.tile(x[1], (40, 1)), x[[0, 2]]])[::-1].copy()
    forward, _ = search_unit_rows(x[:1], target, k=4)
    assert forward.ids[0, 0] == 1
    assert_is_full_sort(x[:1], target, 4, search_unit_rows(x[:1], target, k=4))


@given(
    sides=two_sides(max_rows=6),
    k=st.integers(1, 9),
    tiles=TILES,
    precision=st.sampled_from(PRECISIONS),
    data=st.data(),
)
def test_rows_that_are_repeated_many_times(sides, k, tiles, precision, data):
    """Also where k is more than there are distinct rows."""
    repeated = tuple(
        side[data.draw(st.lists(st.integers(0, len(side) - 1), min_size=8, max_size=40))]
        for side in sides
    )
    with pytest.MonkeyPatch.context() as patch:
        set_tiles(patch, *tiles)
        found = search(repeated, k=k, precision=precision)
        assert_is_full_sort(*repeated, k, found)


@pytest.mark.parametrize("repeated", [(True, True), (True, False), (False, True)])
def test_repeated_rows_of_either_side_are_searched_once(monkeypatch, repeated):
    searched = []
    search = tiled.search_tiles

    def count(source, target, **options):
        searched.append((len(source), len(target)))
        return search(source, target, **options)

    monkeypatch.setattr(exact, "MAX_SIMILARITIES", -1)
    monkeypatch.setattr(exact, "search_tiles", count)
    sides = tuple(
        random_units(12, 8, seed)[np.random.default_rng(seed).permutation(60) % 12]
        if many
        else random_units(50, 8, seed)
        for seed, many in enumerate(repeated)
    )
    assert_is_full_sort(*sides, 20, search_unit_rows(*sides, k=20))
    assert searched == [tuple(12 if many else 50 for many in repeated)]


@pytest.mark.parametrize("dim", [2, 256, 2048, 16384])
def test_what_float32_cannot_rank(small_tiles, dim):
    """Neighbours that differ by less than the product's rounding, in any order."""
    random = np.random.default_rng(dim)
    centre = random.standard_normal(dim)
    steps = random.permutation(60)[:, None] * 2e-8 * random.choice([-1, 1], dim)
    target = unit_rows(centre + np.linalg.norm(centre) * steps)
    source = unit_rows(centre + 0.3 * random.standard_normal((4, dim)))
    assert_is_full_sort(source, target, 4, search_unit_rows(source, target, k=4))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_on_vectors_of_many_near_ties(small_tiles, precision):
    """Noise about a few centres, less than low precisions round."""
    random = np.random.default_rng(3)
    centres = random.standard_normal((20, 96))
    sides = tuple(
        unit_rows(centres[random.integers(20, size=rows)] + 0.05 * random.normal(size=(rows, 96)))
        for rows in (200, 300)
    )
    assert_is_full_sort(*sides, 4, search(sides, k=4, precision=precision))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_axes_change_no_result(monkeypatch, precision):
    monkeypatch.setattr(tuning, "MIN_SECONDS", 1)
    monkeypatch.setattr(tuning, "product_rates", lambda: dict.fromkeys(PRECISIONS, 1e8))
    sides = [along_few_axes(1500, 128, 30, seed) for seed in (1, 2)]
    assert tuning.choose_codes(*sides, k=3, precision=precision)[1] is not None
    assert_is_full_sort(*sides, 3, search(sides, k=3, precision=precision))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_few_exact_cosines_are_computed(monkeypatch, precision):
    """An exact cosine costs a vector of each side, so bounds must exclude most pairs."""
    hits, real = [], passes.find_hits
    monkeypatch.setattr(exact, "MAX_SIMILARITIES", -1)
    monkeypatch.setattr(
        passes, "find_hits", lambda *given: (hits.append(real(*given)), hits[-1])[1]
    )
    sides = random_units(9000, 64, 1), random_units(9000, 64, 2)
    search_unit_rows(*sides, k=4, precision=precision)
    assert sum(len(places) for places, _ in hits) < 0.02 * 9000 * 9000


@pytest.mark.parametrize("lack", ["torch", "int8"])
@pytest.mark.parametrize("precision", [None, "float32"])
def test_without_torch_or_its_private_calls_the_result_is_the_same(
    no_kernels, monkeypatch, small_tiles, lack, precision
):
    sides = random_units(90, 16, 1), random_units(120, 16, 2)
    monkeypatch.setattr(products, "TORCH_FROM", 0)
    if lack == "torch":
        monkeypatch.setitem(sys.modules, "torch", None)
        monkeypatch.setattr(tiled, "_usable_devices", lambda: pytest.fail("no torch"))
    else:
        monkeypatch.delattr(torch, "_int_mm")
    assert_is_full_sort(*sides, 3, search_unit_rows(*sides, k=3, precision=precision))


def test_a_precision_that_torch_computes_without_torch(monkeypatch, small_tiles):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(products, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="torch"):
        search_unit_rows(random_units(9, 8), random_units(9, 8), k=2, precision="bfloat16")


@given(sides=two_sides(max_rows=30), k=st.integers(1, 40), block=st.sampled_from([1, 4, 1024]))
def test_a_table_equals_a_full_sort(sides, k, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rescore, "TABLE_ROWS", block)
        patch.setattr(exact, "search_tiles", None)
        assert_is_full_sort(*sides, k, search_unit_rows(*sides, k=k))


def test_a_small_search_loads_neither_torch_nor_numba():
    code = """
import sys
import numpy as np
import miner
rows = np.random.default_rng(0).standard_normal((845, 32))
assert (miner.mine(rows, rows).source >= 0).all()
assert not {"torch", "numba", "faiss", "pyarrow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_vectors_of_any_scale_are_searched_by_their_directions():
    random = np.random.default_rng(1)
    x, y = 40 * random.standard_normal((30, 12)), 0.01 * random.standard_normal((40, 12))
    found = search_both(x.tolist(), y.astype(np.float16), k=3)
    assert_is_full_sort(unit_rows(x), unit_rows(y.astype(np.float16)), 3, found)
    assert max(side.cosines.max() for side in found) <= 1


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1, 2], [np.nan, 1]], r"^target row 1 is zero or not finite \(1 such rows\)"),
        ([[np.inf, 2]], "target row 0 is zero or not finite"),
        ([[-np.inf, 2]], "target row 0 is zero or not finite"),
        ([[0, 0], [1, 1], [0, 0]], r"target row 0 is zero or not finite \(2 such rows\)"),
        ([1, 2], r"target vectors have the shape \(2,\)"),
        ([], r"target vectors have the shape \(0,\)"),
        ([[[1, 2]]], r"target vectors have the shape \(1, 1, 2\)"),
        ([["a", "b"]], "target vectors are of type <U1; expected real numbers"),
        ([[1j, 2]], "target vectors are of type complex128"),
        ([[1, 2, 3]], "target vectors 3"),
    ],
)
def test_what_is_no_set_of_vectors_is_refused(vectors, message):
    for search in (search_both, mine):
        with pytest.raises(ValueError, match=message):
            search([[1, 2]], vectors, k=1)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_an_empty_side_has_no_neighbours_and_is_none(rows, columns):
    forward, backward = search_unit_rows(random_units(rows, 8), random_units(columns, 8), k=4)
    assert forward.ids.shape == forward.cosines.shape == (rows, min(4, columns))
    assert backward.ids.shape == backward.cosines.shape == (columns, min(4, rows))
    assert (forward.means() == 0).all()
    assert (backward.means() == 0).all()


@given(sides=two_sides(), seed=st.integers(0, 99))
def test_the_order_of_rows_decides_ties_only(sides, seed):
    source, target = sides
    order = np.random.default_rng(seed).permutation(len(target))
    plain, _ = search_unit_rows(source, target, k=3)
    shuffled, _ = search_unit_rows(source, target[order], k=3)
    np.testing.assert_array_equal(shuffled.cosines, plain.cosines)


def test_progress_counts_every_similarity(small_tiles):
    counts = []
    search_unit_rows(random_units(20, 4), random_units(33, 4), k=2, progress=counts.append)
    assert sum(counts) == 20 * 33
    assert len(counts) == 3 * 3


def test_progress_counts_repeated_rows_as_often_as_they_are(small_tiles):
    counts = []
    x, y = np.tile(random_units(20, 4), (5, 1)), np.tile(random_units(33, 4), (3, 1))
    search_unit_rows(x, y, k=2, progress=counts.append)
    assert len(counts) == 3 * 3
    assert sum(counts) == pytest.approx(len(x) * len(y), abs=len(counts))


def test_errors():
    x = random_units(3, 4)
    with pytest.raises(ValueError, match=r"^k is 0; a neighbourhood needs at least 1 sentence$"):
        search_unit_rows(x, x, k=0)
    with pytest.raises(ValueError, match="source vectors have 4 dimensions, target vectors 3"):
        search_unit_rows(x, x[:, :3], k=1)


@pytest.mark.parametrize(
    ("rows", "threads", "sizes"),
    [(1021, 2, {511, 510}), (1021, 8, {128, 125}), (1021, 64, {64, 61}), (1300, 1, {512, 276})],
)
def test_few_rows_are_searched_by_all_threads(monkeypatch, rows, threads, sizes):
    searched, real = set(), passes.find_hits

    def find_hits(codes, *given):
        searched.add(len(codes))
        return real(codes, *given)

    monkeypatch.setattr(passes, "find_hits", find_hits)
    queries, base = random_units(rows, 8, 1), random_units(90, 8, 2)
    with using_threads(threads):
        found = tiled.search_one_way(queries, base, k=3, precision="float32")
    assert searched == sizes
    np.testing.assert_array_equal(found.ids, search_unit_rows(queries, base, k=3)[0].ids)


def test_no_device_is_looked_for_where_linux_has_none(monkeypatch, tmp_path):
    """So that torch, which takes seconds, is not loaded for nothing."""
    looked = []
    monkeypatch.setattr(cuda, "usable_devices", lambda: looked.append(True) or [])
    monkeypatch.setattr(tiled, "DEV", tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "nvidiactl").touch()
    assert tiled._usable_devices.__wrapped__() == []
    assert not looked
    (tmp_path / "nvidia0").touch()
    assert tiled._usable_devices.__wrapped__() == []
    assert looked


def use_devices(monkeypatch, count):
    """The processor stands in for devices."""
    monkeypatch.setattr(exact, "MAX_SIMILARITIES", -1)
    monkeypatch.setattr(tiled, "torch_pays", lambda operations: True)
    monkeypatch.setattr(tiled, "_usable_devices", lambda: [torch.device("cpu")] * count)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["random", "crowd"])
def test_candidates_from_devices_give_the_same(monkeypatch, count, kind):
    use_devices(monkeypatch, count)
    if kind == "random":
        sides = random_units(90, 24, 1), random_units(120, 24, 2)
    else:
        sides = crowd(90, 24, 0.01, 1), crowd(120, 24, 0.01, 2)
    assert_is_full_sort(*sides, 4, search_unit_rows(*sides, k=4))


def test_a_device_that_fails_is_left(monkeypatch, caplog):
    def fail(*_, **__):
        raise DeviceError("cuda:0: out of memory")

    use_devices(monkeypatch, 1)
    monkeypatch.setattr(cuda, "generate_on_devices", fail)
    sides = random_units(9, 8, 1), random_units(12, 8, 2)
    assert_is_full_sort(*sides, 4, search_unit_rows(*sides, k=4))
    assert "cuda:0: out of memory; searching on the CPU instead" in caplog.text


@pytest.mark.parametrize("k", [1, 11])
def test_first_floors_are_below_the_kth_cosine(k):
    """And above most of the rest: the k-th best among a few columns."""
    sides = crowd(700, 16, 0.5, 1), crowd(9000, 16, 0.5, 2)
    floors = passes.initial_floors(*sides, k=k)
    cosines = oracle.cosines(*sides)
    assert (floors < np.sort(cosines, axis=1)[:, -k]).all()
    assert (cosines > floors[:, None]).mean() < 3 * (k + 1) / passes.SEEDS
    for rows, most in ((sides[1], k), (sides[0], passes.SEEDS + 1)):
        assert np.isneginf(passes.initial_floors(rows, sides[0], k=most)).all()


@settings(max_examples=40)
@given(
    sides=two_sides(max_rows=24),
    k=st.integers(1, 6),
    tiles=TILES,
    precision=st.sampled_from(PRECISIONS),
)
def test_one_way_it_finds_the_same(sides, k, tiles, precision):
    counts = []
    with pytest.MonkeyPatch.context() as patch:
        set_tiles(patch, *tiles)
        found = tiled.search_one_way(*sides, k=k, precision=precision, progress=counts.append)
    expected, _ = search_unit_rows(*sides, k=k)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.cosines, expected.cosines)
    assert sum(counts) == len(sides[0]) * len(sides[1])
