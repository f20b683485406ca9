"""LASER's objective, the translation into one or more target languages."""

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from encoder.tokenizer import Tokens, join
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs
from encoder.training.options import PERPLEXITY, TranslationOptions
from encoder.training.tasks.task import Decoder, Setting, Task

MAX_NATS = 700.0  # whose exponential is finite, per token


class Translation(Task):
    """The task to translate sentences from their vectors.

    All directions to target languages are trained. ValueError says that a text has none.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        options = setting.options.objective
        assert isinstance(options, TranslationOptions)
        self._targets = options.targets
        for text in setting.texts:
            if not self._directions(text.name):
                raise ValueError(
                    f"--targets {','.join(self._targets)}: contains neither language of the text "
                    f"{text.name}; add one of them, or choose other texts with --pairs"
                )
        self.decoder = Decoder(setting, languages=len(self._targets), hidden=options.decoder_dim)

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean cross entropy of translations, over the directions."""
        predicted = self._predict(model, pairs, rows, sides)
        return torch.stack([shared_mean(*prediction) for prediction in predicted]).mean()

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the ``perplexity``, leaving task and model in evaluation mode."""
        return perplexity(
            prediction
            for batch in self.held_out_batches(model, held_out)
            for prediction in self._predict(model, *batch)
        )

    def _predict(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: Sequence[Tokens]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        # Sides that are only targets are not embedded.
        directions = self._directions(pairs.name)
        source_sides = sorted(1 - side for side, _ in directions)
        vectors = model(join([sides[side] for side in source_sides])).split(len(rows))
        by_side = dict(zip(source_sides, vectors, strict=True))
        tokens = pairs.source, pairs.target
        for side, language in directions:
            yield self.decoder(by_side[1 - side], tokens[side].take(rows), language)

    def _directions(self, name: str) -> list[tuple[int, int]]:
        """Return the sides that are targets, with their languages' numbers."""
        return [
            (side, self._targets.index(language))
            for side, language in enumerate(name.split("-"))
            if language in self._targets
        ]


@torch.inference_mode()
def perplexity(predicted: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Return the ``perplexity``, by name, of all batches together.

    A batch, one or more, is logits (N, V) and tokens, int64 (N,). The maximum is exp(700).
    """
    total, count = 0.0, 0
    for logits, tokens in predicted:
        total += sequence_translation(logits, tokens).item() * len(tokens)
        count += len(tokens)
    return {PERPLEXITY: math.exp(min(total / count, MAX_NATS))}


def shared_mean(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return ``sequence_translation``, weighted by this process's tokens.

    The mean of all processes' results is the mean cross entropy of all their tokens.
    """
    mean = parallel.sum_over_processes(len(tokens)) / parallel.processes()
    return sequence_translation(logits, tokens) * (len(tokens) / mean)


def sequence_translation(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean cross entropy of tokens, int64 (N,), in nats.

    Logits (N, V) predict each token from the tokens before it. This is LASER's loss (Artetxe &
    Schwenk 2019, section 3.2), the logarithm of the perplexity.
    """
    return functional.cross_entropy(logits.float(), tokens)
