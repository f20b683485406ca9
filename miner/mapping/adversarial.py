"""A map between two spaces with no known pair, learnt against a discriminator of mapped words.

Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.1. Of the constants of
sections 3.1 and 3.2, batches of 32, the rate of 0.1 and input dropout are the same; others are for
two cores and small corpora: 512 units a layer in place of 2,048, the 6,000 most frequent words in
place of 50,000, labels smoothed by 0.1 in place of 0.2, and a rate that neither decays by 0.95 nor
is halved. Five steps of the discriminator for one of the map are those of MUSE's program. Vectors
are about as long as those of fastText: of unit length, it learns little. What is judged may be the
map that self-learning comes to (``miner.mapping.similarity``): one may be near enough, and gone
soon after.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from miner.arrays import Matrix
from miner.mapping.orthogonal import Mapping, procrustes

FREQUENT = 6_000  # words of each side that are drawn
LENGTH = 4.0  # of their vectors
SMOOTHING = 0.1  # of the labels
HIDDEN = 512
BATCH = 32  # words of each side
DISCRIMINATOR_STEPS = 5  # for each update of the map
RATE = 0.1  # of both
ORTHOGONAL = 0.01  # beta of equation 7
# Updates of the map until it is judged, and how often it is. It may stay near a wrong one for long.
UPDATES, CHECKS = 2_500, 20


def adversarial_start(
    source: Matrix,
    target: Matrix,
    *,
    seed: int,
    judge: Callable[[Matrix], Mapping],
    judged: Callable[[int, float], None] = lambda updates, value: None,
) -> Mapping:
    """Return the best map that ``judge`` makes of any on the way, by its criterion.

    Sides are unit rows, most frequent first. ``judge`` makes a map of an orthogonal matrix, the
    same or one that it leads to; ``judged`` is called with the updates so far, and the criterion.
    """
    generator = np.random.default_rng(seed)
    sides = [torch.from_numpy(side[:FREQUENT] * np.float32(LENGTH)) for side in (source, target)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        matrix = nn.Parameter(torch.eye(source.shape[1]))
        discriminator = _discriminator(source.shape[1])
        steps = [torch.optim.SGD(each, lr=RATE) for each in ([matrix], discriminator.parameters())]
        made: list[Mapping] = []
        for check in range(1, CHECKS + 1):
            for _ in range(UPDATES):
                _update(matrix, discriminator, steps, sides, generator)
            found = matrix.detach().numpy()
            made.append(judge(procrustes(np.eye(len(found), dtype=np.float32), found)))
            judged(check * UPDATES, made[-1].criterion)
    return max(made, key=lambda one: one.criterion)


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
    """Teach the discriminator which words were mapped, then the map to deceive it."""
    labels = torch.cat([torch.full((BATCH,), label) for label in (1 - SMOOTHING, SMOOTHING)])

    def loss(matrix: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        rows = [torch.from_numpy(generator.integers(len(side), size=BATCH)) for side in sides]
        mixed = torch.cat([sides[0][rows[0]] @ matrix, sides[1][rows[1]]])
        return functional.binary_cross_entropy_with_logits(discriminator(mixed)[:, 0], labels)

    for _ in range(DISCRIMINATOR_STEPS):
        _step(steps[1], loss(matrix.detach(), labels))
    discriminator.eval()  # as MUSE: the map learns from the discriminator without dropout
    _step(steps[0], loss(matrix, 1 - labels))
    discriminator.train()
    with torch.no_grad():
        matrix.mul_(1 + ORTHOGONAL).sub_(ORTHOGONAL * matrix @ matrix.T @ matrix)


def _step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # as torch has it
    optimizer.step()
