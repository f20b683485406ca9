"""Find thresholds of few digits that select given pairs."""

import math
from decimal import ROUND_CEILING, Decimal

MAX_DECIMALS = 20


def shortest_between(kept: float, dropped: float) -> float:
    """Return the shortest number below ``kept`` that is at least ``dropped``.

    Scores above it are those from ``kept`` on. ``dropped`` is the next lesser score, -inf if there
    is none.
    """
    assert dropped < kept, f"no threshold keeps {kept} and drops {dropped}"
    for decimals in range(MAX_DECIMALS):
        unit = Decimal(1).scaleb(-decimals)
        below = float(Decimal(kept).quantize(unit, ROUND_CEILING) - unit)
        if dropped <= below < kept:
            return below
    return dropped if math.isfinite(dropped) else math.nextafter(kept, -math.inf)
