"""Thresholds in few digits that keep what they say."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miner.thresholds import shortest_between

SCORES = (
    st.floats(-1e6, 1e6)
    | st.floats(0.99, 1.01)
    | st.integers(-(1 << 20), 1 << 20).map(lambda leaves: leaves / (1 << 16))
)


@given(st.lists(SCORES, min_size=1, unique=True), st.data())
@example([1e-300, 0.0], None)
def test_what_is_printed_keeps_the_pairs(scores: list[float], data: st.DataObject | None) -> None:
    best_first = np.sort(scores)[::-1]
    kept = data.draw(st.integers(1, len(scores))) if data else 1
    following = best_first[kept] if kept < len(scores) else -math.inf
    threshold = shortest_between(float(best_first[kept - 1]), float(following))
    assert (best_first > float(repr(threshold))).sum() == kept


@pytest.mark.parametrize(
    ("kept", "dropped", "expected"),
    [
        (5.52439, 5.49, 5.5),
        (5.52439, 5.52431, 5.52435),
        (5.5, 5.4, 5.4),
        (1.0, -math.inf, 0.0),
        (-3.25, -9.0, -4.0),
        (2.0, 1.99999, 1.99999),
        (1e18, 0.5, 999999999999999872.0),
        (1e300, -math.inf, math.nextafter(1e300, 0)),
        (1.07, 1.0700000000000001 - 2**-52 * 4, 1.07 - 2**-52),
    ],
)
def test_digits(kept: float, dropped: float, expected: float) -> None:
    found = shortest_between(kept, dropped)
    assert dropped <= found < kept
    assert len(repr(found)) <= len(repr(expected))
