"""LASER's objective: each sentence is translated into one or two target languages."""

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from encoder.tokenizer import Tokens
from encoder.training import parallel
from encoder.training.architectures.model import Model
from encoder.training.data import Rows, TokenPairs, join
from encoder.training.options import PERPLEXITY, TranslationOptions
from encoder.training.tasks.task import Decoder, Setting, Task


class Translation(Task):
    """Translates each sentence from its vector, in each direction to a target language."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        options = setting.options.objective
        assert isinstance(options, TranslationOptions)
        self._targets = options.targets
        for text in setting.texts:
            if not self._directions(text.name):
                raise ValueError(
                    f"{text.name}: neither side is one of the target languages "
                    f"{', '.join(self._targets)}; exclude it, or use other --targets"
                )
        self.decoder = Decoder(setting, languages=len(self._targets), hidden=options.decoder_dim)

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean of ``sequence_translation`` over the directions."""
        predicted = self._predict(model, pairs, rows, sides)
        return torch.stack([shared_mean(*each) for each in predicted]).mean()

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the perplexity of all held-out translations."""
        return perplexity(
            written
            for batch in self.held_out_batches(model, held_out)
            for written in self._predict(model, *batch)
        )

    def _predict(
        self, model: Model, pairs: TokenPairs, rows: Rows, sides: Sequence[Tokens]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and tokens of each direction; what is not translated is not embedded."""
        directions = self._directions(pairs.name)
        read = sorted(1 - side for side, _ in directions)
        vectors = model(join([sides[side] for side in read])).split(len(rows))
        by_side = dict(zip(read, vectors, strict=True))
        written = pairs.source, pairs.target
        for side, language in directions:
            yield self.decoder(by_side[1 - side], written[side].take(rows), language)

    def _directions(self, name: str) -> list[tuple[int, int]]:
        """Return the sides of a language pair that are targets, with their languages' numbers."""
        return [
            (side, self._targets.index(language))
            for side, language in enumerate(name.split("-"))
            if language in self._targets
        ]


@torch.inference_mode()
def perplexity(predicted: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Return the perplexity of all tokens, by its name."""
    total, count = 0.0, 0
    for logits, tokens in predicted:
        total += sequence_translation(logits, tokens).item() * len(tokens)
        count += len(tokens)
    return {PERPLEXITY: math.exp(total / count)}


def shared_mean(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return a process's part of ``sequence_translation``, which all processes' mean is."""
    mean = parallel.total(len(tokens)) / parallel.processes()
    return sequence_translation(logits, tokens) * (len(tokens) / mean)


def sequence_translation(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean cross entropy of tokens, int64 (N,), in nats: the perplexity's logarithm.

    What LASER is trained by (Artetxe & Schwenk 2019, section 3.2). Logits (N, V) are of each token
    given those before it.
    """
    return functional.cross_entropy(logits.float(), tokens)
