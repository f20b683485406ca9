"""Rows that threads change in turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    Rows = slice | NDArray[np.int64]


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
