"""Resampling against a loop that draws the same units, and against what theory says."""

import numpy as np
import pytest

from eval.metrics.bootstrap import RESAMPLES, interval, resample


def mean_samples(values: np.ndarray, *, stream: int = 0) -> np.ndarray:
    units = values.astype(np.float64)[:, None]
    return resample(units, lambda sums: sums[:, 0] / len(units), stream=stream)


def test_a_resample_is_a_sum_over_drawn_units() -> None:
    units = np.random.default_rng(3).standard_normal((7, 2))
    samples = resample(units, lambda sums: sums[:, 0] * 10 + sums[:, 1], stream=5)
    random = np.random.default_rng([RESAMPLES, 5])
    for sample in samples.tolist():
        drawn = [units[place].tolist() for place in random.integers(7, size=7)]
        expected = 10 * sum(unit[0] for unit in drawn) + sum(unit[1] for unit in drawn)
        assert sample == pytest.approx(expected)


def test_the_interval_is_between_the_percentiles() -> None:
    assert interval(np.arange(1001.0)) == (25.0, 975.0)


def test_the_interval_of_a_rate_is_about_two_standard_errors_wide() -> None:
    values = np.arange(2000) % 5 == 0
    low, high = interval(mean_samples(values))
    error = np.sqrt(0.2 * 0.8 / 2000)
    assert low == pytest.approx(0.2 - 1.96 * error, abs=0.3 * error)
    assert high == pytest.approx(0.2 + 1.96 * error, abs=0.3 * error)


def test_a_stream_draws_the_same_units_of_every_set() -> None:
    one, two = np.arange(50.0), np.arange(50.0) ** 2
    together = mean_samples(np.sqrt(two), stream=1)
    assert (mean_samples(one, stream=1) == together).all()
    assert (mean_samples(one, stream=2) != together).any()
