"""Language models of a transformer's tokens, which other trainings begin with (``--start``).

Conneau & Lample 2019, "Cross-lingual Language Model Pretraining", section 3. There, text is a
stream of 256 tokens and rare tokens are masked more often; here, sentences stand by themselves, as
encoders see them, with no vector of their language, and all tokens are masked alike, as in Devlin
et al. 2019. Axes: ``B`` sentences, ``T`` tokens of the longest, ``N`` tokens asked for.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from encoder.laser.networks import Transformer, within
from encoder.tokenizer import Tokens
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import Network, like_lengths, pad
from encoder.training.data import Rows, TokenPairs, join
from encoder.training.options import TransformerOptions
from encoder.training.tasks.task import Setting, Task
from encoder.training.tasks.translation import perplexity, shared_mean

SHARE = 0.15  # of the tokens are asked for
HIDDEN, WRONG = 0.8, 0.1  # shares of these that are hidden, and that another one stands for
MASK = 0  # the piece of what SentencePiece does not know stands for what is hidden


class Masked(Task):
    """MLM: tokens that are hidden are guessed from all others of their sentence.

    By the last layer's vectors; the embeddings are the output's weights, too.
    """

    causal: ClassVar[bool] = False
    together: ClassVar[bool] = False  # whether the sides of a pair are seen as one

    def __init__(self, setting: Setting, *, sides: int | None = None) -> None:
        """For the first ``sides`` sides of pairs: one if text of one language is among them."""
        super().__init__()
        architecture = setting.options.architecture
        if not isinstance(architecture, TransformerOptions):
            raise ValueError(
                f"a language model needs token vectors, which architecture {architecture.name} "
                "lacks; use --architecture transformer"
            )
        self._sides = sides or 1 + all(text.is_parallel for text in setting.texts)
        self._end, self._seed = setting.vocabulary, setting.options.seed
        self.bias = nn.Parameter(torch.zeros(setting.vocabulary + 1))

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the mean cross entropy of the tokens asked for."""
        return shared_mean(*self._guess(model, sides))

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the perplexity of held-out text, of which the same tokens are asked each time."""
        generator = torch.Generator().manual_seed(self._seed)
        batches = self.held_out_batches(model, held_out)
        return perplexity(self._guess(model, sides, generator) for _, _, sides in batches)

    def _guess(
        self, model: Model, sides: list[Tokens], generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return logits (N, V + 1) of the tokens asked for, and these (N,)."""
        assert isinstance(model, Network) and isinstance(model.network, Transformer)
        weight = model.network.embed_tokens.weight
        states, right = [], []
        for parts in self._batches(sides[: self._sides]):
            ids = torch.cat([part for part, _ in parts], dim=1)
            there = [within(lengths, part.shape[1], weight.device) for part, lengths in parts]
            shown, asked, tokens = self._ask(ids, generator)
            found = model.network.states(
                shown.to(weight.device),
                torch.cat(there, dim=1),
                parts=[part.shape[1] for part, _ in parts],
                causal=self.causal,
            )
            states.append(found[asked.to(weight.device)])
            right.append(tokens)
        return torch.cat(states) @ weight.T + self.bias, torch.cat(right).to(weight.device)

    def _batches(self, sides: Sequence[Tokens]) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Yield ids (B, T) and lengths (B,) of sentences of like lengths, for each side seen."""
        seen = sides if self.together else [join(sides)]
        lengths = np.sum([np.diff(side.offsets) for side in seen], axis=0)
        for rows in like_lengths(lengths):
            yield [pad(side.take(rows), end=self._end) for side in seen]

    def _ask(self, ids: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return what is seen (B, T), where something is asked (B, T), and the answers (N,)."""
        shown, asked = masked(ids, end=self._end, generator=generator)
        return shown, asked, ids[asked]


class TranslatedMasked(Masked):
    """TLM: they are guessed from a sentence and its translation, whose positions begin anew."""

    together = True


class Causal(Masked):
    """CLM: each token is guessed from those before it, from the second on, and the end."""

    causal = True

    def _ask(self, ids: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
        asked = torch.zeros_like(ids, dtype=torch.bool)
        asked[:, :-1] = ids[:, :-1] != self._end
        if not asked.any():  # sentences without tokens
            asked[:, 0] = True
        return ids, asked, ids.roll(-1, dims=1)[asked]


def masked(
    ids: Tensor, *, end: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Ask for tokens at random, and hide them, put wrong ones in their place or leave them.

    Sentences, int64 (B, T), are ended and padded by ``end``, the last id, which is not asked for
    unless there is nothing else. Returned are the ids that are seen, and where something is asked,
    bool (B, T).
    """
    draw = torch.rand(ids.shape, generator=generator).masked_fill(ids == end, 1)
    asked = draw <= draw.min().clamp(min=SHARE)  # one at least
    kind = torch.rand(ids.shape, generator=generator)
    wrong = torch.randint(end, ids.shape, generator=generator)
    hidden = torch.where(kind < HIDDEN, MASK, torch.where(kind < HIDDEN + WRONG, wrong, ids))
    return torch.where(asked, hidden, ids), asked
