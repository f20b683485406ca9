"""Count threads, and run functions in threads.

The number of threads that a library computes a product with belongs to the process, which may
compute other things. Only the numbers that OpenMP and MKL keep per thread are set here, in threads
that end with the work. OpenBLAS has one number for all threads, so commands set it as they start
(``miner.commandline``).
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = "OMP_NUM_THREADS"
# In a worker process: the number of threads of all workers of its machine together.
ALL_THREADS = "ADIT_ALL_THREADS"
_counts: list[int] = []  # of nested ``using_threads``; the last one counts


def thread_count() -> int:
    """Return the number of threads to use, by OMP_NUM_THREADS or cores."""
    return _counts[-1] if _counts else given_threads() or usable_cores()


def given_threads() -> int:
    """Return OMP_NUM_THREADS, or 0 if it is not a number."""
    return _given(THREADS)


def _given(variable: str) -> int:
    value = os.environ.get(variable, "").partition(",")[0].strip()
    return int(value) if value.isdigit() else 0


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Limit work in the block to ``count`` threads."""
    _counts.append(count)
    try:
        yield
    finally:
        _counts.pop()


def use_all_threads() -> AbstractContextManager[None]:
    """Use the threads of all workers, while only one of them works."""
    return using_threads(_given(ALL_THREADS) or thread_count())


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blocks(rows: int, size: int) -> list[slice]:
    """Split ``rows`` rows into slices of at most ``size``."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def even_blocks(rows: int, size: int) -> list[slice]:
    """Split rows into the fewest slices of at most ``size``, of similar sizes."""
    return blocks(rows, -(-rows // -(-rows // size))) if rows else []


def run_in_threads(
    work: Callable[[Item], None], items: Iterable[Item], *, count: int | None = None
) -> None:
    """Call ``work`` on each item, in any order, in threads.

    Items are drawn one at a time, so there may be millions. There are ``thread_count`` threads,
    unless ``count`` is given. They see the caller's context variables, such as a run's cache
    folder. With several threads, ``work`` computes each product in one: products without barriers
    are a fifth faster than one product in all threads. A single thread is the caller's own.

    Raises:
        BaseException: The first error of ``work``; it stops all threads.
    """
    count = thread_count() if count is None else count
    if count == 1:
        for item in items:
            work(item)
        return
    remaining = iter(items)
    lock = threading.Lock()
    errors: list[BaseException] = []
    stop = threading.Event()

    def draw() -> None:
        try:
            _compute_in_one_thread()
            while not stop.is_set():
                with lock:
                    item = next(remaining, stop)
                if item is stop:
                    return
                work(item)  # type: ignore[arg-type]  # not the sentinel
        except BaseException as error:  # raised again below
            errors.append(error)
            stop.set()

    contexts = [copy_context() for _ in range(count)]
    _run(
        [threading.Thread(target=context.run, args=[draw], daemon=True) for context in contexts],
        stop,
    )
    if errors:
        raise errors[0]


def map_in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Map items in threads, like ``run_in_threads``, and keep their order."""
    results: dict[int, Result] = {}

    def compute(position: int) -> None:
        results[position] = work(items[position])

    run_in_threads(compute, range(len(items)))
    return [results[position] for position in range(len(items))]


def _run(threads: list[threading.Thread], stop: threading.Event) -> None:
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:  # an interrupt also stops the other threads
        stop.set()
        for thread in threads:
            thread.join()


def on_one_thread(work: Callable[[], Result]) -> Result:
    """Call ``work`` in a new thread, which computes products alone."""
    with ThreadPoolExecutor(1, initializer=_compute_in_one_thread) as pool:
        return pool.submit(work).result()


def prefetch(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Map items in another thread, one item ahead of the caller."""
    with ThreadPoolExecutor(1) as pool:
        pending = None
        for item in items:
            ready, pending = pending, pool.submit(copy_context().run, work, item)
            if ready is not None:
                yield ready.result()
        if pending is not None:
            yield pending.result()


def _compute_in_one_thread() -> None:
    """Have NumPy and torch compute this thread's products in it alone."""
    torch, numpy = map(sys.modules.get, ("torch._C", "numpy._core._multiarray_umath"))
    if torch:
        torch.get_num_threads()  # at its first use, torch sets this thread's numbers
    for library in (ctypes.CDLL(module.__file__) for module in (torch, numpy) if module):
        # These set the numbers of this thread, in all that the library loaded.
        for name in ("omp_set_num_threads", "MKL_Set_Num_Threads_Local"):
            if function := getattr(library, name, None):
                function(1)
