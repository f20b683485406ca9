"""Work on many items in threads, for functions that release the interpreter's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = slice | NDArray[np.int64]

Item = TypeVar("Item")


def thread_count() -> int:
    """As many as torch would use: OMP_NUM_THREADS, or a thread for each core."""
    import torch

    return torch.get_num_threads()


def blocks(rows: int, size: int) -> list[slice]:
    """Slices of at most ``size`` rows that make up all."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def in_threads(work: Callable[[Item], None], items: Iterable[Item]) -> None:
    """Call ``work`` on each item; the first error stops all threads and is raised.

    Items are drawn one at a time, so there may be millions. Inside ``work`` torch uses one thread:
    products that run side by side need no barriers, which is a fifth faster than one product in all
    threads. Threads that first use torch meanwhile get one, too.
    """
    import torch

    count = torch.get_num_threads()
    left = iter(items)
    lock = threading.Lock()
    errors: list[BaseException] = []
    stop = threading.Event()

    def draw() -> None:
        torch.set_num_threads(1)  # of this thread, and of those that first use torch from now on
        try:
            while not stop.is_set():
                with lock:
                    item = next(left, stop)
                if item is stop:
                    return
                work(item)  # type: ignore[arg-type]  # not the sentinel
        except BaseException as error:  # raised again below, in the caller's thread
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=draw, daemon=True) for _ in range(thread_count())]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:  # an interrupt ends the others' work, too
        stop.set()
        for thread in threads:
            thread.join()
        torch.set_num_threads(count)
    if errors:
        raise errors[0]


class Claims:
    """Lets one thread at a time change a row of tables that threads share.

    All rows are claimed at once or none, so threads cannot wait for each other in a circle.
    """

    def __init__(self, *tables: int) -> None:
        """Of tables with so many rows."""
        self._claimed = [np.zeros(rows, dtype=np.bool_) for rows in tables]
        self._freed = threading.Condition()

    @contextmanager
    def on(self, *rows: Rows) -> Iterator[None]:
        """Hold some rows of each table, by slice or by position; waits until none is held."""
        parts = list(zip(self._claimed, rows, strict=True))
        with self._freed:
            self._freed.wait_for(lambda: not any(table[part].any() for table, part in parts))
            self._mark(parts, claimed=True)
        try:
            yield
        finally:
            with self._freed:
                self._mark(parts, claimed=False)
                self._freed.notify_all()

    def _mark(self, parts: list[tuple[NDArray[np.bool_], Rows]], *, claimed: bool) -> None:
        for table, part in parts:
            table[part] = claimed
