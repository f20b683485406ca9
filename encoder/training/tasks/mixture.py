"""Several tasks with one encoder: each batch is of the objective's or of one beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from encoder.training.tasks.task import Rows, Task

if TYPE_CHECKING:
    from encoder import Encoder
    from encoder.tokenizer import Tokens
    from encoder.training.architectures.model import Model
    from encoder.training.data import TokenPairs


class Mixture(Task):
    """The objective's task and those beside it, which the names of their text tell apart."""

    def __init__(self, objective: str, main: Task, beside: Mapping[str, Task]) -> None:
        super().__init__()
        self.main = main
        self.beside = nn.ModuleDict(beside)
        self._objective = objective
        self._losses: dict[str, list[float]] = {name: [] for name in (objective, *beside)}

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """Return the loss of the task that the pairs are of."""
        beside = pairs.name in self.beside
        task = self.beside[pairs.name] if beside else self.main
        assert isinstance(task, Task)
        loss = task.loss(model, pairs, rows, sides)
        self._losses[pairs.name if beside else self._objective].append(loss.item())
        return loss

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Prepare the objective's task with its own pairs."""
        self.main.prepare(model, [one for one in pairs if one.name not in self.beside])

    def keep(self, folder: Path) -> None:
        """Keep what each task keeps."""
        for task in (self.main, *self.beside.values()):
            assert isinstance(task, Task)
            task.keep(folder)

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the mean loss of each task that had a batch since the last evaluation."""
        found = {
            f"{name} loss": float(np.mean(each)) for name, each in self._losses.items() if each
        }
        for each in self._losses.values():
            each.clear()
        return {**self.main.figures(model, held_out), **found}

    def whole(self, encoder: Encoder) -> Encoder:
        """Return what the objective makes of the encoder."""
        return self.main.whole(encoder)
