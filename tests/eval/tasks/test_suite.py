"""Figures shown row by row, what stands beside them, and their mean."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from encoder import Encoder
from eval.tasks.suite import Figure, Suite, mean_figure, run_suite

pytestmark = pytest.mark.usefixtures("number_encoder")

ONE = replace(mean_figure("one", np.array([1.0, 0, 0, 0])), beside={"a": 0.5, "b": 0.25})
TWO = replace(mean_figure("two", np.array([1.0, 1, 0])), beside={"a": None, "b": 0.75})


def run(*figures: Figure) -> tuple[dict, list[list[str]]]:
    def measure(encoder: Encoder) -> Iterator[Figure]:
        yield from figures

    shown: list[str] = []
    suite = Suite(
        task="task", label="set", fields={"k": 4}, measure=measure, before=["a"], after=["b"]
    )
    record = run_suite(suite, "numbers", shown.append)
    return record, [line.split() for line in shown]


def test_rows_and_their_mean() -> None:
    record, shown = run(ONE, TWO)
    assert record["figures"]["one"]["value"] == 0.25 and record["figures"]["one"]["units"] == 4
    assert record["figures"]["two"]["beside"] == {"a": None, "b": 0.75}
    assert record["mean"]["value"] == pytest.approx((1 / 4 + 2 / 3) / 2)
    assert record["mean"]["beside"] == {"a": None, "b": 0.5}  # one of them has no a
    low, high = record["mean"]["interval"]
    assert low < record["mean"]["value"] < high
    header, one, two, mean, (signature,) = shown
    assert header == ["set", "sentences", "a", "figure", "95%", "interval", "b"]
    assert (one[:4], one[-1]) == (["one", "4", "50.00%", "25.00%"], "25.00%")
    assert (two[:3], two[-1]) == (["two", "3", "66.67%"], "75.00%")
    assert (mean[:2], mean[-1]) == (["mean", "45.83%"], "50.00%")
    assert signature.startswith("task|k:4|encoder:numbers|interval:bootstrap-1000|v:")
    assert record["signature"] == signature


def test_the_mean_of_one_row_is_not_shown() -> None:
    record, shown = run(ONE, replace(TWO, in_mean=False))
    assert "mean" not in record and len(shown) == 4
