"""The progress of a run: bars on a terminal, log lines elsewhere, seconds of each stage."""

import copy
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

PACKAGES = ("encoder", "miner", "pipelines")
LOG_SECONDS = 10.0


def counted(count: int, unit: str) -> str:
    """Return a count with its ``unit``, given in the plural, such as 1 sentence or 2 sentences."""
    if count == 1:
        unit = f"{unit[:-3]}y" if unit.endswith("ies") else unit.removesuffix("s")
    return f"{count:,} {unit}"


class Meter:
    """Counts units of work that are done; this one shows nothing."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        """Begin to count ``total`` units (None if unknown)."""

    def begin(self, done: int) -> None:
        """Begin the work only now; ``done`` units of it were there before."""

    def advance(self, count: int) -> None:
        """Note that ``count`` more units are done."""

    def close(self) -> None:
        """End the piece of work."""


class Bar(Meter):
    """A bar on the terminal that stderr is."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        columns, lines = os.get_terminal_size(2)
        size = {"ncols": columns or 80, "nrows": lines or 24}  # at 0, tqdm shows nothing
        self._bar = tqdm(desc=f"{name:<10}", total=total, unit=f" {unit}", unit_scale=True, **size)

    def begin(self, done: int) -> None:
        """Show what was there before as done."""
        self._bar.reset()
        self._bar.initial = self._bar.n = self._bar.last_print_n = done
        self._bar.refresh()

    def advance(self, count: int) -> None:
        """Move on."""
        self._bar.update(count)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


class LogLines(Meter):
    """A log line every ten seconds and one at the end."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self.begin(0)

    def begin(self, done: int) -> None:
        """Count time and work from here on."""
        self._before = self._done = done
        self._start = time.monotonic()
        self._next = self._start + LOG_SECONDS

    def advance(self, count: int) -> None:
        """Log a line if it is time for one."""
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOG_SECONDS
            rate = (self._done - self._before) / (now - self._start)
            left = f", {(self._total - self._done) / rate:.0f} s left" if self._total else ""
            of = f"{self._done:,} of " if self._total else ""
            units = counted(self._total or self._done, self._unit)
            logger.info("%s: %s%s, %.3g/s%s", self._name, of, units, rate, left)

    def close(self) -> None:
        """Log the last line."""
        done = counted(self._done - self._before, self._unit)
        logger.info("%s: %s in %.1f s", self._name, done, time.monotonic() - self._start)


class Monitor:
    """Follows the stages of one run, from the time when it is made.

    ``seconds`` maps each stage to the time spent in it, ``start`` to what came before all of them;
    ``peak_bytes`` is the largest resident set of a worker, where there are any.
    """

    def __init__(self, meter: Callable[[str, int | None, str], Meter] = LogLines) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes = 0
        self._part = ""
        self._meter = meter
        self._begun = time.perf_counter()

    def for_part(self, part: str) -> "Monitor":
        """Return a monitor for a part of the run, which it names; its seconds count here, too."""
        monitor = copy.copy(self)
        monitor._part = part
        return monitor

    def started(self) -> None:
        """Note that the first stage begins."""
        self.seconds["start"] = time.perf_counter() - self._begun

    def note(self, stage: str, seconds: float) -> None:
        """Add to the time spent in a stage: that of ``read_side`` counts as ``read``."""
        name = stage.partition("_")[0]
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, part: str = "") -> Iterator[Meter]:
        """Follow a piece of a stage's work, which ``part`` names: ``total`` units, if known."""
        meter = self._meter(" ".join(filter(None, [name, self._part, part])), total, unit)
        try:
            yield meter
        finally:
            meter.close()


def log_to_stderr(level: int) -> None:
    """Write log lines to stderr, our own from ``level`` on."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    for package in PACKAGES:
        logging.getLogger(package).setLevel(level)
