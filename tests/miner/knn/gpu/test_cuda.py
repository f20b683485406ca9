"""The search of devices, on the host: everything but the fused kernel, which test_fused has."""

import builtins
import logging
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.knn.gpu import cuda, keys, products, sweep
from miner.knn.gpu.cuda import DeviceError, generate_on_devices, usable_devices
from tests.miner.knn.generating import HOST, assert_complete, generate_candidates, shrink, two_sides

GIB = 1 << 30


@pytest.fixture
def small(monkeypatch):
    shrink(monkeypatch)


def random_rows(rows, dim=16, seed=0):
    return np.random.default_rng(seed).integers(-9, 10, (rows, dim)).astype(float)


def search_share(source, target, *, kept, progress=lambda products: None, stop=None):
    """The keys that one device finds with the whole as its share."""
    return sweep.search(
        *(torch.from_numpy(side) for side in (source, target)),
        share=range(len(source)),
        kept=kept,
        device=HOST,
        progress=progress,
        stop=stop or threading.Event(),
    )


@pytest.fixture(autouse=True)
def without_the_kernel(monkeypatch):
    monkeypatch.setattr(sweep, "working_tiling", lambda device, dtype: None)


@settings(max_examples=60)
@given(
    sides=two_sides(),
    kept=st.integers(1, 12),
    dtype=st.sampled_from([torch.bfloat16, torch.float16, torch.float32]),
    devices=st.integers(1, 3),
    resident=st.booleans(),
)
def test_candidates_are_complete(sides, kept, dtype, devices, resident):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        patch.setattr(sweep, "plan", lambda *_, **__: sweep.Plan(resident=resident, lines=25))
        found = generate_candidates(*sides, kept=kept, dtype=dtype, devices=[HOST] * devices)
    assert_complete(found, *sides, kept=kept)


def test_the_sizes_of_production():
    source, target = random_rows(2100, seed=1), random_rows(4200, seed=2)
    found = generate_candidates(source, target, kept=12, dtype=torch.bfloat16)
    assert_complete(found, source, target, kept=12)


def test_products_that_round():
    random = np.random.default_rng(3)
    rows = [torch.from_numpy(random.standard_normal((n, 64))).bfloat16() for n in (70, 90)]
    found = generate_on_devices(*rows, kept=5, devices=[HOST])
    assert_complete(found, *(side.double().numpy() for side in rows), kept=5, error=1e-4)


def test_progress_counts_every_product_once(small):
    counts = []
    source, target = random_rows(70), random_rows(41)
    generate_candidates(
        source, target, kept=3, dtype=torch.float32, devices=[HOST] * 3, progress=counts.append
    )
    assert sum(counts) == 70 * 41
    assert len(counts) > 9


@pytest.mark.parametrize(("count", "most"), [(0, 9), (1, 9), (4, 9), (5, 9), (100, 9), (100, 3)])
def test_spans_double_what_was_before_up_to_a_limit(count, most):
    spans = list(sweep.spans(count, most, first=4))
    assert [line for span in spans for line in span] == list(range(count))
    for span in spans:
        assert len(span) <= min(most, max(4, span.start))


def test_each_product_is_computed_once(small, monkeypatch):
    computed = np.zeros((70, 41), dtype=int)

    def by_sorting(cell):
        rows = slice(cell.first_row, cell.first_row + len(cell.x))
        computed[rows, cell.first_column : cell.first_column + len(cell.y)] += 1
        return products.by_sorting(cell)

    monkeypatch.setattr(sweep, "by_sorting", by_sorting)
    generate_candidates(
        random_rows(70), random_rows(41), kept=3, dtype=torch.float32, devices=[HOST] * 2
    )
    assert (computed == 1).all()


class Scarce:
    """The host with memory for cells of so many lines."""

    def __init__(self, patch, lines):
        self.refused = 0
        self.best = keys.best
        self.lines = lines
        patch.setattr(keys, "best", self)

    def __call__(self, parts, kept):
        if len(parts[0]) > self.lines:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.best(parts, kept)


@pytest.mark.parametrize("resident", [False, True])
def test_a_cell_that_runs_out_of_memory_is_halved(small, monkeypatch, caplog, resident):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(sweep, "plan", lambda *_, **__: sweep.Plan(resident=resident, lines=25))
    source, target = random_rows(70), random_rows(60)
    scarce = Scarce(monkeypatch, 11)
    found = search_share(source, target, kept=3)
    assert scarce.refused == 1  # what was learnt is kept
    assert "reduced steps to at most 8 rows and columns: CUDA out of memory" in caplog.text
    sides = zip(found, (60, 70), strict=True)
    assert_complete(
        [keys.device_candidates(one, of=of) for one, of in sides], source, target, kept=3
    )


def test_memory_that_holds_nothing_is_an_error(small, monkeypatch):
    monkeypatch.setattr(sweep, "SMALLEST", 4)
    Scarce(monkeypatch, 1)
    with pytest.raises(DeviceError, match=r"^cpu: CUDA out of memory\. Tried"):
        generate_candidates(random_rows(70), random_rows(60), kept=3, dtype=torch.float32)


def test_too_little_memory_to_begin_with(monkeypatch):
    monkeypatch.setattr(sweep, "_free_bytes", lambda device: GIB)
    with pytest.raises(
        DeviceError, match=r"^cpu: 3,000 by 9 sentences do not fit the memory that is free$"
    ):
        generate_candidates(random_rows(3000), random_rows(9), kept=3, dtype=torch.float32)


def test_one_failure_ends_the_search_of_all(monkeypatch):
    def search(source, target, *, share, stop, **_):
        if share.start > 0:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel")
        stopped.append(stop.wait(timeout=30))

    stopped = []
    monkeypatch.setattr(cuda, "search", search)
    with pytest.raises(DeviceError, match=r"^cpu: CUDA error: an illegal memory .* encountered$"):
        generate_candidates(
            random_rows(80), random_rows(80), kept=3, dtype=torch.float32, devices=[HOST] * 2
        )
    assert stopped == [True]


def test_a_search_that_is_stopped_takes_in_no_more_cells(small):
    stop = threading.Event()
    counts = []

    def progress(products):
        counts.append(products)
        if len(counts) == 3:
            stop.set()

    search_share(random_rows(70), random_rows(60), kept=3, progress=progress, stop=stop)
    assert len(counts) == 3


@pytest.mark.parametrize(
    ("rows", "gib", "resident", "lines"),
    [
        (2_000_000, 80, True, 1 << 20),
        (100_000_000, 80, False, 1 << 20),
        (20_000_000, 16, False, 1 << 20),
        (2_000_000, 8, False, 871_611),
        (2_000_000, 1, False, 0),
    ],
)
def test_the_plan_fits_the_memory(rows, gib, resident, lines):
    line_bytes = 2 * 1032
    made = sweep.plan(rows, line_bytes=line_bytes, kept=12, free=gib * GIB)
    assert made.resident == resident
    assert max(0, made.lines) == pytest.approx(lines, abs=1)
    if made.lines > 0:
        held = line_bytes * (rows if resident else 2 * made.lines) + rows * 12 * 8
        assert held + sweep.WORKSPACE < gib * GIB * sweep.USABLE


@given(
    values=st.lists(st.floats(width=32, allow_nan=False), min_size=2),
    positions=st.integers(0, keys.MAX_ROWS - 1),
)
def test_keys_sort_as_their_products_do(values, positions):
    made = torch.tensor(values, dtype=torch.float32)
    packed = keys.pack(made, torch.full(made.shape, positions))
    assert torch.equal(keys.products(packed), made)
    assert (keys.positions(packed) == positions).all()
    assert torch.equal(keys.products(packed.sort().values), made.sort().values)
    assert (packed[made > -torch.inf] > keys.EMPTY).all()


def test_the_empty_key():
    none = keys.no_candidates(2, 3, HOST)
    assert (keys.positions(none) == -1).all()
    assert (keys.products(none) == -torch.inf).all()
    few = keys.best([none, keys.pack(torch.tensor([[0.5]] * 2), torch.tensor([[7]] * 2))], 3)
    assert keys.device_candidates(few, of=9).ids.tolist() == [[7, -1, -1]] * 2
    assert (keys.device_candidates(few, of=9).floor == -np.inf).all()


class TestTheChoiceOfTheKernel:
    @pytest.fixture(autouse=True)
    def fresh(self):
        products.working_tiling.cache_clear()
        yield
        products.working_tiling.cache_clear()

    def test_without_triton_products_go_through_memory(self, monkeypatch, caplog):
        imported = builtins.__import__

        def missing(name, *args, **kwargs):
            if name == "miner.knn.gpu" and "fused" in (args[2] or ()):
                raise ImportError("No module named 'triton'")
            return imported(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", missing)
        for _ in range(2):
            assert products.working_tiling(HOST, torch.bfloat16) is None
        assert caplog.messages == [
            "cpu: the fused kernel does not work (No module named 'triton'); "
            "the search takes up to five times as long"
        ]

    def test_float32_does_not_ask_for_it(self, caplog):
        assert products.working_tiling(HOST, torch.float32) is None
        assert caplog.messages == []


class TestUsableDevices:
    @pytest.fixture(autouse=True)
    def two_devices(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)

    def test_those_that_do_not_answer_are_left_out(self, monkeypatch, caplog):
        caplog.set_level(logging.INFO)
        faults = {torch.device("cuda", 0): "", torch.device("cuda", 1): "no"}
        monkeypatch.setattr(cuda, "_fault", faults.get)
        assert usable_devices() == [torch.device("cuda", 0)]
        assert caplog.messages == ["cuda:1 is not used: no"]

    def test_the_trial(self, monkeypatch):
        assert cuda._fault(HOST) == ""
        monkeypatch.setattr(cuda, "product", lambda x, y: (x.float() @ y.float().T).bfloat16())
        assert cuda._fault(HOST) == "its products are wrong"

    def test_no_kernel_for_the_device(self, monkeypatch):
        def fail(x, y):
            raise RuntimeError("CUDA error: no kernel image is available\nCUDA kernel errors")

        monkeypatch.setattr(cuda, "product", fail)
        assert cuda._fault(HOST) == "CUDA error: no kernel image is available"


def test_a_machine_without_cuda_has_no_devices():
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert usable_devices() == []
