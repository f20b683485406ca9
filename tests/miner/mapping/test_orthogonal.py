"""Orthogonal maps: known ones are found again, and against a plain oracle of CSLS."""

import numpy as np
import pytest

from miner.mapping.orthogonal import (
    comparable_rows,
    criterion,
    identical_words,
    mutual_neighbours,
    procrustes,
    refine,
)

DIM = 12


def rotation(generator: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(generator.standard_normal((DIM, DIM)))[0].astype(np.float32)


def words(generator: np.random.Generator, count: int) -> np.ndarray:
    return comparable_rows(generator.standard_normal((count, DIM)).astype(np.float32))


def csls(source: np.ndarray, target: np.ndarray, k: int = 10) -> np.ndarray:
    """Equation 2 of Conneau et al. 2018, entry by entry."""
    cosines = source.astype(np.float64) @ target.T
    of_source = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    of_target = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    return 2 * cosines - of_source[:, None] - of_target


def test_rows_have_unit_length_about_the_origin() -> None:
    rows = comparable_rows(np.random.default_rng(1).random((50, 4)).astype(np.float32) + 5)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert np.abs(rows.mean(axis=0)).max() < 0.1


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0]])
def test_rows_without_direction_are_refused(row: list[float]) -> None:
    with pytest.raises(ValueError, match=r"of word [12] is zero, equal to the mean or not finite"):
        comparable_rows(np.array([[1, 2], row, [2, 1]], np.float32))


def test_procrustes_finds_a_rotation_again() -> None:
    generator = np.random.default_rng(2)
    source, turn = words(generator, 30), rotation(generator)
    noisy = source @ turn + 0.05 * generator.standard_normal((30, DIM))
    found = procrustes(source, noisy.astype(np.float32))
    assert np.allclose(found @ found.T, np.eye(DIM), atol=1e-5)
    assert np.abs(found - turn).max() < 0.1


def test_identical_words_are_paired() -> None:
    sources, targets = identical_words(["a", "b", "c"], ["c", "x", "a"])
    assert (sources.tolist(), targets.tolist()) == ([0, 2], [2, 0])
    assert [len(each) for each in identical_words(["a"], ["b"])] == [0, 0]


def test_mutual_neighbours_and_the_criterion_are_those_of_the_oracle() -> None:
    generator = np.random.default_rng(3)
    source, target = words(generator, 60), words(generator, 70)
    scores = csls(source, target)
    expected = {
        (row, column)
        for row, column in enumerate(scores.argmax(axis=1))
        if scores[:, column].argmax() == row
    }
    assert set(
        zip(*(each.tolist() for each in mutual_neighbours(source, target)), strict=True)
    ) == (expected)
    cosines = (source @ target.T)[np.arange(60), scores.argmax(axis=1)]
    assert criterion(source, target) == pytest.approx(cosines.mean(), abs=1e-4)


def test_refinement_finds_the_map_that_rough_pairs_hint_at() -> None:
    """Of more pairs than dimensions: of fewer, the map is as the machine's own algebra has it."""
    generator = np.random.default_rng(4)
    source, turn = words(generator, 800), rotation(generator)
    noise = 0.07 * generator.standard_normal((800, DIM))
    target = comparable_rows((source @ turn + noise).astype(np.float32))
    few = generator.choice(800, 60, replace=False)
    rough = target[few] + 0.6 * generator.standard_normal((60, DIM)).astype(np.float32)
    start = procrustes(source[few], rough)
    rounds: list[float] = []
    found = refine(
        source, target, start, rounds=5, judged=lambda number, value: rounds.append(value)
    )
    right = [
        (csls(source @ matrix, target).argmax(axis=1) == np.arange(800)).mean()
        for matrix in (start, found.matrix)
    ]
    assert right[0] < 0.6 < 0.99 < right[1]
    assert found.criterion == max(rounds)
    assert len(rounds) == 6


def test_no_refinement_judges_the_map_as_it_is() -> None:
    generator = np.random.default_rng(5)
    source, turn = words(generator, 40), rotation(generator)
    found = refine(source, words(generator, 40), turn, rounds=0)
    assert (found.matrix == turn).all()
