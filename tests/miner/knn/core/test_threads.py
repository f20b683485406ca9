import threading
import time
from collections import Counter

import numpy as np
import pytest
import torch

from miner.knn.core import threads
from miner.knn.core.threads import Claims, in_threads, thread_count


@pytest.fixture(params=[1, 2, 5])
def count(request, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: request.param)
    return request.param


def threads_of_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("items", [0, 1, 3, 2000])
def test_each_item_once(count, items):
    done = []
    in_threads(done.append, iter(range(items)))
    assert Counter(done) == Counter(range(items))


def test_items_are_worked_on_side_by_side(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    barrier = threading.Barrier(3, timeout=10)
    in_threads(lambda item: barrier.wait(), range(3))


def test_items_are_drawn_one_at_a_time(count):
    drawn, done = [], []

    def items():
        for item in range(50):
            drawn.append(item)
            assert len(drawn) - len(done) <= count + 1
            yield item

    in_threads(done.append, items())
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
        in_threads(work, range(10_000))
    assert raised.value is error
    assert len(done) < 5000
    assert threading.active_count() == running


def test_an_error_in_drawing_an_item_is_raised(count):
    def items():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        in_threads(lambda item: None, items())


def test_an_interrupt_ends_the_work(monkeypatch):
    """The caller is interrupted while it waits: no thread works on when that is raised."""
    done, running = [], threading.active_count()
    join = threading.Thread.join
    interrupts = iter([KeyboardInterrupt])

    def interrupted(thread, timeout=None):
        for interrupt in interrupts:
            while not done:
                time.sleep(0.001)
            raise interrupt
        join(thread, timeout)

    def work(item):
        done.append(item)
        time.sleep(0.001)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        in_threads(work, range(100_000))
    assert threading.active_count() == running
    assert 0 < len(done) < 50_000


def fail(item):
    raise ValueError("no")


@pytest.mark.parametrize("work", [lambda item: None, fail])
def test_torch_has_as_many_threads_as_before(work):
    """One while it works; in the caller's thread and in new ones as many as before."""
    before = thread_count()
    inside = []
    torch.set_num_threads(3)
    try:
        in_threads(lambda item: inside.append(torch.get_num_threads()), range(3))
        try:
            in_threads(work, range(3))
        except ValueError:
            assert work is fail
        assert inside == [1, 1, 1]
        assert thread_count() == 3
        assert threads_of_a_new_thread() == 3
    finally:
        torch.set_num_threads(before)


def test_a_row_is_changed_by_one_thread_at_a_time(monkeypatch):
    """Each change reads, waits and writes: any two at once would lose one."""
    monkeypatch.setattr(threads, "thread_count", lambda: 4)
    random = np.random.default_rng(0)
    tables = np.zeros(20, dtype=int), np.zeros(7, dtype=int)
    parts = [
        (random.choice(20, size=3, replace=False), slice(start, start + 2))
        for start in random.integers(0, 6, size=60)
    ]
    claims = Claims(20, 7)

    def add(part):
        with claims.on(*part):
            seen = [table[rows].copy() for table, rows in zip(tables, part, strict=True)]
            time.sleep(0.0005)
            for table, rows, numbers in zip(tables, part, seen, strict=True):
                table[rows] = numbers + 1

    in_threads(add, iter(parts))
    expected = np.zeros(20, dtype=int), np.zeros(7, dtype=int)
    for part in parts:
        for table, rows in zip(expected, part, strict=True):
            table[rows] += 1
    for table, numbers in zip(tables, expected, strict=True):
        np.testing.assert_array_equal(table, numbers)


def test_rows_of_others_are_not_waited_for():
    claims = Claims(4)
    with claims.on(np.array([0, 2])), claims.on(slice(3, 4)):
        pass


def test_an_error_frees_what_was_claimed():
    claims = Claims(2)
    with pytest.raises(ValueError, match="no"), claims.on(slice(2)):
        raise ValueError("no")
    with claims.on(slice(2)):
        pass
