"""Thresholds that select what they say, in as few digits as that takes."""

import math
from decimal import ROUND_CEILING, Decimal

MAX_DECIMALS = 20


def shortest_between(kept: float, dropped: float) -> float:
    """Return the number of fewest decimals below ``kept`` and not below ``dropped``.

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
