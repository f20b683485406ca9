import contextlib
import contextvars
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest
import torch

from miner import threads
from miner.knn.core.passes import RowLocks
from miner.threads import (
    blocks,
    even_blocks,
    map_in_threads,
    on_one_thread,
    prefetch,
    run_in_threads,
    thread_count,
    use_all_threads,
    using_threads,
)


@pytest.fixture(params=[1, 2, 5])
def count(request, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: request.param)
    return request.param


@pytest.mark.parametrize("items", [0, 1, 3, 2000])
def test_each_item_once(count, items):
    done = []
    run_in_threads(done.append, iter(range(items)))
    assert Counter(done) == Counter(range(items))


def test_items_are_worked_on_side_by_side(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    barrier = threading.Barrier(3, timeout=10)
    run_in_threads(lambda item: barrier.wait(), range(3))


def test_items_are_drawn_one_at_a_time(count):
    drawn, done = [], []

    def items():
        for item in range(50):
            drawn.append(item)
            assert len(drawn) - len(done) <= count + 1
            yield item

    run_in_threads(done.append, items())
    assert len(done) == 50


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_an_error_stops_all_threads_and_is_raised(count, error):
    done, running = [], threading.active_count()

    def work(item):
        if item == 5:
            raise error
        done.append(item)
        time.sleep(0.001)

    with pytest.raises(type(error)) as raised:
        run_in_threads(work, range(10_000))
    assert raised.value is error
    assert len(done) < 5000
    assert threading.active_count() == running


def test_an_error_in_drawing_an_item_is_raised(count):
    def items():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run_in_threads(lambda item: None, items())


def test_an_interrupt_ends_the_work():
    """The caller is interrupted while it waits: no thread works on when that is raised."""
    done, running = [], threading.active_count()

    def work(item):
        done.append(item)
        if len(done) == 20:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.001)

    # A shell's background process ignores interrupts.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_threads(work, range(100_000), count=2)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert threading.active_count() == running
    assert 0 < len(done) < 50_000


@pytest.fixture
def host(monkeypatch):
    """A host whose torch has 3 threads, and what its other threads see while we work."""
    before, seen, done = torch.get_num_threads(), [], threading.Event()
    torch.set_num_threads(3)

    def look():
        torch.ones(1)
        seen.append(torch.get_num_threads())

    def watch():  # in a thread that used torch before we did, and in others begun meanwhile
        while not done.wait(0.0005):
            look()
            other = threading.Thread(target=look)
            other.start()
            other.join()

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield seen
    done.set()
    watcher.join()
    torch.set_num_threads(before)


def fail(item):
    raise ValueError("no")


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("fails", [False, True])
def test_a_host_keeps_its_threads(host, count, fails):
    inside = []

    def work(item):
        torch.ones(50, 50) @ torch.ones(50, 50)
        inside.append(torch.get_num_threads())
        time.sleep(0.002)
        if fails and item > 20:
            raise ValueError("no")

    with contextlib.suppress(ValueError):
        run_in_threads(work, range(40), count=count)
    if count == 1:
        assert set(inside) == {3}  # the caller's thread, with all it has
    else:
        assert set(inside) == {1}
    inside.append(on_one_thread(torch.get_num_threads))
    assert inside[-1] == 1
    time.sleep(0.005)
    assert set(host) == {3}
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize(
    ("given", "cores", "expected"),
    [
        (None, {0, 2, 5}, 3),
        ("", {1}, 1),
        ("7", {0, 1}, 7),
        ("4,2", {0, 1}, 4),
        ("0", {0, 1}, 2),
        ("many", {0, 1}, 2),
        ("²", {0, 1}, 2),
    ],
)
def test_how_many_threads(monkeypatch, given, cores, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: cores, raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert thread_count() == expected


def test_one_item_ahead():
    begun = []
    mapped = prefetch(lambda item: (begun.append(item), 10 * item)[1], iter(range(5)))
    assert next(mapped) == 0
    assert len(begun) <= 2
    assert list(mapped) == [10, 20, 30, 40]


def test_torch_is_not_loaded_for_its_threads():
    code = """
import sys
from miner.threads import on_one_thread, run_in_threads
run_in_threads(print, range(3), count=2)
on_one_thread(lambda: None)
assert not {"torch", "numpy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_threads_see_what_the_caller_has_set():
    """Where a run keeps what it fetches, for one: else it would stay when the run has ended."""
    variable = contextvars.ContextVar("variable", default="nothing")
    variable.set("something")
    with using_threads(2):
        assert map_in_threads(lambda item: variable.get(), range(4)) == ["something"] * 4
    assert list(prefetch(lambda item: variable.get(), range(3))) == ["something"] * 3


def test_a_row_is_changed_by_one_thread_at_a_time(monkeypatch):
    """Each change reads, waits and writes: any two at once would lose one."""
    monkeypatch.setattr(threads, "thread_count", lambda: 4)
    random = np.random.default_rng(0)
    tables = np.zeros(20, dtype=int), np.zeros(7, dtype=int)
    parts = [
        (random.choice(20, size=3, replace=False), slice(start, start + 2))
        for start in random.integers(0, 6, size=60)
    ]
    claims = RowLocks(20, 7, threads=4)

    def add(part):
        with claims.acquire(*part):
            seen = [table[rows].copy() for table, rows in zip(tables, part, strict=True)]
            time.sleep(0.0005)
            for table, rows, numbers in zip(tables, part, seen, strict=True):
                table[rows] = numbers + 1

    run_in_threads(add, iter(parts))
    expected = np.zeros(20, dtype=int), np.zeros(7, dtype=int)
    for part in parts:
        for table, rows in zip(expected, part, strict=True):
            table[rows] += 1
    for table, numbers in zip(tables, expected, strict=True):
        np.testing.assert_array_equal(table, numbers)


def test_rows_of_others_are_not_waited_for():
    claims = RowLocks(4, threads=2)
    with claims.acquire(np.array([0, 2])), claims.acquire(slice(3, 4)):
        pass


def test_an_error_frees_what_was_claimed():
    claims = RowLocks(2, threads=2)
    with pytest.raises(ValueError, match="no"), claims.acquire(slice(2)):
        raise ValueError("no")
    with claims.acquire(slice(2)):
        pass


def test_a_thread_alone_waits_for_none():
    claims = RowLocks(4, threads=1)
    with claims.acquire(slice(2)), claims.acquire(slice(2)):
        pass


def test_threads_of_all_workers(monkeypatch):
    """While one alone has something to do, and only where there are workers."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("ADIT_ALL_THREADS", raising=False)
    with use_all_threads():
        assert thread_count() == 2
    monkeypatch.setenv("ADIT_ALL_THREADS", "7")
    with use_all_threads():
        assert thread_count() == 7
        with using_threads(3):
            assert thread_count() == 3
        assert thread_count() == 7
    assert thread_count() == 2


@pytest.mark.parametrize(("rows", "size"), [(0, 4), (1, 4), (4, 4), (5, 4), (9, 4), (4100, 2048)])
def test_even_blocks(rows, size):
    found = even_blocks(rows, size)
    lengths = [block.stop - block.start for block in found]
    assert [row for block in found for row in range(block.start, block.stop)] == list(range(rows))
    assert len(found) == len(blocks(rows, size))
    assert max(lengths, default=0) <= size
    assert max(lengths, default=0) - min(lengths, default=0) < max(1, len(found))
