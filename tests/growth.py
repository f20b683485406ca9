"""How fast the time of a function grows with its input."""

import gc
import time
from collections.abc import Callable

TRIES = 5
SLACK = 0.2  # seconds: what takes no time at all may grow


def assert_linear(work: Callable[[int], object], small: int, large: int) -> None:
    """Fail if ``work(large)`` takes over thrice as long as linear growth from ``work(small)``.

    The times are the least of up to 5 tries, without garbage collection. A busy machine makes some
    tries slow, quadratic growth all of them.
    """
    factor = large / small
    assert factor >= 8, "quadratic growth would hardly differ from linear"
    least = {small: float("inf"), large: float("inf")}
    for _ in range(TRIES):
        for size in least:
            least[size] = min(least[size], seconds_of(work, size))
        if least[large] < 3 * factor * least[small] + SLACK:
            return
    raise AssertionError(f"{least} s for these sizes")


def seconds_of(work: Callable[[int], object], size: int) -> float:
    """Return the processor time of ``work(size)``."""
    gc.disable()
    try:
        start = time.process_time()
        work(size)
        return time.process_time() - start
    finally:
        gc.enable()
