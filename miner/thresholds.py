"""Find thresholds of few digits that select given pairs."""

import math
from decimal import ROUND_CEILING, Context, Decimal

MAX_DECIMALS = 20
EXACT = Context(prec=400)  # digits of any float, with MAX_DECIMALS


def shortest_between(kept: float, dropped: float) -> float:
    """Return the threshold of fewest decimals that separates two scores.

    ``kept`` is the least score to keep, and ``dropped`` a lower score, or -inf. A score is kept if
    it is above the threshold, which is at least ``dropped`` and below ``kept``. If more than 19
    decimals are needed, it is ``dropped``, or, for -inf, the float below ``kept``.
    """
    assert dropped < kept, f"no threshold keeps {kept} and drops {dropped}"
    for decimals in range(MAX_DECIMALS):
        unit = Decimal(1).scaleb(-decimals)
        below = float(EXACT.subtract(Decimal(kept).quantize(unit, ROUND_CEILING, EXACT), unit))
        if dropped <= below < kept:
            return below
    return dropped if math.isfinite(dropped) else math.nextafter(kept, -math.inf)
