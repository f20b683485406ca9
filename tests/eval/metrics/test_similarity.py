"""Similarity search against a loop over all cosines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.metrics.similarity import best_by_margin, find_nearest, search_errors


def slow_errors(query: np.ndarray, base: np.ndarray) -> int:
    wrong = 0
    for row, vector in enumerate(query):
        cosines = [
            float(vector @ other) / (np.linalg.norm(vector) * np.linalg.norm(other))
            for other in base
        ]
        wrong += cosines.index(max(cosines)) != row
    return wrong


@given(rows=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
def test_errors_are_those_of_the_loop(rows: int, seed: int) -> None:
    source, target = noisy_sides(rows, rows, seed)
    there, back = search_errors(source, target)
    assert there.sum() == slow_errors(source, target)
    assert back.sum() == slow_errors(target, source)
    assert len(there) == len(back) == rows


def noisy_sides(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row i of both is alike, of any length; the longer side has rows of its own besides."""
    generator = np.random.default_rng(seed)
    both = generator.standard_normal((max(rows, columns), 4))
    noise, lengths = (
        generator.standard_normal(both.shape),
        generator.uniform(0.1, 9, (len(both), 1)),
    )
    return both[:rows].astype(np.float32), ((both + noise) * lengths)[:columns].astype(np.float32)


def slow_best(source: np.ndarray, target: np.ndarray, k: int, margin: str) -> list[int]:
    """The definition: every cosine, every mean of the k largest, every margin of the k nearest."""
    a, b = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (source, target))
    cosines = a.astype(np.float64) @ b.T.astype(np.float64)
    best = []
    for row in cosines:
        nearest = sorted(range(len(row)), key=lambda column: (-row[column], column))[:k]
        own_mean = sum(row[column] for column in nearest) / len(nearest)
        scores = {}
        for column in nearest:
            largest = sorted(cosines[:, column], reverse=True)[:k]
            mean = (own_mean + sum(largest) / len(largest)) / 2
            cosine = row[column]
            ratio = cosine / max(mean, 1e-6)
            scores[column] = {"absolute": cosine, "distance": cosine - mean, "ratio": ratio}[margin]
        best.append(max(nearest, key=lambda column: scores[column]))
    return best


@pytest.mark.parametrize("margin", ["absolute", "distance", "ratio"])
@given(
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    seed=st.integers(0, 999),
    k=st.integers(1, 5),
)
def test_the_best_by_margin(rows: int, columns: int, seed: int, k: int, margin: str) -> None:
    source, target = noisy_sides(rows, columns, seed)
    forward, backward = find_nearest(source, target, k=k)
    found = best_by_margin(forward, backward, margin=margin)
    assert found.tolist() == slow_best(source, target, k, margin)
    found = best_by_margin(backward, forward, margin=margin)
    assert found.tolist() == slow_best(target, source, k, margin)


def test_zero_rows_are_nobodys_neighbours() -> None:
    source = np.array([[0, 0], [1, 0], [0, 1]], dtype=np.float32)
    target = np.array([[0, 1], [0, 0], [1, 0]], dtype=np.float32)
    forward, backward = find_nearest(source, target)
    assert best_by_margin(forward, backward, margin="ratio").tolist() == [-1, 2, 0]
    assert best_by_margin(backward, forward, margin="ratio").tolist() == [2, -1, 1]


def test_rates() -> None:
    source = np.eye(4, dtype=np.float32)
    target = source[[0, 1, 2, 2]]  # the last has the third's vector: wrong both ways ...
    there, back = search_errors(source, target)
    assert (there.mean(), back.mean()) == (0.25, 0.25)
    target = np.array([[1, 0], [1, 0.1]], dtype=np.float32)
    source = np.array([[1, 0], [1, 0.02]], dtype=np.float32)
    there, back = search_errors(source, target)  # ... and here one way only.
    assert (there.mean(), back.mean()) == (0.5, 0.0)


def test_a_zero_row_is_an_error_even_where_ties_would_make_it_right() -> None:
    source = np.zeros((2, 3), dtype=np.float32)
    there, back = search_errors(source, np.eye(3, dtype=np.float32)[:2])
    assert there.tolist() == [True, True]
    assert back.tolist() == [True, True]


@pytest.mark.parametrize(
    ("source", "target"), [((0, 3), (0, 3)), ((2, 3), (3, 3)), ((2, 3), (2, 4))]
)
def test_shapes(source: tuple[int, int], target: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="pass arrays of one shape with 1 or more rows"):
        search_errors(np.ones(source, np.float32), np.ones(target, np.float32))
