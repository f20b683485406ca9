"""From a batch to a loss: what an objective asks of the model, and keeps beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from encoder import Encoder
from encoder.bag.features import Features
from encoder.tokenizer import Tokens
from encoder.training.architectures import make_model
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import pad
from encoder.training.data import Rows, TokenPairs
from encoder.training.options import WORD_DIM, TrainingOptions
from encoder.training.reading import Texts

LANGUAGE_WIDTH = 32
EVALUATED = 100  # pairs that are judged at once


@dataclass(frozen=True)
class Setting:
    """What a task begins with: the options, V subwords, the text, and the teacher, if any."""

    options: TrainingOptions
    vocabulary: int
    texts: Texts
    held_out: Texts = ()
    teacher: Encoder | None = None

    @property
    def dim(self) -> int:
        """Return D, the dimensions of what is trained."""
        return self.options.architecture.dim


class Decoder(nn.Module):
    """LASER's: predicts each token from those before it, the language and a sentence's vector.

    Artetxe & Schwenk 2019, section 3.1. It is needed in training only. Tokens have vectors as wide
    as those of the encoder, if it has LASER's architecture.
    """

    def __init__(self, setting: Setting, *, languages: int, hidden: int) -> None:
        super().__init__()
        self._end, self._dropout = setting.vocabulary, setting.options.dropout
        width = getattr(setting.options.architecture, "word_dim", WORD_DIM)
        self.embed_tokens = nn.Embedding(self._end + 1, width)
        nn.init.normal_(self.embed_tokens.weight, std=0.1)
        self.embed_language = nn.Embedding(languages, LANGUAGE_WIDTH)
        self.start = nn.Linear(setting.dim, 2 * hidden)  # the first hidden and cell states
        self.lstm = nn.LSTM(width + setting.dim + LANGUAGE_WIDTH, hidden)
        self.output = nn.Linear(hidden, self._end + 1)

    def forward(self, vectors: Tensor, tokens: Tokens, language: int) -> tuple[Tensor, Tensor]:
        """Return logits (N, V + 1) of the N tokens of all sentences, with ends; and these, (N,).

        The vector (B, D) and the language stand beside the token before at every step.
        """
        device = vectors.device
        ids, lengths = pad(tokens, end=self._end)
        right = _packed(ids.to(device), lengths)
        # The end, which begins the sentence, and all tokens but the last.
        before = _packed(ids.roll(1, dims=1).index_fill(1, torch.tensor([0]), self._end), lengths)
        order = right.sorted_indices
        assert order is not None
        sentence = torch.cat([order[:size] for size in right.batch_sizes.tolist()])
        known = self.embed_tokens(before.data.to(device))
        known = functional.dropout(known, self._dropout, self.training)
        spoken = self.embed_language(torch.tensor(language, device=device))
        inputs = [known, vectors[sentence], spoken.expand(len(sentence), -1)]
        packed = right._replace(data=torch.cat(inputs, dim=1))
        hidden, cell = self.start(vectors).unsqueeze(0).chunk(2, dim=2)
        outputs, _ = self.lstm(packed, (hidden.contiguous(), cell.contiguous()))
        outputs = functional.dropout(outputs.data, self._dropout, self.training)
        return self.output(outputs), right.data


def _packed(ids: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(ids, lengths, batch_first=True, enforce_sorted=False)


class Task(nn.Module):
    """An objective and what belongs to it; a module, for it may have weights of its own.

    It is made of a ``Setting``; a ValueError says why it cannot be.
    """

    @classmethod
    def text(cls, read: Texts) -> Texts:
        """Return the text to train on: what was read, or what is made of it if that can be."""
        return read

    @classmethod
    def judged(cls, held_out: Texts, options: TrainingOptions) -> Texts:
        """Return the pairs by which the held-out error is measured: those of two languages."""
        return [text for text in held_out if text.is_parallel]

    @classmethod
    def model(cls, options: TrainingOptions, features: Features, texts: Texts) -> Model:
        """Make what is trained."""
        return make_model(options, features)

    def drawn(self, pairs: Sequence[TokenPairs]) -> Sequence[TokenPairs]:
        """Return what batches are drawn from: the pairs, or what is made of them."""
        return pairs

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the loss of the pairs at ``rows``, with the sentences of ``sides`` to embed.

        These are a process's share of the batch, whose loss is the mean over the processes.
        """
        raise NotImplementedError

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Get ready for more steps, after each evaluation and when a training goes on."""

    def whole(self, encoder: Encoder) -> Encoder:
        """Return what a trained encoder is used as: itself, or a part of another."""
        return encoder

    def keep(self, folder: Path) -> None:
        """Keep what belongs to the encoder that was written into a folder, beside it."""

    def slower(self, history: Sequence[Mapping[str, Any]]) -> float:
        """Return a factor of the learning rate, by the figures of all evaluations."""
        return 1.0

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return further measurements of a model on held-out pairs."""
        return {}

    def held_out_batches(
        self, model: Model, held_out: Sequence[TokenPairs]
    ) -> Iterator[tuple[TokenPairs, Rows, list[Tokens]]]:
        """Yield held-out pairs some at a time, with task and model made ready to be judged."""
        self.eval()
        model.eval()
        for pairs in held_out:
            rows = np.arange(len(pairs.weight))
            for some in np.array_split(rows, -(-len(rows) // EVALUATED)):
                yield pairs, some, [side.take(some) for side in (pairs.source, pairs.target)]


class Mixture(Task):
    """The objective's task and those beside it, which the names of their text tell apart."""

    def __init__(self, objective: str, main: Task, beside: Mapping[str, Task]) -> None:
        super().__init__()
        self.main, self.beside = main, nn.ModuleDict(beside)
        self._objective, self._tasks = objective, beside
        self._losses: dict[str, list[float]] = {name: [] for name in (objective, *beside)}

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the loss of the task that the pairs are of."""
        task = self._tasks.get(pairs.name, self.main)
        loss = task.loss(model, pairs, rows, sides)
        self._losses[self._objective if task is self.main else pairs.name].append(loss.item())
        return loss

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Prepare the objective's task with its own pairs."""
        self.main.prepare(model, [one for one in pairs if one.name not in self._tasks])

    def keep(self, folder: Path) -> None:
        """Keep what each task keeps."""
        for task in (self.main, *self._tasks.values()):
            task.keep(folder)

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the mean loss of each task that had a batch since the last evaluation."""
        found = {f"{name} loss": float(np.mean(own)) for name, own in self._losses.items() if own}
        for each in self._losses.values():
            each.clear()
        return {**self.main.figures(model, held_out), **found}

    def whole(self, encoder: Encoder) -> Encoder:
        """Return what the objective makes of the encoder."""
        return self.main.whole(encoder)
