import logging
from dataclasses import replace

import numpy as np
import pytest

from miner.knn import cells, exact, tiled
from miner.knn.core import codes, passes, products, tuning
from miner.knn.core.codes import PRECISIONS
from miner.knn.core.rescore import unit_rows
from miner.knn.core.tuning import candidates_per_row, choose, choose_codes, product_rates
from tests.miner.strategies import along_few_axes

RATES = {"int8": 1.8e9, "bfloat16": 1.4e9, "float32": 1e9}


@pytest.fixture
def rates(monkeypatch):
    """A machine that is faster at fewer bits, though not by so much that many hits pay."""
    monkeypatch.setattr(tuning, "product_rates", lambda: RATES)


def apart(rows, dim, seed):
    return unit_rows(np.random.default_rng(seed).standard_normal((rows, dim)))


def pairs_in_crowds(rows, dim, spread, seed, crowds=4):
    """Rows about some centres, which both sides share; ``spread`` apart in each."""
    centres = np.random.default_rng(0).standard_normal((crowds, dim))
    random = np.random.default_rng(seed)
    near = centres[random.integers(crowds, size=rows)]
    return unit_rows(near + spread * random.standard_normal((rows, dim)))


def test_rows_far_apart_are_searched_in_what_is_fastest(rates):
    assert choose(apart(400, 256, 1), apart(500, 256, 2), k=4, precision=None) == "int8"


def test_crowds_closer_than_int8_can_tell_are_searched_in_more_bits(monkeypatch):
    """A hundred rows of each crowd lie nearer to each other than int8 rounds."""
    monkeypatch.setattr(tuning, "product_rates", lambda: {n: 15 * r for n, r in RATES.items()})
    sides = [pairs_in_crowds(400, 256, spread, seed) for spread in (2.0, 0.04) for seed in (1, 2)]
    assert choose(*sides[:2], k=4, precision=None) == "int8"
    assert choose(*sides[2:], k=4, precision=None) == "float32"


@pytest.mark.parametrize(
    ("dim", "rates", "expected"),
    [
        (48, {"int8": 2.2, "int16": 1.4, "float32": 1.0}, "int8"),
        (1024, {"int8": 1.5, "int16": 1.4, "float32": 1.0}, "int16"),
        (1024, {"int8": 1.05, "int16": 0.9, "float32": 1.0}, "float32"),
        (1024, {"int8": 2.2, "int16": 1.4, "float32": 1.0}, "int8"),
    ],
)
def test_full_codes_are_searched_where_smaller_ones_hit_too_often(
    monkeypatch, dim, rates, expected
):
    """Of rows far apart in many dimensions nearly all cosines are as near as 7 bits round."""
    monkeypatch.setattr(codes, "largest_code", lambda: 63)
    monkeypatch.setattr(codes, "largest_sum", lambda: 257)
    rates = {name: 3e10 * rate for name, rate in rates.items()}
    monkeypatch.setattr(tuning, "product_rates", lambda: rates)
    assert choose(apart(4000, dim, 1), apart(4000, dim, 2), k=4, precision=None) == expected


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("spread", [0.04, 1.0])
def test_what_is_given_is_kept(rates, precision, spread):
    sides = [pairs_in_crowds(300, 64, spread, seed) for seed in (1, 2)]
    assert choose(*sides, k=4, precision=precision) == precision


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_rows_along_few_axes_are_searched_along_them(rates, monkeypatch, precision):
    monkeypatch.setattr(tuning, "MIN_SECONDS", 1)
    sides = [along_few_axes(3000, 256, 50, seed) for seed in (1, 2)]
    axes = choose_codes(*sides, k=4, precision=precision)[1]
    assert axes.shape == (256, 64)
    assert axes.dtype == np.float32
    np.testing.assert_allclose(axes.T @ axes.copy(), np.eye(64), atol=1e-5)
    inside = np.concatenate(sides) @ axes
    assert (inside**2).sum() > 0.9 * 6000
    sizes = np.abs(inside).mean(axis=0)
    assert sizes.max() < 2 * sizes.min(), "coordinates are not even"


@pytest.mark.parametrize(("rows", "dim", "axes"), [(3000, 256, 256), (3000, 64, 8), (20, 256, 8)])
def test_rows_are_searched_as_they_are(rates, monkeypatch, rows, dim, axes):
    """If no axes are longer than others, or there are too few dimensions, or rows."""
    monkeypatch.setattr(tuning, "MIN_SECONDS", 0.5)
    sides = [along_few_axes(rows, dim, axes, seed) for seed in (1, 2)]
    assert choose_codes(*sides, k=4, precision="int8")[1] is None


def test_no_axes_are_computed_for_rows_as_long_along_all(rates, monkeypatch):
    monkeypatch.setattr(tuning, "MIN_SECONDS", 0)
    monkeypatch.setattr(tuning, "principal_components", None)
    sides = [along_few_axes(3000, 256, 256, seed) for seed in (1, 2)]
    assert choose_codes(*sides, k=4, precision="int8")[1] is None


def test_a_precision_that_is_not_measured_has_no_axes(monkeypatch):
    monkeypatch.setattr(tuning, "product_rates", lambda: {"float32": 1e9})
    sides = [along_few_axes(3000, 256, 50, seed) for seed in (1, 2)]
    assert choose_codes(*sides, k=4, precision="bfloat16")[1] is None


def test_closer_rows_have_more_candidates():
    kept = [
        candidates_per_row(
            *(pairs_in_crowds(300, 64, spread, s) for s in (1, 2)), k=4, precision="bfloat16"
        )
        for spread in (2.0, 0.5, 0.05)
    ]
    assert kept == sorted(kept)
    assert kept[0] < kept[-1] == tuning.MAX_KEPT


@pytest.mark.parametrize("k", [1, 4, 100])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 400), (400, 3), (300, 300)])
def test_there_are_more_candidates_than_k(sizes, k):
    sides = apart(sizes[0], 16, 1), apart(sizes[1], 16, 2)
    assert candidates_per_row(*sides, k=k, precision="bfloat16") > k
    assert choose(*sides, k=k, precision=None) in tuning.MEASURED


@pytest.mark.parametrize("precision", [None, *PRECISIONS])
@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0)])
def test_an_empty_side(rates, sizes, precision):
    chosen = choose(apart(sizes[0], 16, 1), apart(sizes[1], 16, 2), k=4, precision=precision)
    assert chosen == (precision or "float32")


def test_low_precision_is_not_measured_where_it_does_not_pay(monkeypatch):
    few = 2 * 400 * 500 * 64
    monkeypatch.setattr(tuning, "low_precision_pays", lambda operations: operations > few)
    monkeypatch.setattr(tuning, "product_rates", lambda: RATES)
    sides = apart(400, 64, 1), apart(500, 64, 2)
    assert choose(*sides, k=4, precision=None) == "float32"
    more = np.concatenate([sides[1], apart(1, 64, 3)])
    assert choose(sides[0], more, k=4, precision=None) == "int8"


def test_nearest_is_a_sort(monkeypatch):
    monkeypatch.setattr(tuning, "BLOCK_COLUMNS", 16)
    rows, base = apart(9, 8, 1), apart(61, 8, 2)
    for count in (1, 5, 40, 99):
        cosines, ids = tuning._nearest(rows, base, count)
        table = rows @ base.T
        expected = np.argsort(-table, axis=1)[:, :count]
        np.testing.assert_array_equal(ids, expected)
        np.testing.assert_allclose(cosines, np.take_along_axis(table, ids, axis=1), atol=1e-6)


def test_rates_are_measured_in_one_thread_and_once(torch, fresh, monkeypatch):
    before, used, real = torch.get_num_threads(), [], tuning.find_hits
    monkeypatch.setattr(
        tuning, "find_hits", lambda *given: (used.append(torch.get_num_threads()), real(*given))
    )
    torch.set_num_threads(3)
    try:
        first = product_rates()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(used) == {1}
    assert all(rate > 0 for rate in first.values())
    assert product_rates() is first


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_time_of_other_threads_counts_though_systems_add_it_late(no_kernels, monkeypatch, threads):
    """OpenBLAS computes float32 in several threads; a system adds their time every 4 ms."""
    seconds, tick, now = 2.7e-3, 4e-3, [0.0]

    def multiply(*_):
        now[0] += seconds / threads

    monkeypatch.setattr(tuning, "find_hits", multiply)
    monkeypatch.setattr(tuning, "MEASURED", ("float32",))
    monkeypatch.setattr(products, "perf_counter", lambda: now[0])
    monkeypatch.setattr(
        products, "process_time", lambda: now[0] + (threads - 1) * (now[0] // tick * tick)
    )
    expected = 2 * products.ROWS * products.COLUMNS * products.DIM / seconds
    assert tuning._measure_products(False)["float32"] == pytest.approx(expected, rel=0.15)


def missing(*_):
    raise RuntimeError("_int_mm is not there")


def saturating(left, right):
    return left.int().new_full((left.shape[0], right.shape[1]), 32767)


@pytest.mark.parametrize("int_mm", [missing, saturating, None])
def test_int8_is_left_out_where_it_is_missing_or_wrong(
    torch, no_kernels, monkeypatch, caplog, int_mm
):
    if int_mm:
        monkeypatch.setattr(torch, "_int_mm", int_mm)
    else:
        monkeypatch.delattr(torch, "_int_mm")
    with caplog.at_level(logging.DEBUG):
        assert list(product_rates()) == ["bfloat16", "float32"]
    assert "no int8 products on this machine" in caplog.text
    assert choose(apart(99, 64, 1), apart(99, 64, 2), k=4, precision=None) != "int8"


@pytest.mark.parametrize(
    ("largest", "rate", "dim", "expected"),
    [
        (127, 2.9, 512, np.float32),  # torch's on AMD's Zen 3, in 10^9 operations a second
        (127, 87.0, 512, np.float32),
        (127, 89.0, 512, np.int8),
        (127, 2.9, 1536, np.float64),
        (127, 43.0, 1536, np.float64),  # half as fast as float32
        (127, 45.0, 1536, np.int8),
        (127, None, 512, np.float32),
        (127, 900.0, products.INT8_DIMENSIONS, np.float64),
        (95, 87.0, 512, np.float32),
        (95, 131.0, 512, np.int16),
        (95, 45.0, 1536, np.int16),
        (95, 43.0, 1536, np.float64),
    ],
)
def test_integers_are_summed_in_the_fastest_type(monkeypatch, largest, rate, dim, expected):
    rates = {"float32": 88.0, "int8": 900.0 if largest == 95 else rate, "int16": rate}
    rates = {name: rate for name, rate in rates.items() if rate}
    monkeypatch.setattr(tuning, "product_rates", lambda: rates)
    monkeypatch.setattr(tuning, "largest_code", lambda: largest)
    monkeypatch.setattr(tuning, "low_precision_pays", lambda operations: True)
    assert tuning.type_of_integers(dim, 1e12) == expected
    monkeypatch.setattr(tuning, "low_precision_pays", lambda operations: False)
    assert tuning.type_of_integers(dim, 1e12) in (np.float32, np.float64)


SLOW, FAST = 2.9, 900.0


@pytest.mark.parametrize("largest", [95, 127])
@pytest.mark.parametrize("int8", [SLOW, FAST])
@pytest.mark.parametrize("int16", [SLOW, FAST])
@pytest.mark.parametrize("bfloat16", [SLOW, FAST])
def test_nothing_is_multiplied_slower_than_float32(monkeypatch, largest, int8, int16, bfloat16):
    """Neither by an exact search, nor for what cells train, assign, measure and join."""
    if bfloat16 == FAST:
        pytest.importorskip("torch")
    rates = {"int8": int8, "bfloat16": bfloat16, "float32": 88.0}
    if largest == 95:
        rates["int16"] = int16
    seen, real = set(), passes.find_hits
    for module in (tuning, codes):
        monkeypatch.setattr(module, "largest_code", lambda: largest)
    monkeypatch.setattr(tuning, "product_rates", lambda: rates)
    monkeypatch.setattr(tuning, "low_precision_pays", lambda operations: True)
    monkeypatch.setattr(exact, "MAX_SIMILARITIES", -1)

    def find_hits(left, right, *floors):
        kind = left.numbers.dtype.name
        seen.add("bfloat16" if kind == "uint16" else kind)
        if kind == "int16":  # which this CPU's set may lack
            left, right = (replace(c, numbers=c.numbers.astype(np.float32)) for c in (left, right))
        return real(left, right, *floors)

    monkeypatch.setattr(passes, "find_hits", find_hits)
    rows, other = apart(600, 32, 1), apart(600, 32, 2)
    exact.search_both(rows, other, k=4)
    centroids = cells.train_cells(rows, 20)
    cells.fit_probe_radius(rows, other, centroids, probes=7)
    both = [cells.nearest_cells(side, centroids, probes=7) for side in (rows, other)]
    cells.join_cells((rows, other), both, part=range(len(centroids)), k=4)
    assert all(rates[name] >= rates["float32"] for name in seen)


@pytest.mark.parametrize("spread", [0.04, 1.0])
def test_machines_that_have_float32_only(monkeypatch, spread):
    monkeypatch.setattr(tuning, "product_rates", lambda: {"float32": 1e9})
    sides = (pairs_in_crowds(300, 64, spread, seed) for seed in (1, 2))
    assert choose(*sides, k=4, precision=None) == "float32"


def test_int8_is_not_chosen_for_more_dimensions_than_it_can_sum(rates, monkeypatch):
    monkeypatch.setattr(tuning, "INT8_DIMENSIONS", 64)
    assert choose(apart(99, 64, 1), apart(99, 64, 2), k=4, precision=None) != "int8"
    assert choose(apart(99, 63, 1), apart(99, 63, 2), k=4, precision=None) == "int8"


def test_few_rows_are_searched_again():
    """Rounding is relative in bfloat16: it hides more among near rows than among any two."""
    sides = [pairs_in_crowds(1500, 256, 0.3, seed, crowds=40) for seed in (1, 2)]
    kept = candidates_per_row(*sides, k=4, precision="bfloat16")
    left, right = codes.encode_both(*sides, "bfloat16")
    found = products.numbers_of(left.numbers) @ products.numbers_of(right.numbers).T
    bounds = found + left.slack * np.abs(found) + left.bias[:, None] + right.bias
    cosines = sides[0] @ sides[1].T
    floors, fourths = (-np.sort(-table, axis=1) for table in (bounds, cosines))
    assert kept < tuning.MAX_KEPT
    assert (floors[:, kept - 1] >= fourths[:, 3]).mean() < 0.1


@pytest.mark.parametrize("width", [None, 64])
def test_trials_foresee_the_hits_of_a_search(monkeypatch, width):
    """Floors rise most among the first columns, which few steps of a trial pass over."""
    lengths = np.exp(-np.arange(128) / 40)
    x, y = (
        unit_rows(lengths * np.random.default_rng(seed).standard_normal((10_000, 128)))
        for seed in (1, 2)
    )
    components, _ = tuning.principal_components(tuning.scatter_of(x, y))
    axes = width and tuning.mixed(components[:, :width])
    find_hits, counts = passes.find_hits, []

    def find_and_count(*sides):
        hits = find_hits(*sides)
        counts.append(len(hits[0]))
        return hits

    monkeypatch.setattr(passes, "find_hits", find_and_count)
    monkeypatch.setattr(tiled, "choose_codes", lambda *sides, **options: ("int8", axes))
    exact.search_unit_rows(x, y, k=4)
    trials = tuning._TwoWayTrial(x, y, 4, tuning.TRIAL_ROWS).trials
    foreseen = len(x) * len(y) * sum(trial.share_of_hits("int8", axes) for trial in trials)
    assert 0.5 < foreseen / sum(counts) < 1.5
