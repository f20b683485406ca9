"""The training loop of the weighted bag: sample, rank, update the rows that were touched."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from encoder.bag import embed_bags
from encoder.tokenizer import Tokens
from encoder.training.data import TokenPairs, sample_batches
from encoder.training.objectives import translation_ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray


PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What decides the weights, given the token pairs.

    Raises:
        ValueError: a value is out of its range.
    """

    dim: int = 384
    steps: int = 40_000
    batch_size: int = 1024
    learning_rate: float = 2e-3
    warmup_steps: int = 200
    scale: float = 20.0
    margin: float = 0.2
    temperature: float = 0.5
    token_dropout: float = 0.1
    precision: str = "float32"
    seed: int = 1

    def __post_init__(self) -> None:
        within = {
            "dim": (1, math.inf),
            "steps": (1, math.inf),
            "batch_size": (2, math.inf),  # a pair is ranked against the others
            "learning_rate": (0, 1),
            "warmup_steps": (1, math.inf),
            "scale": (0, 40),  # above it the float32 softmax of the objective underflows
            "margin": (0, 1),
            "temperature": (0, 1),
            "token_dropout": (0, 0.99),
            "seed": (0, 2**63 - 1),
        }
        for name, (lowest, highest) in within.items():
            value = getattr(self, name)
            if not lowest <= value <= highest:
                limits = f"{lowest} or more" if highest == math.inf else f"{lowest} to {highest}"
                raise ValueError(f"{name} {value}: expected {limits}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision {self.precision}: choose one of {', '.join(PRECISIONS)}")


class RowAdam:
    """Adam (Kingma & Ba 2015) whose moments move only for the rows that a batch touches.

    A batch touches a few thousand of V rows, so a step costs O(touched x D) instead of O(V x D).
    The bias correction uses the global step, as ``torch.optim.SparseAdam`` does.
    """

    def __init__(self, table: torch.Tensor, *, beta1: float = 0.9, beta2: float = 0.99) -> None:
        self._table = table
        self._first = torch.zeros_like(table)
        self._second = torch.zeros_like(table)
        self._betas = (beta1, beta2)
        self._step = 0

    def step(self, rows: torch.Tensor, gradient: torch.Tensor, learning_rate: float) -> None:
        """Update ``rows`` (R,) of the table with ``gradient`` (R, D)."""
        beta1, beta2 = self._betas
        self._step += 1
        first = self._first[rows].lerp_(gradient, 1 - beta1)
        second = self._second[rows].lerp_(gradient.square(), 1 - beta2)
        self._first[rows] = first
        self._second[rows] = second
        correction = math.sqrt(1 - beta2**self._step) / (1 - beta1**self._step)
        update = first.div_(second.sqrt_().add_(1e-8)).mul_(learning_rate * correction)
        self._table.index_add_(0, rows, update, alpha=-1)


def learning_rate_at(step: int, options: TrainingOptions) -> float:
    """Linear warm-up, then linear decay to zero at the last step."""
    warm = min(1.0, (step + 1) / options.warmup_steps)
    return options.learning_rate * warm * (1 - step / options.steps)


def drop_tokens(tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
    """Remove each token with probability ``rate``."""
    keep = generator.random(len(tokens.ids)) >= rate
    kept_before = np.concatenate(([0], np.cumsum(keep)))
    return Tokens(ids=tokens.ids[keep], offsets=kept_before[tokens.offsets])


def _touched_rows(sides: list[Tokens]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The table rows that the sides use, ascending, and every token's place among them."""
    ids = np.concatenate([side.ids for side in sides])
    touched, local = np.unique(ids, return_inverse=True)
    return touched, local.astype(np.int32)


def train_table(
    pairs: list[TokenPairs],
    *,
    vocabulary_size: int,
    options: TrainingOptions,
    on_step: Callable[[int, float, torch.Tensor], None],
) -> NDArray[np.float32]:
    """Train the subword vectors: float32 of shape (V, D).

    ``on_step(step, loss, table)`` is called after every step with the table as it is.
    """
    torch.manual_seed(options.seed)
    generator = np.random.default_rng(options.seed)
    table = torch.randn(vocabulary_size, options.dim) / math.sqrt(options.dim)
    optimizer = RowAdam(table)
    batches = sample_batches(
        pairs,
        batch_size=options.batch_size,
        temperature=options.temperature,
        seed=options.seed,
    )
    for step in range(options.steps):
        language_pair, sampled = next(batches)
        sides = [language_pair.source.take(sampled), language_pair.target.take(sampled)]
        sides = [drop_tokens(side, options.token_dropout, generator) for side in sides]
        touched, local = _touched_rows(sides)
        rows = torch.from_numpy(touched)
        leaf = table[rows].requires_grad_()
        split = len(sides[0].ids)
        vectors = [
            functional.normalize(embed_bags(leaf, Tokens(ids=ids, offsets=side.offsets)))
            for side, ids in zip(sides, (local[:split], local[split:]), strict=True)
        ]
        loss = translation_ranking(
            *vectors,
            scale=options.scale,
            margin=options.margin,
            dtype=PRECISIONS[options.precision],
        )
        loss.backward()
        assert leaf.grad is not None
        optimizer.step(rows, leaf.grad, learning_rate_at(step, options))
        on_step(step, loss.item(), table)
    return table.numpy()
