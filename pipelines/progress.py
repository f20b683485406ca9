"""What a run tells while it works: bars on a terminal, log lines elsewhere, seconds per stage.

Stages report to the monitor of their process; on a cluster's workers nobody has installed one, and
reports go nowhere.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

logger = logging.getLogger(__name__)

ROOMS = ("encoder", "miner", "pipelines")

LOG_SECONDS = 10.0
STDERR = 2
UNTOLD = os.terminal_size((80, 24))  # for terminals that say 0, at which tqdm shows nothing


class Monitor:
    """Follows the stages of one run; ``seconds`` maps each stage to the time spent in it.

    ``peak_bytes`` is the largest resident set of a worker, where there are any.
    """

    def __init__(self, *, bars: bool) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes = 0
        self._bars = bars

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, part: str) -> Iterator[Meter]:
        """Follow one piece of a stage's work, ``total`` units long (None if unknown)."""
        start = time.perf_counter()
        label = f"{name} {part}" if part else name
        meter = _Bar(label, total, unit) if self._bars else _Log(label, total, unit)
        try:
            yield meter
        finally:
            meter.close()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


class Meter:
    """Counts units of work that are done; this one tells nobody."""

    def begin(self, done: int) -> None:
        """The work begins only now, and ``done`` units of it were there before."""

    def advance(self, count: int) -> None:
        """Note that ``count`` more units are done."""

    def close(self) -> None:
        """The piece of work is over."""


class _Bar(Meter):
    def __init__(self, name: str, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        terminal = os.get_terminal_size(STDERR)
        self._bar = tqdm(
            desc=f"{name:<10}",
            total=total,
            unit=f" {unit}",
            unit_scale=True,
            ncols=terminal.columns or UNTOLD.columns,
            nrows=terminal.lines or UNTOLD.lines,
        )

    def begin(self, done: int) -> None:
        self._bar.reset()
        self._bar.initial = self._bar.n = self._bar.last_print_n = done
        self._bar.refresh()

    def advance(self, count: int) -> None:
        self._bar.update(count)

    def close(self) -> None:
        self._bar.close()


class _Log(Meter):
    """A log line every ten seconds and one at the end."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self.begin(0)

    def begin(self, done: int) -> None:
        self._before = self._done = done
        self._start = time.monotonic()
        self._next = self._start + LOG_SECONDS

    def advance(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOG_SECONDS
            rate = (self._done - self._before) / (now - self._start)
            left = f", {(self._total - self._done) / rate:.0f} s left" if self._total else ""
            share = f" of {self._total:,}" if self._total else ""
            logger.info(
                "%s: %s%s %s, %.3g/s%s",
                *(self._name, f"{self._done:,}", share, self._unit, rate, left),
            )

    def close(self) -> None:
        seconds = time.monotonic() - self._start
        done = f"{self._done - self._before:,}"
        logger.info("%s: %s %s in %.1f s", self._name, done, self._unit, seconds)


def log_to_stderr(level: int) -> None:
    """Write log lines to stderr, our own from ``level`` on."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    for room in ROOMS:
        logging.getLogger(room).setLevel(level)


_monitor: Monitor | None = None


def install(monitor: Monitor | None) -> None:
    """Make ``monitor`` the one that this process's stages report to."""
    global _monitor
    _monitor = monitor


def note_workers(seconds: Mapping[str, float], peak_bytes: int) -> None:
    """Take what other processes measured: the time of each stage in all, the largest peak."""
    if _monitor is not None:
        _monitor.seconds.update(seconds)
        _monitor.peak_bytes = peak_bytes


@contextmanager
def stage(name: str, total: int | None, unit: str, part: str = "") -> Iterator[Meter]:
    """Report one piece of a stage's work to the process's monitor, if there is one.

    ``part`` says which piece it is, where there are several.
    """
    if _monitor is None:
        yield Meter()
        return
    with _monitor.stage(name, total, unit, part) as meter:
        yield meter
