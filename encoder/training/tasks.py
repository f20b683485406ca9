"""From a batch to a loss: what each objective asks of the model, and keeps beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from encoder.training import parallel
from encoder.training.data import join
from encoder.training.decoder import Decoder
from encoder.training.negatives import mine_negatives
from encoder.training.objectives import distillation, sequence_translation, translation_ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder
    from encoder.tokenizer import Tokens
    from encoder.training.data import TokenPairs
    from encoder.training.models import Model
    from encoder.training.options import TrainingOptions
    from encoder.training.reading import ParallelText

    Rows = NDArray[np.int64]

EVALUATED = 100  # pairs that are decoded at once in an evaluation


class Task(nn.Module):
    """An objective and what belongs to it; a module, for it may have weights of its own."""

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """The loss of the pairs at ``rows``, of which source and target to embed are ``sides``.

        In several processes these are a process's share of the batch, and the mean of their losses
        is that of the whole batch.
        """
        raise NotImplementedError

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Called with the model as it stands after each evaluation, and when a training goes on."""

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """What else is measured of a model on held-out pairs."""
        return {}


class Ranking(Task):
    """Translation ranking; from the first evaluation on also against hard negatives, if asked."""

    def __init__(self, options: TrainingOptions) -> None:
        super().__init__()
        self._options = options
        self._negatives: dict[str, Rows] = {}

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """See ``objectives.translation_ranking``; ranked against the batch of all processes."""
        hard = self._negatives.get(pairs.name)
        if hard is not None:
            sides = [*sides, pairs.target.take(hard[rows].ravel())]
        vectors = functional.normalize(model(join(sides)))
        source, target, others = vectors.tensor_split([len(rows), 2 * len(rows)])
        negatives = None if hard is None else others.unflatten(0, hard[rows].shape)
        return translation_ranking(
            parallel.gather(source),
            parallel.gather(target),
            scale=self._options.scale,
            margin=self._options.margin,
            negatives=None if negatives is None else parallel.gather(negatives),
        )

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Mine hard negatives with the model as it stands."""
        count, seed = self._options.hard_negatives, self._options.seed
        if count:
            self._negatives = {
                one.name: mine_negatives(model, one, count=count, seed=seed) for one in pairs
            }


class Translation(Task):
    """LASER's objective: each sentence is translated into one or two target languages."""

    def __init__(
        self, options: TrainingOptions, *, vocabulary: int, dim: int, names: Sequence[str]
    ) -> None:
        """For sentence vectors of ``dim`` dimensions and the language pairs ``names``.

        Raises:
            ValueError: neither side of a language pair is a target.
        """
        super().__init__()
        self._targets = options.targets
        for name in names:
            if not self._directions(name):
                raise ValueError(
                    f"{name}: neither side is one of the target languages "
                    f"{', '.join(self._targets)}; leave it out, or name other targets"
                )
        self.decoder = Decoder(
            vocabulary=vocabulary,
            dim=dim,
            languages=len(self._targets),
            hidden=options.decoder_dim,
            dropout=options.dropout,
        )

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """See ``objectives.sequence_translation``; the mean over the directions."""
        vectors = model(join(sides)).split(len(rows))
        losses = []
        for logits, tokens in self._predict(vectors, pairs, rows):
            mean = parallel.total(len(tokens)) / parallel.processes()
            losses.append(sequence_translation(logits, tokens) * (len(tokens) / mean))
        return torch.stack(losses).mean()

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """The perplexity of all held-out translations."""
        self.eval()
        model.eval()
        total, count = 0.0, 0
        with torch.inference_mode():
            for pairs in held_out:
                rows = np.arange(len(pairs.weight))
                for some in np.array_split(rows, -(-len(rows) // EVALUATED)):
                    sides = join([side.take(some) for side in (pairs.source, pairs.target)])
                    vectors = model(sides).split(len(some))
                    for logits, tokens in self._predict(vectors, pairs, some):
                        total += sequence_translation(logits, tokens).item() * len(tokens)
                        count += len(tokens)
        return {"perplexity": math.exp(total / count)}

    def _predict(
        self, vectors: Sequence[torch.Tensor], pairs: TokenPairs, rows: Rows
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Logits and tokens of each direction; ``vectors`` are those of source and target."""
        sides = pairs.source, pairs.target
        for side, language in self._directions(pairs.name):
            yield self.decoder(vectors[1 - side], sides[side].take(rows), language)

    def _directions(self, name: str) -> list[tuple[int, int]]:
        """Which sides of a language pair are targets, and the numbers of their languages."""
        languages = name.split("-")
        return [
            (side, self._targets.index(language))
            for side, language in enumerate(languages)
            if language in self._targets
        ]


class Distillation(Task):
    """A student matches a teacher's vectors of both sides."""

    def __init__(self, teacher: Encoder, texts: Sequence[ParallelText]) -> None:
        """Encode all texts with the teacher: 2 D bytes of memory for each sentence."""
        super().__init__()
        self._vectors: Mapping[str, list[NDArray[np.float16]]] = {
            text.name: [
                teacher.encode(side).astype(np.float16) for side in (text.source, text.target)
            ]
            for text in texts
        }

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """See ``objectives.distillation``."""
        student = functional.normalize(model(join(sides)).float())
        teacher = [
            torch.from_numpy(vectors[rows]).to(student.device).float()
            for vectors in self._vectors[pairs.name]
        ]
        return distillation(*student.split(len(rows)), *teacher)
