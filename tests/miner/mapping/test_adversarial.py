"""The adversarial start: what holds of it whether or not it finds the map.

Whether it does is measured on real words (``benchmarks/new_language.py``): it takes minutes.
"""

import numpy as np
import pytest

from miner.mapping.orthogonal import comparable_rows, criterion

torch = pytest.importorskip("torch")
from miner.mapping.adversarial import AdversarialOptions, adversarial_start  # noqa: E402

DIM = 8


def test_the_map_is_nearly_orthogonal_the_best_by_the_criterion_and_the_same_each_time() -> None:
    generator = np.random.default_rng(1)
    source, target = (
        comparable_rows(generator.random((200, DIM), dtype=np.float32)) for _ in range(2)
    )
    values: list[float] = []
    options = AdversarialOptions(epochs=3, steps=5)
    first, second = (
        adversarial_start(source, target, options, judged=lambda epoch, value: values.append(value))
        for _ in range(2)
    )
    assert values[:3] == values[3:]
    assert first.matrix.tobytes() == second.matrix.tobytes()
    assert first.criterion == max(values)
    assert first.criterion == pytest.approx(criterion(source @ first.matrix, target), abs=1e-4)
    assert np.allclose(first.matrix @ first.matrix.T, np.eye(DIM), atol=0.2)
    assert not np.allclose(first.matrix, np.eye(DIM), atol=1e-3)
