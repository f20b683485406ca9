"""An encoder and a decoder for each language: several of each are trained together on N-way text.

Schwenk & Douze 2017, "Learning Joint Multilingual Sentence Representations with Neural Machine
Translation", section 2. A batch takes a *path*: the mean of its M source languages' vectors, from
which each of its target languages is written. Axes: ``B`` rows of N-way text, ``D`` dimensions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from encoder.bag.features import Features
from encoder.tokenizer import Tokens
from encoder.training.architectures import make_model
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import Apart, Network
from encoder.training.data import Rows, TokenPairs, all_pairs, join_targets, sentences_by_language
from encoder.training.options import PathsOptions, TrainingOptions
from encoder.training.reading import Texts
from encoder.training.tasks.task import Decoder, Setting, Task
from encoder.training.tasks.translation import perplexity, shared_mean


@dataclass(frozen=True, kw_only=True)
class Path:
    """Languages whose vectors are averaged, those that are written, and its share of batches."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    share: float


def find_paths(languages: Sequence[str], options: PathsOptions) -> dict[str, Path]:
    """Return by its sources' names a path for each choice of M languages that leaves a target.

    Paths of as many sources share their batches alike, so that each encoder sees as much. A target
    that is none of the languages is a ValueError, and so is M if it leaves none.
    """
    for target in options.targets:
        if target not in languages:
            raise ValueError(
                f"targets {target}: the text has only {', '.join(languages)}; use these"
            )
    found = {}
    for count, share in options.shares().items():
        some = {
            chosen: left
            for chosen in combinations(languages, count)
            if (left := tuple(name for name in options.targets if name not in chosen))
        }
        if not some:
            raise ValueError(
                f"sources {count}: leaves no target language of {', '.join(languages)}; use fewer "
                "sources, or more targets"
            )
        for chosen, left in some.items():
            found["+".join(chosen)] = Path(sources=chosen, targets=left, share=share / len(some))
    return found


def encoded(paths: Mapping[str, Path]) -> list[str]:
    """Return the languages that are a source of any path: these get an encoder."""
    return list(dict.fromkeys(language for path in paths.values() for language in path.sources))


class Paths(Task):
    """Writes the targets of each path from the mean of its sources' vectors."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        options = setting.options.objective
        assert isinstance(options, PathsOptions)
        self._paths = _paths(setting.options, setting.texts)
        self._tokens: dict[str, Tokens] = {}
        hidden = options.decoder_dim
        decoders = {name: Decoder(setting, languages=1, hidden=hidden) for name in options.targets}
        self.decoders = nn.ModuleDict(decoders)

    @classmethod
    def text(cls, read: Texts) -> Texts:
        """Join the texts, see ``join_targets``."""
        return join_targets(read)

    @classmethod
    def judged(cls, held_out: Texts, options: TrainingOptions) -> Texts:
        """Return text of each two languages that have an encoder."""
        return all_pairs(held_out, encoded(_paths(options, held_out)))

    @classmethod
    def model(cls, options: TrainingOptions, features: Features, texts: Texts) -> Model:
        """Make a network for each language that is a source, if that is the architecture."""
        networks = {}
        for language in encoded(_paths(options, texts)):
            network = make_model(options, features)
            if not isinstance(network, Network):
                raise ValueError("--objective paths requires --architecture bilstm")
            networks[language] = network
        if rate := options.architecture.token_dropout:
            raise ValueError(f"token_dropout {rate} conflicts with objective paths; omit it")
        return Apart(networks)

    def drawn(self, pairs: Sequence[TokenPairs]) -> Sequence[TokenPairs]:
        """Return a stream of rows for each path; their sentences are kept here, by language."""
        self._tokens = _by_language(pairs)
        weight = np.minimum.reduce([one.weight for one in pairs])
        return [
            replace(pairs[0], name=name, weight=weight, times=path.share)
            for name, path in self._paths.items()
        ]

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Return the sum over the path's targets of the mean cross entropies of their tokens."""
        written = self._write(model, self._paths[pairs.name], self._tokens, rows)
        return torch.stack([shared_mean(*each) for each in written]).sum()

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the perplexity of the held-out rows by all paths."""
        sentences = _by_language(held_out)
        return perplexity(
            written
            for _, rows, _ in self.held_out_batches(model, held_out[:1])
            for path in self._paths.values()
            for written in self._write(model, path, sentences, rows)
        )

    def _write(
        self, model: Model, path: Path, sentences: Mapping[str, Tokens], rows: Rows
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and tokens of each target, from the mean of the sources' vectors (B, D)."""
        assert isinstance(model, Apart)
        vectors = [model.of(name)(sentences[name].take(rows)) for name in path.sources]
        mean = torch.stack(vectors).mean(dim=0)
        for name in path.targets:
            yield self.decoders[name](mean, sentences[name].take(rows), 0)


def _paths(options: TrainingOptions, texts: Texts) -> dict[str, Path]:
    assert isinstance(options.objective, PathsOptions)
    return find_paths(list(sentences_by_language(texts)), options.objective)


def _by_language(pairs: Sequence[TokenPairs]) -> dict[str, Tokens]:
    found = {one.name.partition("-")[0]: one.source for one in pairs}
    return {**found, pairs[0].name.partition("-")[2]: pairs[0].target}
