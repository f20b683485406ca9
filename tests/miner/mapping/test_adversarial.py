"""The adversarial start: what holds of it whether or not it finds the map.

Whether it does is measured on real words (``benchmarks/new_language.py``): it takes minutes.
"""

from functools import partial

import numpy as np
import pytest

from miner.mapping.orthogonal import comparable_rows, criterion, refine
from miner.mapping.similarity import learn_by_itself

adversarial = pytest.importorskip("miner.mapping.adversarial", exc_type=ModuleNotFoundError)

DIM = 8


@pytest.mark.parametrize("alone", [False, True])
def test_the_map_is_orthogonal_the_best_by_the_criterion_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch, *, alone: bool
) -> None:
    monkeypatch.setattr(adversarial, "UPDATES", 5)
    monkeypatch.setattr(adversarial, "CHECKS", 3)
    generator = np.random.default_rng(1)
    source, target = (
        comparable_rows(generator.random((200, DIM), dtype=np.float32)) for _ in range(2)
    )
    values: list[tuple[int, float]] = []
    judge = partial(learn_by_itself, source, target, seed=1)
    if alone:  # the map as it is
        judge = partial(refine, source, target, rounds=0)
    first, second = (
        adversarial.adversarial_start(
            source,
            target,
            seed=1,
            judge=judge,
            judged=lambda updates, value: values.append((updates, value)),
        )
        for _ in range(2)
    )
    assert [updates for updates, _ in values] == [5, 10, 15] * 2
    assert values[:3] == values[3:]
    assert first.matrix.tobytes() == second.matrix.tobytes()
    assert first.criterion == max(value for _, value in values)
    if alone:
        assert first.criterion == criterion(source @ first.matrix, target)
    assert np.allclose(first.matrix @ first.matrix.T, np.eye(DIM), atol=1e-5)
