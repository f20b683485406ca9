"""Find thresholds of few digits that select given pairs."""

import math
from decimal import ROUND_CEILING, Decimal

MAX_DECIMALS = 20


def shortest_between(kept: float, dropped: float) -> float:
    """Find the shortest decimal that separates two scores.

    Args:
        kept: The least score to keep.
        dropped: The next lower score; -inf if there is none.

    Returns:
        A number below ``kept`` and at least ``dropped``.
    """
    assert dropped < kept, f"no threshold keeps {kept} and drops {dropped}"
    for decimals in range(MAX_DECIMALS):
        unit = Decimal(1).scaleb(-decimals)
        below = float(Decimal(kept).quantize(unit, ROUND_CEILING) - unit)
        if dropped <= below < kept:
            return below
    return dropped if math.isfinite(dropped) else math.nextafter(kept, -math.inf)
