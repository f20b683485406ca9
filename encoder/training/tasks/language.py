"""Language models of a transformer, from which other trainings can start.

Conneau & Lample 2019, "Cross-lingual Language Model Pretraining", section 3, but by sentences,
without vectors of languages, and with equal masking (Devlin et al. 2019). ``figures`` leaves task
and model in evaluation mode. Axes: ``B`` sentences, ``T`` tokens of the longest, ``N`` predicted.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from encoder.laser.networks import Transformer, token_mask
from encoder.tokenizer import Tokens, join
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import Network, group_by_length, pad
from encoder.training.data import Rows, TokenPairs
from encoder.training.options import TransformerOptions
from encoder.training.tasks.task import Setting, Task
from encoder.training.tasks.translation import perplexity, shared_mean

PREDICTED_SHARE = 0.15  # share of tokens that are predicted
MASKED_SHARE = 0.8  # share of predicted tokens that are replaced by ``MASK``
REPLACED_SHARE = 0.1  # share of predicted tokens that are replaced by others
MASK = 0  # SentencePiece's unknown piece


class Masked(Task):
    """The task MLM, to predict hidden tokens.

    The first ``sides`` sides of pairs are read, by default both if all texts are parallel, or else
    one. If ``causal``, tokens see only earlier ones. If ``together``, a pair's sides are one
    sequence. ValueError says that the architecture is not a transformer.
    """

    causal = together = False

    def __init__(self, setting: Setting, *, sides: int | None = None) -> None:
        super().__init__()
        architecture = setting.options.architecture
        if not isinstance(architecture, TransformerOptions):
            raise ValueError(
                f"--architecture {architecture.name} has no vectors of tokens, which a language "
                "model requires; use --architecture transformer"
            )
        self._sides = sides or 1 + all(text.is_parallel for text in setting.texts)
        self._end, self._seed = setting.vocabulary, setting.options.seed
        self.bias = nn.Parameter(torch.zeros(setting.vocabulary + 1))

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean cross entropy of ``sides``' predicted tokens, a scalar."""
        return shared_mean(*self._predict(model, sides))

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the ``perplexity`` of held-out text, with fixed masks, by name."""
        generator = torch.Generator().manual_seed(self._seed)
        batches = self.held_out_batches(model, held_out)
        return perplexity(self._predict(model, sides, generator) for _, _, sides in batches)

    def _predict(
        self, model: Model, sides: list[Tokens], generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(model, Network) and isinstance(model.network, Transformer)
        weight = model.network.embed_tokens.weight
        states, answers = [], []
        for parts in self._batches(sides[: self._sides]):
            ids = torch.cat([part for part, _ in parts], dim=1)
            is_token = [
                token_mask(lengths, part.shape[1], weight.device) for part, lengths in parts
            ]
            inputs, is_predicted, tokens = self._choose_tokens(ids, generator)
            vectors = model.network.states(
                inputs.to(weight.device),
                torch.cat(is_token, dim=1),
                parts=[part.shape[1] for part, _ in parts],
                causal=self.causal,
            )
            states.append(vectors[is_predicted.to(weight.device)])
            answers.append(tokens)
        return torch.cat(states) @ weight.T + self.bias, torch.cat(answers).to(weight.device)

    def _batches(self, sides: Sequence[Tokens]) -> Iterator[list[tuple[Tensor, Tensor]]]:
        sequences = sides if self.together else [join(sides)]
        lengths = np.sum([np.diff(side.offsets) for side in sequences], axis=0)
        for rows in group_by_length(lengths):
            yield [pad(side.take(rows), end=self._end) for side in sequences]

    def _choose_tokens(self, ids: Tensor, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Return inputs (B, T), where tokens are predicted (B, T), and these (N,)."""
        inputs, is_predicted = mask_tokens(ids, end=self._end, generator=generator)
        return inputs, is_predicted, ids[is_predicted]


class TranslatedMasked(Masked):
    """The task TLM, MLM of two translations, each with positions from 0."""

    together = True


class Causal(Masked):
    """The task CLM, to predict each next token, or the end, from those before."""

    causal = True

    def _choose_tokens(self, ids: Tensor, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        is_predicted = torch.zeros_like(ids, dtype=torch.bool)
        is_predicted[:, :-1] = ids[:, :-1] != self._end
        if not is_predicted.any():  # sentences without tokens
            is_predicted[:, 0] = True
        return ids, is_predicted, ids.roll(-1, dims=1)[is_predicted]


def mask_tokens(
    ids: Tensor, *, end: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Choose tokens to predict, and hide, replace or keep them at random.

    ``ids``, int64 (B, T), on the CPU, are ended and padded by ``end``, the last id. About 15% of
    the other tokens are chosen, and at least one. If there are only ends, all are chosen. About 80%
    of the chosen tokens become id 0, and 10% random ids. The result is the ids that a model sees,
    int64 (B, T), and which are chosen, bool (B, T).
    """
    draw = torch.rand(ids.shape, generator=generator).masked_fill(ids == end, 1)
    is_predicted = draw <= draw.min().clamp(min=PREDICTED_SHARE)  # at least one
    draw_of_kind = torch.rand(ids.shape, generator=generator)
    random_ids = torch.randint(end, ids.shape, generator=generator)
    replaced = torch.where(
        draw_of_kind < MASKED_SHARE,
        MASK,
        torch.where(draw_of_kind < MASKED_SHARE + REPLACED_SHARE, random_ids, ids),
    )
    return torch.where(is_predicted, replaced, ids), is_predicted
