"""Signatures name all that a figure hangs on; rows of a table, and their mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from eval.metrics.bootstrap import interval
from eval.output import Rows, Table, encoder_names, signed


@dataclass
class Named:
    """An encoder that has others, or preparations of its own, for some languages."""

    name: str
    others: dict[str, str]

    def for_language(self, language: str) -> Named:
        return Named(self.others.get(language, self.name), {})


def test_what_was_added_for_a_language_is_named() -> None:
    mini = Named("mini@1", {"sv": "mini/more@2", "da": "mini/more@2"})
    assert encoder_names(mini, ["de", "en"]) == "mini@1"
    assert encoder_names(mini, ["de", "sv", "da"]) == "mini@1+mini/more@2"


def test_a_preparation_of_text_is_no_other_encoder() -> None:
    assert encoder_names(Named("laser2@1", {"de": "laser2@1/de"}), ["de", "en"]) == "laser2@1"


def test_rows_and_their_mean() -> None:
    shown: list[str] = []
    rows = Rows(Table("set", ["units", "a", "95%", "b"]), shown.append)
    samples = [np.linspace(0, 0.5, 11), np.linspace(0.5, 1, 11)]
    rows.add("one", 3, {"a": 0.25, "interval": samples[0], "b": 0.5})
    rows.add("two", 4, {"a": 0.75, "interval": samples[1], "b": None})
    mean = rows.mean()
    assert rows.records["one"] == {"a": 0.25, "interval": interval(samples[0]), "b": 0.5}
    assert mean["a"] == 0.5
    assert mean["b"] is None  # one of them has none
    assert mean["interval"] == pytest.approx((0.2625, 0.7375))
    assert [line.split() for line in shown] == [
        ["set", "units", "a", "95%", "b"],
        ["one", "3", "25.00", "1.25-48.75", "50.00"],
        ["two", "4", "75.00", "51.25-98.75"],
        ["mean", "50.00", "26.25-73.75"],
    ]


def test_the_mean_of_one_row_is_not_shown() -> None:
    shown: list[str] = []
    rows = Rows(Table("set", ["units", "a"]), shown.append)
    rows.add("one", 3, {"a": 0.25})
    assert rows.mean() == {"a": 0.25}
    assert len(shown) == 2


def test_a_record_is_signed_and_the_signature_shown() -> None:
    shown: list[str] = []
    record = signed(shown.append, "task", {"figures": 1}, sentences=3)
    assert list(record) == ["task", "figures", "signature"]
    assert shown == [record["signature"]]
    assert record["signature"].startswith("task|sentences:3|v:")
