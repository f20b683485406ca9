"""The start by words' similarities: a map that is known, and what it is made of."""

import numpy as np
import pytest

from miner.mapping.orthogonal import comparable_rows
from miner.mapping.similarity import _csls, similarity_start


def spaces(noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words about topics, a rotation of them in another order, and where each one is there."""
    generator = np.random.default_rng(1)
    topics = generator.standard_normal((12, 10)) * np.linspace(3, 1, 12)[:, None]
    words = topics[generator.integers(12, size=300)] + 0.7 * generator.standard_normal((300, 10))
    rotation = np.linalg.qr(generator.standard_normal((10, 10)))[0]
    order = generator.permutation(300)
    other = (words + noise * generator.standard_normal(words.shape))[order] @ rotation
    sides = (comparable_rows(side.astype(np.float32)) for side in (words, other))
    return (*sides, np.argsort(order))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_map_is_found_with_no_known_pair(seed: int) -> None:
    source, target, right = spaces(noise=0.2)
    found = similarity_start(source, target, seed=seed)
    assert ((source @ found.matrix @ target.T).argmax(axis=1) == right).mean() > 0.7  # chance 1/300
    assert np.allclose(found.matrix @ found.matrix.T, np.eye(10), atol=1e-5)
    again = similarity_start(source, target, seed=seed)
    assert found.matrix.tobytes() == again.matrix.tobytes()


def test_sides_of_few_and_of_different_numbers_of_words() -> None:
    source, target, _ = spaces(noise=0.2)
    for rows, columns in ((12, 300), (300, 11), (5, 4)):
        found = similarity_start(source[:rows], target[:columns], seed=1)
        assert np.isfinite(found.matrix).all()


def test_csls_is_that_of_the_slow_way() -> None:
    cosines = np.random.default_rng(1).random((15, 15), dtype=np.float32)
    expected = [
        [
            2 * cosines[row, column]
            - np.sort(cosines[row])[-10:].mean()
            - np.sort(cosines[:, column])[-10:].mean()
            for column in range(15)
        ]
        for row in range(15)
    ]
    assert np.allclose(_csls(cosines), expected, atol=1e-6)
