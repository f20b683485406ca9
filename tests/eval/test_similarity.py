"""Similarity search against a loop over all cosines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import similarity
from eval.similarity import search_errors


def slow_errors(query: np.ndarray, base: np.ndarray) -> int:
    wrong = 0
    for row, vector in enumerate(query):
        cosines = [
            float(vector @ other) / (np.linalg.norm(vector) * np.linalg.norm(other))
            for other in base
        ]
        wrong += cosines.index(max(cosines)) != row
    return wrong


@given(rows=st.integers(1, 30), seed=st.integers(0, 2**32 - 1), block=st.sampled_from([1, 7, 4096]))
def test_errors_are_those_of_the_loop(rows: int, seed: int, block: int) -> None:
    generator = np.random.default_rng(seed)
    source = generator.standard_normal((rows, 4)).astype(np.float32)
    noise = generator.standard_normal((rows, 4))
    lengths = generator.uniform(0.1, 9.0, (rows, 1))
    target = ((source + noise) * lengths).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "BLOCK_ROWS", block)
        errors = search_errors(source, target)
    assert errors.forward == slow_errors(source, target)
    assert errors.backward == slow_errors(target, source)
    assert errors.sentences == rows


def test_rates() -> None:
    source = np.eye(4, dtype=np.float32)
    target = source[[0, 1, 2, 2]]  # the last has the third's vector: wrong both ways ...
    errors = search_errors(source, target)
    assert (errors.forward, errors.backward) == (1, 1)
    target = np.array([[1, 0], [1, 0.1]], dtype=np.float32)
    source = np.array([[1, 0], [1, 0.02]], dtype=np.float32)
    errors = search_errors(source, target)  # ... and here one way only.
    assert (errors.forward_rate, errors.backward_rate, errors.rate) == (0.5, 0.0, 0.25)


def test_a_zero_row_is_an_error_even_where_ties_would_make_it_right() -> None:
    source = np.zeros((2, 3), dtype=np.float32)
    errors = search_errors(source, np.eye(3, dtype=np.float32)[:2])
    assert (errors.forward, errors.backward) == (2, 1)


@pytest.mark.parametrize(
    ("source", "target"), [((0, 3), (0, 3)), ((2, 3), (3, 3)), ((2, 3), (2, 4))]
)
def test_shapes(source: tuple[int, int], target: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="similarity search needs two arrays of one shape"):
        search_errors(np.ones(source, np.float32), np.ones(target, np.float32))
