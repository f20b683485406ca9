"""Charts: round numbers on the axes, marks where their values are."""

import math
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval.output import load_template
from eval.report.charts import Chart, ticks

NUMBERS = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-6)


@given(low=NUMBERS, width=st.floats(1e-3, 1e6))
def test_ticks_are_few_round_numbers_in_the_range(low: float, width: float) -> None:
    assume(abs(low) < width * 1e6)  # or floats lie too far apart for a millionth of a step
    found = ticks(low, low + width)
    assert 2 <= len(found) <= 6
    step = found[1] - found[0]
    assert found[0] >= low - step * 1e-6
    assert found[-1] <= low + width + step * 1e-6
    # One more on either side would be outside, or at an end but for rounding.
    assert found[0] - step < low + step * 1e-6
    assert found[-1] + step > low + width - step * 1e-6
    digits = step / 10 ** math.floor(math.log10(step * 1.0000001))
    assert min(abs(digits - factor) for factor in (1, 2, 5)) < 1e-3


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 496, [0, 100, 200, 300, 400]),
        (0.79, 2.1, [1, 1.5, 2]),
    ],
)
def test_ticks(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


def test_heights_are_as_the_scale_says() -> None:
    def heights(**scale: object) -> list[float]:
        chart = Chart(title="", x=(0, 2), y=(0, 100), labels=("", ""), **scale)  # type: ignore[arg-type]
        return [chart.down(0) - chart.down(count) for count in (100, 25)]

    linear, root = heights(), heights(scale=math.sqrt)
    assert linear[1] / linear[0] == pytest.approx(1 / 4)
    assert root[1] / root[0] == pytest.approx(1 / 2)


def test_marks_are_drawn_where_their_values_are() -> None:
    chart = Chart(
        title="<t>",
        x=(0, 2),
        y=(0, 100),
        labels=("x & y", ""),
        bars=[("bar", [100, 25])],
        lines=[("line", [(0, 0), (1, 50)])],
        dots=[(2, 100)],
        uprights=[(1, "<mark>")],
    )
    drawn = load_template("chart.html").module.draw(chart)  # type: ignore[attr-defined]
    assert re.findall(r'height="([\d.]+)"', drawn) == ["198.0", "49.5"]
    assert 'points="56.0,222.0 336.0,123.0"' in drawn
    assert 'cx="616.0" cy="24.0" r="1.6"' in drawn
    assert 'x1="336.0" x2="336.0"' in drawn
    for escaped in ("&lt;t&gt;", "x &amp; y", "&lt;mark&gt;"):
        assert escaped in drawn
