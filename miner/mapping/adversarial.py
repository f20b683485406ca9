"""Train a map between two spaces against a discriminator, without pairs.

Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.1, with fewer units and
words, for two cores and small corpora. Vectors have about fastText's length: of unit length, the
discriminator learns little. Maps may be refined by self-learning (``miner.mapping.similarity``) at
each check, because a good map may last for few updates.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from miner.arrays import Matrix
from miner.mapping.orthogonal import Mapping, procrustes

FREQUENT = 6_000  # words per side to draw from; 50,000 in the paper
LENGTH = 4.0  # of the vectors
SMOOTHING = 0.1  # of the labels; 0.2 in the paper
HIDDEN = 512  # units per layer; 2,048 in the paper
BATCH = 32  # words per side
DISCRIMINATOR_STEPS = 5  # per update of the map, as in MUSE
RATE = 0.1  # constant learning rate of both
ORTHOGONAL = 0.01  # beta of equation 7
UPDATES = 2_500  # of the map per check
CHECKS = 20  # of the map, which may change little for long


def adversarial_start(
    source: Matrix,
    target: Matrix,
    *,
    seed: int,
    judge: Callable[[Matrix], Mapping],
    judged: Callable[[int, float], None] = lambda updates, value: None,
) -> Mapping:
    """Train a map of word vectors adversarially, and return the best map.

    ``source`` (N, D) and ``target`` (M, D) are unit vectors of words, most frequent first. Batches
    are drawn from the first 6,000 words per side, and ``seed`` sets all random numbers. After each
    2,500 of 50,000 updates, ``judge`` makes a ``Mapping`` of an orthogonal matrix (D, D), maybe
    refined, and ``judged`` is called with the number of updates so far and this map's criterion.
    """
    generator = np.random.default_rng(seed)
    sides = [torch.from_numpy(side[:FREQUENT] * np.float32(LENGTH)) for side in (source, target)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        matrix = nn.Parameter(torch.eye(source.shape[1]))
        discriminator = _discriminator(source.shape[1])
        steps = [torch.optim.SGD(each, lr=RATE) for each in ([matrix], discriminator.parameters())]
        mappings: list[Mapping] = []
        for check in range(1, CHECKS + 1):
            for _ in range(UPDATES):
                _update(matrix, discriminator, steps, sides, generator)
            fitted = matrix.detach().numpy()
            mappings.append(judge(procrustes(np.eye(len(fitted), dtype=np.float32), fitted)))
            judged(check * UPDATES, mappings[-1].criterion)
    return max(mappings, key=lambda one: one.criterion)


def _discriminator(dim: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Dropout(0.1),
        nn.Linear(dim, HIDDEN),
        nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, 1),
    )


def _update(
    matrix: nn.Parameter,
    discriminator: nn.Sequential,
    steps: list[torch.optim.SGD],
    sides: list[torch.Tensor],
    generator: np.random.Generator,
) -> None:
    labels = torch.cat([torch.full((BATCH,), label) for label in (1 - SMOOTHING, SMOOTHING)])

    def loss(matrix: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        rows = [torch.from_numpy(generator.integers(len(side), size=BATCH)) for side in sides]
        mixed = torch.cat([sides[0][rows[0]] @ matrix, sides[1][rows[1]]])
        return functional.binary_cross_entropy_with_logits(discriminator(mixed)[:, 0], labels)

    for _ in range(DISCRIMINATOR_STEPS):
        _step(steps[1], loss(matrix.detach(), labels))
    discriminator.eval()  # like MUSE, the map learns without dropout
    _step(steps[0], loss(matrix, 1 - labels))
    discriminator.train()
    with torch.no_grad():
        matrix.mul_(1 + ORTHOGONAL).sub_(ORTHOGONAL * matrix @ matrix.T @ matrix)


def _step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # torch has no type for it
    optimizer.step()
