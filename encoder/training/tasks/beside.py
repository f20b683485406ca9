"""Auxiliary tasks with heads of their own, from text of one language.

Chidambaram et al. 2019, section 2.2. ``figures`` leaves task and model in evaluation mode.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from encoder.checkpoint import save_head
from encoder.tokenizer import Tokens, join
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs
from encoder.training.options import ACCURACY, INFERENCE_LABELS, RankingOptions
from encoder.training.reading import ParallelText
from encoder.training.tasks.task import Decoder, Setting, Task
from encoder.training.tasks.translation import shared_mean

NARROW = 320  # hidden units of a head
WIDTH = 512  # outputs of a head


class ResponsePrediction(Task):
    """The task to rank a turn's answer among all answers of a batch."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.head = _head(setting.dim, setting.dim)

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean loss of ranking answers ``sides[1]`` to ``sides[0]``."""
        inputs, answers = functional.normalize(model(join(sides))).chunk(2)
        return in_batch_loss(inputs, self.head(answers))


class QuickThought(Task):
    """The task to rank a sentence's neighbours (Logeswaran & Lee 2018)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        names = ("input", "successor", "predecessor")
        self.heads = nn.ModuleDict({name: _head(setting.dim, WIDTH) for name in names})

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the sum of the losses of ranking successors and predecessors."""
        first, second = functional.normalize(model(join(sides))).chunk(2)
        after = in_batch_loss(self.heads["input"](first), self.heads["successor"](second))
        before = in_batch_loss(self.heads["input"](second), self.heads["predecessor"](first))
        return after + before


def _head(dim: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, NARROW), nn.Tanh(), nn.Linear(NARROW, width), nn.Tanh())


def in_batch_loss(inputs: Tensor, answers: Tensor) -> Tensor:
    """Return the mean cross entropy of each input's answer among all answers.

    Row i of ``answers`` (B, D) answers row i of ``inputs`` (B, D). Logits are 20 times the cosines.
    The batches of all processes, of equal sizes, are joined.
    """
    rows, columns = (parallel.gather(functional.normalize(side)) for side in (inputs, answers))
    logits = (RankingOptions.scale * rows @ columns.T).float()
    return functional.cross_entropy(logits, torch.arange(len(rows), device=logits.device))


class Inference(Task):
    """The task to predict one text's ``corpus``, of ``INFERENCE_LABELS``."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self._labels = _number_labels(setting.texts)
        self._held_out = _number_labels(setting.held_out)
        wide = nn.Linear(4 * setting.dim, WIDTH)
        self.head = nn.Sequential(wide, nn.Tanh(), nn.Linear(WIDTH, len(INFERENCE_LABELS)))
        self._by_sgd = setting.options.objective.schedule == "sgd"

    @torch.inference_mode()
    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the ``accuracy``, 0 to 1, on the setting's ``held_out`` tokens."""
        predictions = [
            self.logits(model, sides).argmax(dim=1).cpu().numpy()
            for _, _, sides in self.held_out_batches(model, held_out)
        ]
        return {ACCURACY: float((np.concatenate(predictions) == self._held_out).mean())}

    def save_extras(self, folder: Path) -> None:
        """Write the head into its encoder's folder, with errors of ``save_head``."""
        weights = self.head.state_dict()
        save_head(folder, {name: tensor.cpu().numpy() for name, tensor in weights.items()})

    def rate_factor(self, history: Sequence[Mapping[str, Any]]) -> float:
        """Return the factor of the learning rate after some evaluations.

        With the schedule ``sgd``, it is 0.99 per evaluation in ``history``, times 1/5 per drop of
        accuracy (Conneau et al. 2017), or else 1.
        """
        if not self._by_sgd:
            return 1.0
        figures = [entry[ACCURACY] for entry in history]
        drops = sum(later < before for before, later in pairwise(figures))
        return float(0.99 ** len(history) / 5**drops)

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean cross entropy of the pairs' labels, a scalar."""
        logits = self.logits(model, sides)
        gold = torch.from_numpy(self._labels[rows]).to(logits.device)
        return functional.cross_entropy(logits.float(), gold)

    def logits(self, model: Model, sides: list[Tokens]) -> Tensor:
        """Return logits (B, 3) of pairs' labels, as in ``INFERENCE_LABELS``."""
        vectors = model(join(sides))
        # In unit vectors, products of numbers are tiny compared with the numbers.
        u, v = (functional.normalize(vectors) * math.sqrt(vectors.shape[1])).chunk(2)
        return self.head(torch.cat([u, v, (u - v).abs(), u * v], dim=1))


def _number_labels(texts: Sequence[ParallelText]) -> Rows:
    labels = [label for text in texts for label in text.corpus]
    return np.array([INFERENCE_LABELS.index(label) for label in labels], dtype=np.int64)


class Autoencoding(Task):
    """The task to reconstruct sentences from their vectors."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.decoder = Decoder(setting, languages=1, hidden=WIDTH)

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean cross entropy of sources at ``rows``, from ``sides[0]``."""
        vectors = functional.normalize(model(sides[0]))
        return shared_mean(*self.decoder(vectors, pairs.source.take(rows), 0))


class SkipThought(Task):
    """The task to predict a sentence's neighbours (Kiros et al. 2015)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.decoder = Decoder(setting, languages=2, hidden=WIDTH)

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the sum of the mean cross entropies of both neighbours."""
        first, second = functional.normalize(model(join(sides))).chunk(2)
        after = self.decoder(first, pairs.target.take(rows), 0)
        before = self.decoder(second, pairs.source.take(rows), 1)
        return shared_mean(*after) + shared_mean(*before)
