"""Pearson's r of angular similarity, by the definitions."""

import math

import numpy as np
import pytest

from eval.metrics.bootstrap import moments, pearson
from eval.tasks.sts import angular_similarity


def test_angles() -> None:
    first = np.array([[1, 0], [1, 0], [1, 0], [0, 0]], dtype=np.float32)
    second = np.array([[1, 0], [0, 1], [-1, 0], [1, 0]], dtype=np.float32)
    assert angular_similarity(first, second).tolist() == [1.0, 0.5, 0.0, 0.5]
    cosine = np.array([[math.cos(0.3), math.sin(0.3)]], dtype=np.float32)
    assert angular_similarity(first[:1], cosine)[0] == pytest.approx(1 - 0.3 / math.pi)


def test_pearson() -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal(40) + 1000
    y = 0.3 * x + random.standard_normal(40)
    sums = moments(x, y).sum(axis=0)[None]
    mean_x, mean_y = sum(x) / 40, sum(y) / 40
    both = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    squares = [sum((a - mean) ** 2 for a in side) for side, mean in ((x, mean_x), (y, mean_y))]
    assert pearson(sums)[0] == pytest.approx(both / math.sqrt(squares[0] * squares[1]))
    # Sums over some of them give the r of these.
    drawn = random.integers(40, size=40)
    part = pearson(moments(x, y)[drawn].sum(axis=0)[None])[0]
    assert part == pytest.approx(np.corrcoef(x[drawn], y[drawn])[0, 1])


def test_what_does_not_vary_has_none() -> None:
    assert pearson(moments(np.ones(3), np.arange(3.0)).sum(axis=0)[None]).tolist() == [0.0]
