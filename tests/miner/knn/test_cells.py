"""The cell join finds the best of all rows that share a cell, and its cells are sound."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.knn import cells
from miner.knn.cells import (
    ProbeRadius,
    by_nearest_cell,
    cut_cells,
    find_floors,
    fit_probe_radius,
    join_cells,
    nearest_cells,
    rows_in_cells,
    train_cells,
)
from miner.knn.core import compiled, products, tuning
from miner.knn.core.codes import PRECISIONS
from miner.knn.core.rescore import merge, merge_some, unit_rows
from miner.knn.exact import search_unit_rows
from miner.knn.method import default_cells
from miner.threads import using_threads
from tests.miner import oracle
from tests.miner.strategies import hard_vectors, two_sides

TILES = st.sampled_from([1, 2, 3, 5, 64])


def join(sides, centroids, *, k, probes, **options):
    """Put both sides into their nearest cells, and join them."""
    own = [nearest_cells(rows, centroids, probes=probes) for rows in sides]
    return join_cells(sides, own, part=range(len(centroids)), k=k, **options)


def search(sides, centroids, *, k, probes, precision="float32", workers=1):
    """A join in ``workers`` threads."""
    with using_threads(workers):
        return join(sides, centroids, k=k, probes=probes, precision=precision)


def rounded(rows):
    """Each row in steps of 1/127 of its largest number, and the step."""
    steps = np.abs(rows).max(axis=1, keepdims=True) / np.float32(127)
    return np.rint(rows / steps).astype(np.int64), steps[:, 0]


def sorted_cells(rows, centroids, probes):
    """Where centroids have a last number for evenness, all rows have the same in that place."""
    more, weight = centroids.shape[1] - rows.shape[1], 2 / np.sqrt(rows.shape[1])
    rows = np.pad(rows, ((0, 0), (0, more)), constant_values=np.float32(weight))
    (numbers, _), (others, steps) = rounded(rows), rounded(centroids)
    return oracle.nearest((numbers @ others.T).astype(np.float32) * steps, probes)[0]


def cells_of(rows, centroids, probes):
    """The cells of each row, by a full sort."""
    return [set(row) for row in sorted_cells(rows, centroids, probes).tolist()]


def nearest_of_cells(table, own, other, k):
    """Each row's k best columns of those that share a cell with it: ids and cosines, padded."""
    width = min(k, table.shape[1])
    ids = np.full((len(table), width), -1, dtype=np.int64)
    cosines = np.full((len(table), width), -np.inf, dtype=np.float32)
    for row, similar in enumerate(table):
        shared = [column for column in range(len(similar)) if own[row] & other[column]]
        best = sorted(shared, key=lambda column: (-similar[column], column))[:k]
        ids[row, : len(best)], cosines[row, : len(best)] = best, similar[best]
    return ids, cosines


def assert_is_best_of_cells(source, target, centroids, *, k, probes, found):
    table = oracle.cosines(source, target)
    own, other = (cells_of(rows, centroids, probes) for rows in (source, target))
    forward = nearest_of_cells(table, own, other, k)
    backward = nearest_of_cells(table.T, other, own, k)
    for neighbours, (ids, cosines) in zip(found, (forward, backward), strict=True):
        np.testing.assert_array_equal(neighbours.ids, ids)
        np.testing.assert_array_equal(neighbours.cosines, cosines)
        assert (neighbours.ids.dtype, neighbours.cosines.dtype) == (np.int64, np.float32)


def assert_alike(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.cosines, other.cosines)


def random_units(rows, dim, seed=0):
    return unit_rows(np.random.default_rng(seed).standard_normal((rows, dim)))


@st.composite
def joins(draw, max_rows=24):
    """Both sides, and centroids that are vectors as hard as theirs or some of the rows."""
    sides = draw(two_sides(max_rows=max_rows))
    count = draw(st.integers(1, 9))
    if draw(st.booleans()):
        return sides, unit_rows(draw(hard_vectors(count, sides[0].shape[1])))
    rows = np.concatenate(sides)
    places = st.lists(st.integers(0, len(rows) - 1), min_size=count, max_size=count)
    return sides, rows[draw(places)]


@settings(max_examples=70)
@given(
    join=joins(),
    k=st.integers(1, 6),
    probes=st.integers(1, 5),
    tile=TILES,
    precision=st.sampled_from(PRECISIONS),
)
def test_equals_a_full_sort_of_what_shares_a_cell(join, k, probes, tile, precision):
    sides, centroids = join
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "TILE", tile)
        found = search(sides, centroids, k=k, probes=probes, precision=precision)
    assert_is_best_of_cells(*sides, centroids, k=k, probes=probes, found=found)


@settings(max_examples=20)
@given(
    join=joins(), k=st.integers(1, 6), precision=st.sampled_from(PRECISIONS), more=st.integers(0, 3)
)
def test_with_all_cells_probed_it_is_the_exact_search(join, k, precision, more):
    sides, centroids = join
    found = search(sides, centroids, k=k, probes=len(centroids) + more, precision=precision)
    assert_alike(found, search_unit_rows(*sides, k=k))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_on_vectors_of_many_near_ties(monkeypatch, precision):
    """Noise about a few centres, less than low precisions round, in several cells."""
    random = np.random.default_rng(3)
    centres = random.standard_normal((12, 48))
    source, target = (
        unit_rows(centres[random.integers(12, size=rows)] + 0.05 * random.normal(size=(rows, 48)))
        for rows in (150, 200)
    )
    centroids = np.concatenate([source[:10], target[:10]])
    monkeypatch.setattr(cells, "TILE", 7)
    found = search(
        *((source, target), centroids),
        **{"k": 4, "probes": 3, "precision": precision, "workers": 3},
    )
    assert_is_best_of_cells(source, target, centroids, k=4, probes=3, found=found)


def test_as_it_is_called_in_production():
    """Nothing replaced: precision, loops and tiles as they are chosen."""
    source, target = random_units(300, 12, 1), random_units(2 * cells.TILE + 65, 12, 2)
    centroids = random_units(8, 12, 3)
    forward, backward = join((source, target), centroids, k=3, probes=2)
    own, other = (sorted_cells(rows, centroids, 2) for rows in (source, target))
    shared = (own[:, None, :, None] == other[None, :, None, :]).any(axis=(2, 3))
    table = (source.astype(np.float64) @ target.T.astype(np.float64)).astype(np.float32)
    table[~shared] = -np.inf
    for found, similar in ((forward, table), (backward, table.T)):
        np.testing.assert_array_equal(found.ids, np.argsort(-similar, axis=1, kind="stable")[:, :3])


@settings(max_examples=40)
@given(join=joins(), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_rows_in_any_order_with_their_names(join, k, seed):
    """Ties, too, are as in the order of the names; here the rows come by their nearest cells."""
    sides, centroids = join
    part = range(len(centroids))
    own = [nearest_cells(rows, centroids, probes=2) for rows in sides]
    expected = join_cells(sides, own, part=part, k=k)
    random = np.random.default_rng(seed)
    orders = [by_nearest_cell(cells, part) for cells in own]
    if random.integers(2):
        orders = [random.permutation(order) for order in orders]
    rows, cells_ = zip(
        *((s[o], c[o]) for s, c, o in zip(sides, own, orders, strict=True)), strict=True
    )
    found = join_cells(rows, cells_, part=part, k=k, names=tuple(orders))
    for lists, order, whole in zip(found, orders, expected, strict=True):
        assert_alike([lists], [whole.take(order)])


@settings(max_examples=60)
@given(join=joins(), k=st.integers(1, 4), precision=st.sampled_from(PRECISIONS))
def test_floors_from_the_nearest_cell_change_nothing(join, k, precision):
    """And higher ones leave out what is lower, whatever the precision."""
    sides, centroids = join
    own = [nearest_cells(rows, centroids, probes=2) for rows in sides]
    options = {"part": range(len(centroids)), "k": k, "precision": precision}
    k = min(k, max(*map(len, sides), 1))  # more neighbours than rows are all of them
    whole = join_cells(sides, own, **options)
    floors = find_floors(sides, own, **options)
    for floor, lists in zip(floors, whole, strict=True):
        assert lists.ids.shape[1] == k or (floor == -np.inf).all()
        assert (floor <= lists.cosines[:, -1]).all()
    near = join_cells(sides, [cells[:, :1] for cells in own], **options)
    for floor, lists in zip(floors, near, strict=True):
        assert ((floor > -np.inf) == (lists.ids[:, k - 1 :] >= 0).all(axis=1)).all() or (
            lists.ids.shape[1] < k
        )
    assert_alike(join_cells(sides, own, floors=floors, **options), whole)
    higher = [lists.cosines[:, 0] for lists in whole]
    found = join_cells(sides, own, floors=higher, **options)
    for one, lists, least in zip(found, whole, higher, strict=True):
        wanted = lists.cosines >= np.maximum(least[:, None], np.finfo(np.float32).min)
        np.testing.assert_array_equal(one.ids, np.where(wanted, lists.ids, -1))
        np.testing.assert_array_equal(one.cosines, np.where(wanted, lists.cosines, -np.inf))


def test_fewer_than_k_share_a_cell():
    """Two cells apart: what is left of k is no neighbour."""
    x = unit_rows(np.eye(2)[[0, 0, 1]])
    y = unit_rows(np.eye(2)[[1, 0, 1, 1, 0]])
    forward, backward = join((x, y), unit_rows(np.eye(2)), k=4, probes=1)
    assert forward.ids.tolist() == [[1, 4, -1, -1], [1, 4, -1, -1], [0, 2, 3, -1]]
    assert np.isneginf(forward.cosines[forward.ids == -1]).all()
    # k is clipped to the 3 sources.
    away, near = [2, -1, -1], [0, 1, -1]
    assert backward.ids.tolist() == [away, near, away, away, near]


def test_sides_that_share_no_cell_have_no_neighbours():
    x, y = unit_rows(np.eye(2)[[0, 0]]), unit_rows(np.eye(2)[[1, 1, 1]])
    counts = []
    found = join((x, y), unit_rows(np.eye(2)), k=2, probes=1, progress=counts.append)
    assert [neighbours.ids.tolist() for neighbours in found] == [[[-1, -1]] * 2, [[-1, -1]] * 3]
    assert all(np.isneginf(neighbours.cosines).all() for neighbours in found)
    assert sum(counts) == 0


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_an_empty_side_has_no_neighbours_and_is_none(rows, columns):
    sides = random_units(rows, 8), random_units(columns, 8)
    forward, backward = join(sides, random_units(3, 8), k=4, probes=2)
    assert forward.ids.shape == forward.cosines.shape == (rows, min(4, columns))
    assert backward.ids.shape == backward.cosines.shape == (columns, min(4, rows))


@settings(max_examples=20)
@given(
    join=joins(),
    k=st.integers(1, 6),
    probes=st.integers(1, 4),
    cuts=st.lists(st.integers(0, 24), max_size=3),
)
def test_parts_of_a_side_merge_to_what_the_whole_finds(join, k, probes, cuts):
    (source, target), centroids = join
    whole = search((source, target), centroids, k=k, probes=probes)
    edges = [0, *sorted(min(cut, len(target)) for cut in cuts), len(target)]
    forward, backward = [], []
    for start, stop in pairwise(edges):
        one, two = search((source, target[start:stop]), centroids, k=k, probes=probes)
        ids = np.where(one.ids == -1, -1, one.ids + start)
        forward.append(Neighbours(ids=ids, cosines=one.cosines))
        backward.append(two)
    together = Neighbours(
        ids=np.concatenate([part.ids for part in backward]),
        cosines=np.concatenate([part.cosines for part in backward]),
    )
    assert_alike((merge(forward, k=k), together), whole)


@settings(max_examples=30)
@given(join=joins(), k=st.integers(1, 6), probes=st.integers(1, 4), most=st.integers(1, 30))
def test_parts_of_the_cells_merge_to_what_the_whole_finds(join, k, probes, most):
    sides, centroids = join
    whole = search(sides, centroids, k=k, probes=probes)
    own = [nearest_cells(rows, centroids, probes=probes) for rows in sides]
    found = [Neighbours.empty(len(one.ids), one.ids.shape[1]) for one in whole]
    for part in cut_cells(*own, count=len(centroids), most=most):
        rows = [rows_in_cells(side, part) for side in own]
        taken = [side[own_rows] for side, own_rows in zip(sides, rows, strict=True)]
        lists = join_cells(
            taken,
            [side[own_rows] for side, own_rows in zip(own, rows, strict=True)],
            part=part,
            k=k,
        )
        for all_of, one, queries, others in zip(found, lists, rows, rows[::-1], strict=True):
            ids = np.append(others, -1)[one.ids]
            merge_some(all_of, queries, Neighbours(ids=ids, cosines=one.cosines))
    assert_alike(found, whole)


@given(
    loads=st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), max_size=40),
    most=st.integers(1, 20),
)
def test_cells_are_cut_by_the_rows_that_lie_in_them(loads, most):
    """All ranges make up the cells; with one cell more, each but the last would have too many."""
    rows = np.array(loads, dtype=np.int32).reshape(-1, 3)
    ranges = cut_cells(rows[::2], rows[1::2], count=10, most=most)
    assert [cell for part in ranges for cell in part] == list(range(10))

    def inside(start, stop):
        return len(rows_in_cells(rows, range(start, stop)))

    for part in ranges:
        assert inside(part.start, part.stop) <= most or len(part) == 1
        assert part.stop == 10 or inside(part.start, part.stop + 1) > most


def test_rows_in_cells():
    rows = np.array([[0, 5], [3, 1], [4, 4], [9, 3], [2, 0]], dtype=np.int32)
    assert rows_in_cells(rows, range(3, 5)).tolist() == [1, 2, 3]
    assert rows_in_cells(rows, range(6, 9)).tolist() == []
    assert rows_in_cells(rows[:0], range(6, 9)).tolist() == []


def test_near_cells_have_near_numbers():
    """Rows about 16 centres: those of one centre have cells one after the other."""
    random = np.random.default_rng(5)
    centres = unit_rows(random.standard_normal((16, 24)))
    kinds = np.arange(4000) % 16
    sample = unit_rows(centres[kinds] + 0.05 * random.standard_normal((4000, 24)))
    trained = train_cells(sample, 128)
    kind_of = np.argmax(trained[:, :-1] @ centres.T, axis=1)
    assert np.count_nonzero(np.diff(kind_of)) < 40  # 15 at best, about 120 in any order


@pytest.mark.parametrize("probes", [1, 2, 6, 99])
def test_progress_sums_to_the_similarities_of_a_full_search(monkeypatch, probes):
    monkeypatch.setattr(cells, "TILE", 32)
    source, target, centroids = (random_units(rows, 8, rows) for rows in (300, 400, 12))
    counts = []
    join((source, target), centroids, k=2, probes=probes, progress=counts.append)
    assert len(counts) > 20
    assert sum(counts) == pytest.approx(len(source) * len(target), abs=len(counts))


def test_errors_of_a_search():
    x, cells = random_units(3, 4), np.zeros((3, 1), dtype=np.int64)
    with pytest.raises(ValueError, match="k is 0"):
        join_cells((x, x), (cells, cells), part=range(1), k=0)
    with pytest.raises(ValueError, match="4 dimensions, target vectors 3"):
        join_cells((x, x[:, :3]), (cells, cells), part=range(1), k=1)
    with pytest.raises(ValueError, match="int4"):
        join_cells((x, x), (cells, cells), part=range(1), k=1, precision="int4")


@settings(max_examples=20)
@given(join=joins(), probes=st.integers(1, 10), cut=st.integers(0, 24))
def test_nearest_cells(join, probes, cut):
    (rows, _), centroids = join
    found = nearest_cells(rows, centroids, probes=probes)
    np.testing.assert_array_equal(found, sorted_cells(rows, centroids, probes))
    parts = [nearest_cells(part, centroids, probes=probes) for part in (rows[:cut], rows[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), found)


@settings(max_examples=30)
@given(join=joins(), probes=st.integers(1, 5), usual=st.floats(0, 0.5), beyond=st.floats(0, 0.5))
def test_cells_within_reach(join, probes, usual, beyond):
    (rows, _), centroids = join
    reach = ProbeRadius(usual=usual, farthest=usual + beyond)
    found = nearest_cells(rows, centroids, probes=probes, reach=reach)
    ordered = sorted_cells(rows, centroids, probes + 2)
    (numbers, steps), (others, other_steps) = rounded(rows), rounded(centroids)
    products = (numbers @ others.T).astype(np.float32) * other_steps
    best = np.take_along_axis(products, ordered, axis=1)
    gaps = (best[:, :1] - best) * steps[:, None]
    near = gaps <= np.where(np.arange(gaps.shape[1]) < max(1, probes - 2), usual + beyond, usual)
    np.testing.assert_array_equal(found, np.where(near, ordered, -1))


def test_as_many_cells_on_average():
    rows, nearest, centroids = (random_units(count, 16, count) for count in (2000, 2001, 200))
    reach = fit_probe_radius(rows, nearest[:2000], centroids, probes=5)
    found = nearest_cells(rows, centroids, probes=5, reach=reach)
    loads = (found >= 0).sum(axis=1)
    assert (loads.min(), loads.max()) == (3, 7)
    assert loads.mean() == pytest.approx(5, abs=0.001)


def test_no_cells_that_no_neighbours_meet_in():
    """Rows about 40 centres that are far apart, each with a cell: others hold nothing near."""
    random = np.random.default_rng(0)
    centres = unit_rows(random.standard_normal((40, 64)))
    rows, nearest = (
        unit_rows(centres[np.arange(2000) % 40] + 0.02 * random.standard_normal((2000, 64)))
        for _ in range(2)
    )
    reach = fit_probe_radius(rows, nearest, centres, probes=5)
    assert (nearest_cells(rows, centres, probes=5, reach=reach)[:, 1:] == -1).all()
    nearest[:4] *= -1  # more than one in a thousand meet nowhere
    reach = fit_probe_radius(rows, nearest, centres, probes=5)
    loads = (nearest_cells(rows, centres, probes=5, reach=reach) >= 0).sum(axis=1)
    assert loads.mean() == pytest.approx(5, abs=0.001)


@pytest.mark.parametrize("probes", [6, 99])
def test_all_cells_are_within_reach(probes):
    rows, centroids = random_units(50, 8), random_units(6, 8, 1)
    reach = fit_probe_radius(rows, rows, centroids, probes=probes)
    assert (nearest_cells(rows, centroids, probes=probes, reach=reach) >= 0).all()


def test_cells_out_of_reach_join_nothing():
    """-1 in place of a cell is as if the row had the others alone."""
    sides = random_units(60, 8), random_units(70, 8, 1)
    own = [sorted_cells(rows, random_units(9, 8, 2), 4) for rows in sides]
    for cells_of_side in own:
        cells_of_side[::3, 2:] = -1
        cells_of_side[1::3, 1:] = -1
    sets = [[set(row) - {-1} for row in cells_of_side.tolist()] for cells_of_side in own]
    table = oracle.cosines(*sides)
    found = join_cells(sides, own, part=range(9), k=3)
    for neighbours, similar, mine, theirs in zip(
        found, (table, table.T), sets, sets[::-1], strict=True
    ):
        ids, _ = nearest_of_cells(similar, mine, theirs, 3)
        np.testing.assert_array_equal(neighbours.ids, ids)
    parts = cut_cells(*own, count=9, most=40)
    assert [cell for part in parts for cell in part] == [*range(9)]
    for part in parts[:-1]:
        inside = [sum(bool(cells & {*part}) for cells in side) for side in sets]
        assert sum(inside) <= 40 or len(part) == 1


@pytest.mark.parametrize("dim", [2, 3, 7])
def test_nearest_cells_of_few_dimensions(dim):
    """Padding rows to whole instructions does not make their steps coarser."""
    rows, centroids = random_units(500, dim), random_units(40, dim, 1)
    found = nearest_cells(rows, centroids, probes=3)
    np.testing.assert_array_equal(found, sorted_cells(rows, centroids, 3))


@pytest.mark.parametrize("lack", ["missing", "wrong", "torch"])
@pytest.mark.parametrize("dim", [40, 1100])
def test_cells_are_the_same_without_int8_products(no_kernels, monkeypatch, lack, dim):
    rows, centroids = random_units(700, dim), random_units(50, dim, 1)
    with monkeypatch.context() as patch:
        patch.setattr(cells, "type_of_integers", lambda dim, operations: np.int8)
        expected = nearest_cells(rows, centroids, probes=6)
    if lack == "missing":
        monkeypatch.delattr(torch, "_int_mm")
    elif lack == "wrong":
        monkeypatch.setattr(torch, "_int_mm", lambda x, y: (x.int() @ y.int()) + 1)
    else:
        monkeypatch.setattr(products, "torch_pays", lambda operations: False)
    assert tuning.type_of_integers(dim, 0) == (np.float32 if dim == 40 else np.float64)
    np.testing.assert_array_equal(nearest_cells(rows, centroids, probes=6), expected)


@given(cells_of_rows=st.lists(st.integers(0, 5), max_size=40), seed=st.integers(0, 2**32 - 1))
def test_sums_of_cells(cells_of_rows, seed):
    """One row after the other, in float32: what cells are made of depends on the last bit."""
    rows = np.random.default_rng(seed).standard_normal((len(cells_of_rows), 9), dtype=np.float32)
    expected = np.zeros((6, 9), dtype=np.float32)
    for cell, row in zip(cells_of_rows, rows, strict=True):
        expected[cell] += row
    found = np.zeros_like(expected)
    compiled.add_rows(rows, np.array(cells_of_rows, dtype=np.int64), found)
    np.testing.assert_array_equal(found, expected)


def test_trained_cells_are_unit_rows_and_the_same_each_time():
    sample = random_units(640, 12)
    trained = train_cells(sample, 32)
    assert trained.dtype == np.float32
    assert trained.shape[1] == 13
    np.testing.assert_allclose(np.linalg.norm(trained[:, :-1], axis=1), 1, atol=1e-6)
    numbers = trained[:, :-1].astype(np.float64) * 2.0**26
    np.testing.assert_array_equal(numbers, np.rint(numbers))
    np.testing.assert_array_equal(train_cells(sample, 32), trained)


def test_trained_cells_are_near_the_rows():
    """Rows about 8 centres: each has a cell of its own kind."""
    random = np.random.default_rng(5)
    centres = unit_rows(random.standard_normal((8, 24)))
    kinds = np.arange(400) % 8
    sample = unit_rows(centres[kinds] + 0.02 * random.standard_normal((400, 24)))
    trained = train_cells(sample, 32)
    nearest = nearest_cells(sample, trained, probes=1)[:, 0]
    assert (np.einsum("nd,nd->n", sample, trained[nearest, :-1]) > 0.95).all()
    assert all(len(np.unique(kinds[nearest == cell])) <= 1 for cell in range(len(trained)))


def loads_of(sample, trained):
    return np.bincount(nearest_cells(sample, trained, probes=1)[:, 0], minlength=len(trained))


def test_crowded_cells_are_split(monkeypatch):
    """Half of the rows are far from all others, so that k-means makes very uneven cells."""
    random = np.random.default_rng(2)
    near = 1 + 0.3 * random.standard_normal((300, 16))
    sample = unit_rows(np.concatenate([near, random.standard_normal((300, 16))]))
    split = train_cells(sample, 24)
    monkeypatch.setattr(cells, "MAX_LOAD_RATIO", np.inf)
    uneven = train_cells(sample, 24)
    assert len(uneven) == 24 < len(split)
    mean = len(sample) / 24
    assert loads_of(sample, uneven).max() > 2 * mean
    assert loads_of(sample, split).max() < loads_of(sample, uneven).max()


@settings(max_examples=20)
@given(sides=two_sides(max_rows=40), data=st.data())
def test_there_are_as_many_cells_as_asked_for_or_more(sides, data):
    sample = sides[0]
    count = data.draw(st.integers(1, len(sample)))
    trained = train_cells(sample, count)
    assert count <= len(trained) <= 2 * count
    assert np.isfinite(trained).all()
    np.testing.assert_allclose(np.linalg.norm(trained[:, :-1], axis=1), 1, atol=1e-6)
    found = search(sides, trained, k=3, probes=2)
    assert_is_best_of_cells(*sides, trained, k=3, probes=2, found=found)


def test_loads_are_made_even():
    """Rows with something in common, more or less of it: hubs are near to many others."""
    random = np.random.default_rng(4)
    sample = unit_rows(random.standard_normal((8000, 48)) + random.random((8000, 1)))
    trained = train_cells(sample, 128)
    loads = [
        np.bincount(nearest_cells(sample, centroids, probes=7).ravel(), minlength=len(trained))
        for centroids in (trained[:, :-1], trained)
    ]
    plain, even = ((load.astype(float) ** 2).mean() / load.mean() ** 2 for load in loads)
    assert even - 1 < 0.8 * (plain - 1)


def test_a_cell_for_each_row():
    sample = random_units(9, 8)
    trained = train_cells(sample, 9)
    assert loads_of(sample, trained).tolist() == [1] * 9


@pytest.mark.parametrize("count", [1, 2])
def test_rows_whose_mean_vanishes(count):
    """Opposite rows have no direction in common; their cell must have one all the same."""
    trained = train_cells(unit_rows(np.array([[1.0, 0], [-1, 0]] * 20)), count)
    assert len(trained) >= count
    np.testing.assert_allclose(np.linalg.norm(trained, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("count", [0, 6, 4096])
def test_more_cells_than_rows_are_refused(count):
    error = f"--index cells{count}: 5 sentences are fewer than its cells; use fewer cells, or"
    with pytest.raises(ValueError, match=error):
        train_cells(random_units(5, 8), count)


@pytest.mark.parametrize(
    ("rows", "count"),
    [(0, 1), (1, 1), (3, 2), (100, 32), (10**4, 256), (10**6, 4096), (4 * 10**6, 8192)],
)
def test_default_cells(rows, count):
    assert default_cells(rows) == count


@given(rows=st.integers(1, 10**12))
def test_default_cells_are_a_power_of_two_near_roots(rows):
    count = default_cells(rows)
    assert count & (count - 1) == 0
    assert count <= rows
    assert rows < 16 or 0.7 < count / (3.5 * rows**0.5) < 1.42
