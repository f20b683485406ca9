"""Base classes of objectives, which may put models into evaluation mode."""

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

LANGUAGE_WIDTH = 32  # dimensions of a language's vector
EVALUATION_PAIRS = 100  # pairs per batch of an evaluation


@dataclass(frozen=True)
class Setting:
    """The options, texts and teacher from which a task is made.

    ``texts`` (to train on) and ``held_out`` are of ``Task.text``. ``vocabulary`` counts subwords.
    """

    options: TrainingOptions
    vocabulary: int
    texts: Texts
    held_out: Texts = ()
    teacher: Encoder | None = None

    @property
    def dim(self) -> int:
        """The dimensions D of the trained encoder."""
        return self.options.architecture.dim


class Decoder(nn.Module):
    """A network that predicts tokens from a sentence's vector and a language.

    It has ``hidden`` units, for ``languages`` languages (Artetxe & Schwenk 2019, section 3.1).
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
        """Predict tokens of B sentences from vectors (B, D) and earlier tokens.

        ``language`` is a number from 0. ``tokens`` are cut after 128 per sentence and ended. The
        result is logits (N, V + 1) of N tokens, for V subwords and the end, and these tokens, int64
        (N,). Both are by position, then by sentence, the longest first.
        """
        device = vectors.device
        ids, lengths = pad(tokens, end=self._end)
        answers = _pack(ids.to(device), lengths)
        # The end, as the start of the sentence, and all tokens except for the last.
        previous = _pack(ids.roll(1, dims=1).index_fill(1, torch.tensor([0]), self._end), lengths)
        order = answers.sorted_indices
        assert order is not None
        sentences = torch.cat([order[:size] for size in answers.batch_sizes.tolist()])
        token_vectors = self.embed_tokens(previous.data.to(device))
        token_vectors = functional.dropout(token_vectors, self._dropout, self.training)
        language_vector = self.embed_language(torch.tensor(language, device=device))
        inputs = [token_vectors, vectors[sentences], language_vector.expand(len(sentences), -1)]
        packed = answers._replace(data=torch.cat(inputs, dim=1))
        hidden, cell = self.start(vectors).unsqueeze(0).chunk(2, dim=2)
        outputs, _ = self.lstm(packed, (hidden.contiguous(), cell.contiguous()))
        outputs = functional.dropout(outputs.data, self._dropout, self.training)
        return self.output(outputs), answers.data


def _pack(ids: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(ids, lengths, batch_first=True, enforce_sorted=False)


class Task(nn.Module):
    """Base class of objectives and auxiliary tasks, which get a ``Setting``."""

    @classmethod
    def text(cls, texts: Texts) -> Texts:
        """Return the texts to train on, by default the texts that were read."""
        return texts

    @classmethod
    def evaluation_texts(cls, held_out: Texts, options: TrainingOptions) -> Texts:
        """Return the held-out texts of two languages, for the held-out error."""
        return [text for text in held_out if text.is_parallel]

    @classmethod
    def model(cls, options: TrainingOptions, features: Features, texts: Texts) -> Model:
        """Make a random model, on a GPU if any (ValueError for bad options)."""
        return make_model(options, features)

    def batch_pairs(self, pairs: Sequence[TokenPairs]) -> Sequence[TokenPairs]:
        """Return the pairs from which batches are drawn, by default ``pairs``."""
        return pairs

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the loss at ``rows``, a scalar with a gradient, in subclasses.

        ``model`` embeds ``sides``, the tokens of the sources and targets at ``rows``, some maybe
        dropped. Rows are this process's share of a batch, whose loss is the processes' mean.
        """
        raise NotImplementedError

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Prepare for the steps after an evaluation or resuming, if needed."""

    def deploy(self, encoder: Encoder) -> Encoder:
        """Return the encoder to evaluate, by default the trained ``encoder``."""
        return encoder

    def save_extras(self, folder: Path) -> None:
        """Write further files into the encoder's folder, by default none."""

    def rate_factor(self, history: Sequence[Mapping[str, Any]]) -> float:
        """Return a factor of the learning rate by all evaluations, by default 1."""
        return 1.0

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return further figures of held-out pairs by name, by default none."""
        return {}

    def held_out_batches(
        self, model: Model, held_out: Sequence[TokenPairs]
    ) -> Iterator[tuple[TokenPairs, Rows, list[Tokens]]]:
        """Yield ``pairs``, ``rows`` and ``sides`` of ``loss`` for held-out pairs.

        A batch is up to 100 pairs of a (not empty) text. Task and model stay in evaluation mode.
        """
        self.eval()
        model.eval()
        for pairs in held_out:
            rows = np.arange(len(pairs.weight))
            for batch in np.array_split(rows, -(-len(rows) // EVALUATION_PAIRS)):
                yield pairs, batch, [side.take(batch) for side in (pairs.source, pairs.target)]


class Mixture(Task):
    """The task ``main`` of ``objective``, and auxiliary tasks by text's name."""

    def __init__(self, objective: str, main: Task, beside: Mapping[str, Task]) -> None:
        super().__init__()
        self.main, self.beside = main, nn.ModuleDict(beside)
        self._objective, self._tasks = objective, beside
        self._losses: dict[str, list[float]] = {name: [] for name in (objective, *beside)}

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Store and return the loss of the task ``pairs.name``, or of ``main``."""
        task = self._tasks.get(pairs.name, self.main)
        loss = task.loss(model, pairs, rows, sides)
        self._losses[self._objective if task is self.main else pairs.name].append(loss.item())
        return loss

    def prepare(self, model: Model, pairs: Sequence[TokenPairs]) -> None:
        """Prepare the objective's task, without pairs of auxiliary tasks."""
        self.main.prepare(model, [pair for pair in pairs if pair.name not in self._tasks])

    def save_extras(self, folder: Path) -> None:
        """Write the files of all tasks into the encoder's folder."""
        for task in (self.main, *self._tasks.values()):
            task.save_extras(folder)

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the objective's figures, and the mean loss of each task, by name.

        A loss (``ranking loss``) is of this process's batches since the last call, if any.
        """
        means = {
            f"{name} loss": float(np.mean(each)) for name, each in self._losses.items() if each
        }
        self._losses = {name: [] for name in self._losses}
        return {**self.main.figures(model, held_out), **means}

    def deploy(self, encoder: Encoder) -> Encoder:
        """Return the encoder to evaluate, by the objective's task."""
        return self.main.deploy(encoder)

    def rate_factor(self, history: Sequence[Mapping[str, Any]]) -> float:
        """Return the factor of the learning rate by the objective's task."""
        return self.main.rate_factor(history)
