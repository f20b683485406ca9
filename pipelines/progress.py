"""Show a run's progress as bars or log lines, and time its stages."""

import copy
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from miner.wording import counted

logger = logging.getLogger(__name__)

PACKAGES = ("encoder", "miner", "pipelines")
LOG_SECONDS = 10.0  # between two log lines


class Meter:
    """A meter of work that shows nothing, and the base of other meters."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        """Measure ``name``, of ``total`` (None if unknown) units such as "lines"."""

    def begin(self, done: int) -> None:
        """Restart the time and the count, after ``done`` units of an earlier run."""

    def advance(self, count: int) -> None:
        """Count ``count`` more finished units."""

    def close(self) -> None:
        """End the measurement."""


class Bar(Meter):
    """A progress bar on stderr. OSError says that stderr is not a terminal."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        columns, lines = os.get_terminal_size(2)
        size = {"ncols": columns or 80, "nrows": lines or 24}  # at 0, tqdm shows nothing
        self._bar = tqdm(desc=f"{name:<10}", total=total, unit=f" {unit}", unit_scale=True, **size)

    def begin(self, done: int) -> None:
        """Restart the bar, after ``done`` units of an earlier run."""
        self._bar.reset()
        self._bar.initial = self._bar.n = self._bar.last_print_n = done
        self._bar.refresh()

    def advance(self, count: int) -> None:
        """Advance the bar by ``count`` units."""
        self._bar.update(count)

    def close(self) -> None:
        """Close the bar, which stays on the terminal."""
        self._bar.close()


class LogLines(Meter):
    """A meter that logs a line at most every 10 s, and one at the end."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self.begin(0)

    def begin(self, done: int) -> None:
        """Restart the time and the count, after ``done`` units of an earlier run."""
        self._before = self._done = done
        self._start = time.monotonic()
        self._next = self._start + LOG_SECONDS

    def advance(self, count: int) -> None:
        """Count ``count`` more units, and log a line at most every 10 s."""
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOG_SECONDS
            rate = (self._done - self._before) / (now - self._start)
            left = (self._total - self._done) / rate if self._total and rate else None
            remaining = "" if left is None else f", {left:.0f} s left"
            progress = f"{self._done:,} of " if self._total else ""
            units = counted(self._total or self._done, self._unit)
            logger.info("%s: %s%s, %.3g/s%s", self._name, progress, units, rate, remaining)

    def close(self) -> None:
        """Log the seconds and units since ``begin``, unless no unit was counted."""
        if done := self._done - self._before:
            seconds = time.monotonic() - self._start
            logger.info("%s: %s in %.1f s", self._name, counted(done, self._unit), seconds)


class Monitor:
    """The progress of one run, from the moment when the monitor is made.

    ``meter`` makes the meters of stages from name, total (None if unknown) and unit. ``seconds``
    has the sums of ``note`` by stage, of all processes, and the stage ``start`` of ``started``.
    ``peak_bytes`` is the largest memory of a worker process, set by the run, 0 without workers.
    """

    def __init__(self, meter: Callable[[str, int | None, str], Meter] = LogLines) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes = 0
        self._part = ""
        self._meter = meter
        self._start = time.perf_counter()

    def for_part(self, part: str) -> "Monitor":
        """Return a copy that shares ``seconds``, and whose meters name the part."""
        monitor = copy.copy(self)
        monitor._part = part
        return monitor

    def started(self) -> None:
        """Record the seconds since the monitor was made as the stage ``start``."""
        self.seconds["start"] = time.perf_counter() - self._start

    def note(self, stage: str, seconds: float) -> None:
        """Add seconds to a stage, named by the part of ``stage`` before "_"."""
        name = stage.partition("_")[0]
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, part: str = "") -> Iterator[Meter]:
        """Yield a meter of ``total`` units (None if unknown) for a ``with`` block.

        ``part`` is added to its name. The meter is closed after the block. No seconds are noted.
        """
        meter = self._meter(" ".join(filter(None, [name, self._part, part])), total, unit)
        try:
            yield meter
        finally:
            meter.close()


def log_to_stderr(level: int) -> None:
    """Log ``PACKAGES`` from ``level`` on, to stderr or existing handlers."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    for package in PACKAGES:
        logging.getLogger(package).setLevel(level)
