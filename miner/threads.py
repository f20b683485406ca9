"""Count threads, and run functions in threads.

Of libraries, only the numbers that OpenMP and MKL keep per thread are set here, in threads that end
with the work. OpenBLAS has one number for all, which commands set (``miner.commandline``).
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = "OMP_NUM_THREADS"
# In a worker process: the number of threads of all workers of its machine together.
ALL_THREADS = "ADIT_ALL_THREADS"
_counts: list[int] = []  # of nested ``using_threads``; the last one counts


def thread_count() -> int:
    """Return the number of threads that work may use in this process.

    It is that of ``using_threads``, else the first in OMP_NUM_THREADS, else ``usable_cores``.
    """
    return _counts[-1] if _counts else given_threads() or usable_cores()


def given_threads(variable: str = THREADS) -> int:
    """Return the number before an environment variable's first comma, or 0."""
    value = os.environ.get(variable, "").partition(",")[0].strip()
    return int(value) if value.isdecimal() else 0


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Have ``thread_count`` return ``count`` in a ``with`` block.

    It applies to all threads, whose blocks must not overlap. BLAS and other libraries may use more.
    """
    _counts.append(count)
    try:
        yield
    finally:
        _counts.pop()


def use_all_threads() -> AbstractContextManager[None]:
    """Return a ``with`` context whose work may use the threads of all workers.

    In it, ``thread_count`` is ADIT_ALL_THREADS of the environment, or unchanged if that is not set.
    """
    return using_threads(given_threads(ALL_THREADS) or thread_count())


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blocks(rows: int, size: int) -> list[slice]:
    """Split 0 to ``rows`` - 1 into slices of ``size``, the last maybe shorter."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def even_blocks(rows: int, size: int) -> list[slice]:
    """Split 0 to ``rows`` - 1 into the fewest slices of at most ``size``.

    They have one size, the least that allows this number. The last may be shorter.
    """
    return blocks(rows, -(-rows // -(-rows // size))) if rows else []


def run_in_threads(
    work: Callable[[Item], None], items: Iterable[Item], *, count: int | None = None
) -> None:
    """Call ``work`` on each item, in any order, in ``count`` threads.

    ``count`` defaults to ``thread_count``. A single thread is the caller's own. Items are drawn in
    these threads, one at a time. Threads see the caller's context variables, such as a run's cache
    folder. In several threads, products of OpenMP and MKL use one thread each. The first error of
    ``work`` or ``items`` is raised. Calls that have begun finish first, and no others begin.
    """
    count = thread_count() if count is None else count
    if count == 1:
        for item in items:
            work(item)
        return
    remaining, drawing, stop = iter(items), threading.Lock(), threading.Event()

    def draw() -> None:
        while not stop.is_set():
            with drawing:
                item = next(remaining, stop)
            if item is stop:
                return
            work(item)  # type: ignore[arg-type]  # not the sentinel

    with ThreadPoolExecutor(count, initializer=_compute_in_one_thread) as pool:
        try:
            threads = [pool.submit(copy_context().run, draw) for _ in range(count)]
            for thread in as_completed(threads):
                thread.result()
        finally:  # an error or an interrupt also stops the other threads
            stop.set()


def map_in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` by ``run_in_threads``, and return results in items' order."""
    results: list[Any] = [None] * len(items)

    def compute(position: int) -> None:
        results[position] = work(items[position])

    run_in_threads(compute, range(len(items)))
    return results


def on_one_thread(work: Callable[[], Result]) -> Result:
    """Call ``work`` in a new thread, and return its result.

    OpenMP and MKL, if NumPy or torch has loaded them, use no further threads in it; OpenBLAS may.
    The thread does not see the caller's context variables. An error of ``work`` is raised.
    """
    with ThreadPoolExecutor(1, initializer=_compute_in_one_thread) as pool:
        return pool.submit(work).result()


def prefetch(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the result of ``work`` on each item, in order.

    A thread computes the next result while the caller uses one. Items are drawn in the caller's
    thread, one ahead. Errors of ``work`` are raised, and of ``items`` one result early.
    """
    with ThreadPoolExecutor(1) as pool:
        pending = None
        for item in items:
            ready, pending = pending, pool.submit(copy_context().run, work, item)
            if ready is not None:
                yield ready.result()
        if pending is not None:
            yield pending.result()


def _compute_in_one_thread() -> None:
    torch, numpy = map(sys.modules.get, ("torch._C", "numpy._core._multiarray_umath"))
    if torch:
        torch.get_num_threads()  # at its first use, torch sets this thread's numbers
    for library in (ctypes.CDLL(module.__file__) for module in (torch, numpy) if module):
        # These set the numbers of this thread, in all that the library loaded.
        for name in ("omp_set_num_threads", "MKL_Set_Num_Threads_Local"):
            if function := getattr(library, name, None):
                function(1)
