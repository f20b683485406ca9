"""Ranks of translations against sorting, candidate by candidate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.tasks import retrieval
from eval.tasks.retrieval import translation_ranks


def slow_rank(source: np.ndarray, target: np.ndarray, row: int, candidates: list[int]) -> int:
    """The translation's place in a full sort of the candidates by cosine, then row."""
    cosines = {column: float(source[row] @ target[column]) for column in candidates}
    return sorted(candidates, key=lambda column: (-cosines[column], column)).index(row) + 1


@given(rows=st.integers(1, 12), seed=st.integers(0, 999), block=st.sampled_from([1, 5, 1024]))
def test_ranks_among_all(rows: int, seed: int, block: int) -> None:
    random = np.random.default_rng(seed)
    # Whole numbers, so that there are ties, and products are exact.
    source, target = (random.integers(-2, 3, (rows, 3)).astype(np.float32) + 0.5 for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "BLOCK_ROWS", block)
        ranks = translation_ranks(source, target, others=None)
    assert ranks.tolist() == [
        slow_rank(source, target, row, list(range(rows))) for row in range(rows)
    ]


def test_ranks_among_those_drawn() -> None:
    random = np.random.default_rng(8)
    source = random.standard_normal((30, 4)).astype(np.float32)
    target = (source + random.standard_normal((30, 4))).astype(np.float32)
    ranks = translation_ranks(source, target, others=9, seed=2)
    for row, rank in enumerate(ranks.tolist()):
        drawn = np.random.default_rng([2, row]).choice(29, size=9, replace=False)
        others = [int(place) + (place >= row) for place in drawn]
        assert row not in others
        assert rank == slow_rank(source, target, row, [*others, row])


def test_zero_rows_come_last() -> None:
    source = np.array([[1, 0], [0, 0], [0, 1]], dtype=np.float32)
    target = np.array([[-1, 0], [1, 0], [0, 0]], dtype=np.float32)
    # The first is found after the second, but before the third, which has no vector.
    assert translation_ranks(source, target, others=None).tolist() == [2, 3, 3]


@pytest.mark.parametrize("csls", [False, True])
def test_ranks_among_targets_that_translate_none(*, csls: bool) -> None:
    """CSLS by its definition: twice the cosine less the means of both sides' ten nearest."""
    random = np.random.default_rng(4)
    source, target = (unit(random.standard_normal((rows, 4))) for rows in (30, 80))
    cosines = source @ target.T
    scores = cosines
    if csls:
        means = (np.sort(cosines, axis=axis) for axis in (1, 0))
        of_sources, of_targets = next(means)[:, -10:], next(means)[-10:]
        scores = 2 * cosines - of_sources.mean(1)[:, None] - of_targets.mean(0)
    expected = [1 + int((row > row[number]).sum()) for number, row in enumerate(scores)]
    assert translation_ranks(source, target, others=None, csls=csls).tolist() == expected


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
