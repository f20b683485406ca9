"""A map between two spaces with no known pair: a discriminator cannot tell mapped words apart.

Conneau et al. 2018, section 2.1, with the constants of section 3.1, but a discriminator of 512
units a layer in place of 2,048 and rarer updates of the map's rate, for two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from miner.mapping.orthogonal import Mapping, criterion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

FREQUENT = 50_000  # words that are drawn: section 3.2
SMOOTHING = 0.2
ORTHOGONAL = 0.01  # beta of equation 7
DECAY = 0.95
HIDDEN = 512
DISCRIMINATOR_STEPS = 5
JUDGED = 5_000  # words that decide after an epoch, among as many


@dataclass(frozen=True, kw_only=True)
class AdversarialOptions:
    """How long the map is trained: ``steps`` updates of it in each of ``epochs``."""

    epochs: int = 5
    steps: int = 5_000
    batch: int = 32
    learning_rate: float = 0.1
    seed: int = 1


def adversarial_start(
    source: Matrix,
    target: Matrix,
    options: AdversarialOptions,
    *,
    judged: Callable[[int, float], None] = lambda epoch, value: None,
) -> Mapping:
    """Return the map of the best epoch by the criterion.

    Args:
        source: unit rows, float32 (N, D), most frequent first.
        target: unit rows, float32 (M, D).
        options: how long.
        judged: called with each epoch, from 1, and the criterion after it.
    """
    torch.manual_seed(options.seed)
    generator = np.random.default_rng(options.seed)
    sides = [torch.from_numpy(np.array(side[:FREQUENT])) for side in (source, target)]
    dim = source.shape[1]
    matrix = nn.Parameter(torch.eye(dim))
    judge = nn.Sequential(
        nn.Dropout(0.1),
        nn.Linear(dim, HIDDEN),
        nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, 1),
    )
    rate = options.learning_rate
    mapper = torch.optim.SGD([matrix], lr=rate)
    discriminator = torch.optim.SGD(judge.parameters(), lr=rate)
    labels = torch.cat([torch.full((options.batch,), v) for v in (1 - SMOOTHING, SMOOTHING)])

    def drawn() -> torch.Tensor:
        """Return mapped sources and targets, (2 B, D)."""
        rows = [
            torch.from_numpy(generator.integers(len(each), size=options.batch)) for each in sides
        ]
        return torch.cat([sides[0][rows[0]] @ matrix, sides[1][rows[1]]])

    best: Mapping | None = None
    for epoch in range(1, options.epochs + 1):
        for _ in range(options.steps):
            for _ in range(DISCRIMINATOR_STEPS):
                with torch.no_grad():
                    mixed = drawn()
                _step(discriminator, judge(mixed)[:, 0], labels)
            judge.eval()  # as MUSE: the map learns from the discriminator without dropout
            _step(mapper, judge(drawn())[:, 0], 1 - labels)
            judge.train()
            with torch.no_grad():
                matrix.mul_(1 + ORTHOGONAL).sub_(ORTHOGONAL * matrix @ matrix.T @ matrix)
        found = matrix.detach().numpy().copy()
        value = criterion(source[:JUDGED] @ found, target[:JUDGED])
        judged(epoch, value)
        worse = best is not None and value < best.criterion
        if not worse:
            best = Mapping(matrix=found, criterion=value)
        rate *= DECAY * (0.5 if worse else 1.0)
        for group in mapper.param_groups:
            group["lr"] = rate
    assert best is not None
    return best


def _step(optimizer: torch.optim.Optimizer, logits: torch.Tensor, labels: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss = functional.binary_cross_entropy_with_logits(logits, labels)
    loss.backward()  # type: ignore[no-untyped-call]  # as torch has it
    optimizer.step()
