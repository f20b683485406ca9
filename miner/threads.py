"""How many threads there are, and work in them, for functions that release the interpreter's lock.

The number of threads that a library computes a product with belongs to the process, which may be
a host that others compute in, too. It is never changed here: only those that OpenMP and MKL keep
for each thread are set, in threads that end with the work. OpenBLAS keeps one for all threads, so
commands, whose process is their own, set it as they start (``miner.commandline``).
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
_counts: list[int] = []  # of ``using_threads``, the last one counts


def thread_count() -> int:
    """Return the number of threads to work in: OMP_NUM_THREADS, or a thread for each core."""
    return _counts[-1] if _counts else given_threads() or usable_cores()


def given_threads() -> int:
    """Return OMP_NUM_THREADS, 0 if it is not a number."""
    return _given(THREADS)


def _given(variable: str) -> int:
    given = os.environ.get(variable, "").partition(",")[0].strip()
    return int(given) if given.isdigit() else 0


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Work in so many threads."""
    _counts.append(count)
    try:
        yield
    finally:
        _counts.pop()


def use_all_threads() -> AbstractContextManager[None]:
    """Work in the threads of all workers, while one alone has something to do."""
    return using_threads(_given(ALL_THREADS) or thread_count())


def usable_cores() -> int:
    """Return how many cores the affinity of this process allows; the machine may have more."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blocks(rows: int, size: int) -> list[slice]:
    """Return slices of at most ``size`` rows that make up all."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def even_blocks(rows: int, size: int) -> list[slice]:
    """Return the fewest slices of at most ``size`` rows that make up all, none much smaller."""
    return blocks(rows, -(-rows // -(-rows // size))) if rows else []


def in_threads(
    work: Callable[[Item], None], items: Iterable[Item], *, count: int | None = None
) -> None:
    """Call ``work`` on each item, in any order; the first error stops all threads and is raised.

    Items are drawn one at a time, so there may be millions. Threads, ``thread_count`` unless their
    ``count`` is given, see the caller's context variables (where a run keeps what it fetches is
    one). Where there are several, ``work`` computes products in one each: side by side they need no
    barriers, which is a fifth faster than one product in all threads. A single thread is the
    caller's, with all it has.
    """
    count = thread_count() if count is None else count
    if count == 1:
        for item in items:
            work(item)
        return
    left = iter(items)
    lock = threading.Lock()
    errors: list[BaseException] = []
    stop = threading.Event()

    def draw() -> None:
        try:
            _compute_in_one_thread()
            while not stop.is_set():
                with lock:
                    item = next(left, stop)
                if item is stop:
                    return
                work(item)  # type: ignore[arg-type]  # not the sentinel
        except BaseException as error:  # raised again below, in the caller's thread
            errors.append(error)
            stop.set()

    own = [copy_context() for _ in range(count)]
    _run([threading.Thread(target=each.run, args=[draw], daemon=True) for each in own], stop)
    if errors:
        raise errors[0]


def map_in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return what ``work`` makes of each item, as ``in_threads`` has it done."""
    found: dict[int, Result] = {}

    def note(place: int) -> None:
        found[place] = work(items[place])

    in_threads(note, range(len(items)))
    return [found[place] for place in range(len(items))]


def _run(threads: list[threading.Thread], stop: threading.Event) -> None:
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:  # an interrupt ends the others' work, too
        stop.set()
        for thread in threads:
            thread.join()


def on_one_thread(work: Callable[[], Result]) -> Result:
    """Return what ``work`` does in a thread of its own, which computes products alone."""
    with ThreadPoolExecutor(1, initializer=_compute_in_one_thread) as pool:
        return pool.submit(work).result()


def prefetch(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Do ``map`` in a thread of its own, one item ahead of the caller."""
    with ThreadPoolExecutor(1) as pool:
        pending = None
        for item in items:
            ready, pending = pending, pool.submit(copy_context().run, work, item)
            if ready is not None:
                yield ready.result()
        if pending is not None:
            yield pending.result()


def _compute_in_one_thread() -> None:
    """Have NumPy and torch, where they are loaded, compute this thread's products in it alone."""
    torch, numpy = map(sys.modules.get, ("torch._C", "numpy._core._multiarray_umath"))
    if torch:
        torch.get_num_threads()  # or it would set this thread's numbers later, when first used
    for library in (ctypes.CDLL(module.__file__) for module in (torch, numpy) if module):
        # In what the library has loaded, these set numbers that are kept for each thread.
        for name in ("omp_set_num_threads", "MKL_Set_Num_Threads_Local"):
            if function := getattr(library, name, None):
                function(1)
