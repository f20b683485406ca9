"""Tasks beside the objective that write sentences with LASER's decoder, from one language alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

from encoder.training.data import join
from encoder.training.decoder import Decoder
from encoder.training.tasks.beside import WIDTH
from encoder.training.tasks.task import Rows, Setting, Task
from encoder.training.tasks.translation import shared_mean

if TYPE_CHECKING:
    import torch

    from encoder.tokenizer import Tokens
    from encoder.training.architectures.model import Model
    from encoder.training.data import TokenPairs
    from encoder.training.reading import ParallelText


class Autoencoding(Task):
    """A sentence is written again from its vector."""

    def __init__(self, text: ParallelText, setting: Setting) -> None:
        super().__init__()
        self.decoder = _decoder(setting, kinds=1)

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """Return the mean cross entropy of the sentences' tokens."""
        vectors = functional.normalize(model(sides[0]))
        return shared_mean(*self.decoder(vectors, pairs.source.take(rows), 0))


class SkipThought(Task):
    """The sentences after and before one are written from its vector.

    Kiros et al. 2015, "Skip-Thought Vectors", whose two decoders are one here that knows which.
    """

    def __init__(self, text: ParallelText, setting: Setting) -> None:
        super().__init__()
        self.decoder = _decoder(setting, kinds=2)

    def loss(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]
    ) -> torch.Tensor:
        """Return the sum of the mean cross entropies of what follows and what went before."""
        first, second = functional.normalize(model(join(sides))).chunk(2)
        after = self.decoder(first, pairs.target.take(rows), 0)
        before = self.decoder(second, pairs.source.take(rows), 1)
        return shared_mean(*after) + shared_mean(*before)


def _decoder(setting: Setting, *, kinds: int) -> Decoder:
    return Decoder(
        setting.options,
        vocabulary=setting.vocabulary,
        dim=setting.dim,
        languages=kinds,
        hidden=WIDTH,
    )
