"""Parse a run's memory limit, and measure this process and machine."""

import ctypes
import math
import os
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

from pipelines.options import MiningOptions

UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def parse_size(text: str) -> int:
    """Parse a size such as 6G, 1.5 GiB or 800 into bytes, by powers of 1024.

    Raises:
        ValueError: The text is not a size, or below one byte.
    """
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:iB|B)?", text.strip(), re.IGNORECASE)
    size = float(parts[1]) * (1 << UNITS[parts[2].upper()]) if parts else 0.0
    if not 1 <= size < math.inf:
        raise ValueError(f"--memory {text}: must be a size such as 800M or 6G")
    return int(size)


def show_size(size: float) -> str:
    """Format bytes, rounded up, such as ``1.5 GiB`` or ``150 GiB``."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if (value := size / (1 << bits)) >= 100:
            return f"{math.ceil(value):,} {unit}"
        if value >= 1:
            return f"{math.ceil(value * 10) / 10:.1f} {unit}"
    return f"{math.ceil(size)} bytes"


def physical_bytes() -> int:
    """Return all memory in bytes, at most the container's, 1 GiB if unknown."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 1 << 30
    with suppress(OSError, ValueError):  # no container, or "max"
        physical = min(physical, int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    return physical


def process_count(options: MiningOptions) -> int:
    """Return ``workers``, plus 1 for this process if there are several."""
    return options.workers + 1 if options.workers > 1 else 1


def allowed_bytes(options: MiningOptions) -> int:
    """Return a process's share of ``memory``, or of half the machine's memory."""
    return (options.memory or physical_bytes() // 2) // process_count(options)


def resident_bytes() -> int:
    """Return the bytes that this process uses now, or their peak if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak_bytes()
    return pages * resource.getpagesize()


def peak_bytes() -> int:
    """Return the most bytes of memory that this process has used so far."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        if match := re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE):
            return int(match[1]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def spare_bytes(options: MiningOptions) -> int:
    """Return the further bytes that this process may use, 0 if none."""
    return max(0, allowed_bytes(options) - resident_bytes())


def release_memory() -> None:
    """Return free memory of the process to the operating system."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # only the GNU C library has it
        trim(0)
