"""Figures of others, beside the same set only."""

import pytest

from eval.tasks.suite import published, publishers


def test_the_mean_of_both_directions() -> None:
    """German has 1000 sentences in the paper."""
    assert published("tatoeba", "deu", size=1000) == {"LASER": pytest.approx(0.0095)}


def test_none_for_another_set_or_size() -> None:
    assert published("tatoeba", "deu", size=999) == {"LASER": None}
    assert published("tatoeba", "xxx", size=1000) == {"LASER": None}
    assert published("senteval", "SST5", size=11855) == {"InferSent": None, "GloVe": 0.447}


def test_publishers() -> None:
    assert publishers("nli") == ("LASER", "X-BiLSTM")
    assert publishers("bucc") == ()
