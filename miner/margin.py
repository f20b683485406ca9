"""Margin scores, which relate a cosine to both neighbourhoods.

They are equations 2 and 3 of Artetxe & Schwenk 2019, "Margin-based Parallel Corpus Mining", and
``csls`` equation 6 of Conneau et al. 2018, "Word Translation without Parallel Data".
"""

from collections.abc import Callable

import numpy as np

from miner.arrays import FloatArray, Matrix
from miner.choices import check_choice

# Least b of a ratio a/b. With b = 0 the ratio would be infinite, and b < 0 would reverse the order.
MIN_RATIO_DENOMINATOR = 1e-6

# Functions of a and b as above. Since b is (r(x) + r(y)) / 2, CSLS is 2 cos - r(x) - r(y).
MARGINS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "ratio": lambda a, b: a / np.maximum(b, MIN_RATIO_DENOMINATOR),
    "distance": lambda a, b: a - b,
    "absolute": lambda a, b: a,
    "csls": lambda a, b: 2 * (a - b),
}


def margin_scores(
    cosine: Matrix, source_mean: FloatArray, target_mean: FloatArray, *, margin: str = "ratio"
) -> FloatArray:
    """Return the margins of pairs, float64, for arrays that broadcast.

    Let a be the cosine, and b the mean of ``source_mean`` and ``target_mean``. ``ratio`` is a /
    max(b, 1e-6), ``distance`` a - b, ``absolute`` a and ``csls`` 2 (a - b). Raises ValueError if
    ``margin`` is none of these. ``source_mean`` are mean cosines of the k nearest targets of each
    pair's source, and ``target_mean`` of the k nearest sources of its target.
    """
    check_choice("margin", margin, MARGINS)
    return MARGINS[margin](cosine.astype(np.float64), (source_mean + target_mean) / 2)
