"""An encoder and a decoder per language, trained on N-way text.

Schwenk & Douze 2017, "Learning Joint Multilingual Sentence Representations with Neural Machine
Translation", section 2. A batch follows a *path*, from M sources' mean vector to each target
language. N-way text is of ``join_targets``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from encoder.bag.features import Features
from encoder.tokenizer import Tokens
from encoder.training.architectures import make_model
from encoder.training.architectures.model import Model
from encoder.training.architectures.network import Apart, Network, module_key
from encoder.training.data import Rows, TokenPairs, all_pairs, join_targets, sentences_by_language
from encoder.training.options import PathsOptions, TrainingOptions
from encoder.training.reading import Texts
from encoder.training.tasks.task import Decoder, Setting, Task
from encoder.training.tasks.translation import perplexity, shared_mean


class Path(NamedTuple):
    """A path's languages, and share of batches relative to the other paths'."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    share: float


def find_paths(languages: Sequence[str], options: PathsOptions) -> dict[str, Path]:
    """Return a path for each choice of M sources that leaves a target.

    Paths are by name, such as ``de+fr``, for each M in ``options.sources``, whose share they divide
    equally. Targets are the ``options.targets`` not in the sources, at least one.

    Raises:
        ValueError: A target is not one of the languages, or no choice of M sources has targets.
    """
    for target in options.targets:
        if target not in languages:
            raise ValueError(
                f"--targets {target}: the text is in {', '.join(languages)} only; choose among them"
            )
    paths = {}
    for count, share in options.shares().items():
        ways = {
            sources: targets
            for sources in combinations(languages, count)
            if (targets := tuple(name for name in options.targets if name not in sources))
        }
        if not ways:
            raise ValueError(
                f"--sources {count}: the text is in {len(languages)} languages only "
                f"({', '.join(languages)}), and one must be left as a target; lower it"
            )
        for sources, targets in ways.items():
            paths["+".join(sources)] = Path(sources, targets, share / len(ways))
    return paths


def source_languages(paths: Mapping[str, Path]) -> list[str]:
    """Return the languages that are a source of any path, each once."""
    return list(dict.fromkeys(language for path in paths.values() for language in path.sources))


class Paths(Task):
    """The task to translate from mean vectors, with errors of ``find_paths``."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        options = setting.options.objective
        assert isinstance(options, PathsOptions)
        self._paths = _find_paths(setting.options, setting.texts)
        self._tokens: dict[str, Tokens] = {}
        decoder = partial(Decoder, setting, languages=1, hidden=options.decoder_dim)
        self.decoders = nn.ModuleDict({module_key(name): decoder() for name in options.targets})

    @classmethod
    def text(cls, texts: Texts) -> Texts:
        """Join texts to N-way text by ``join_targets``, or raise its ValueError."""
        return join_targets(texts)

    @classmethod
    def evaluation_texts(cls, held_out: Texts, options: TrainingOptions) -> Texts:
        """Pair N-way text's source languages, with errors of ``find_paths``."""
        return all_pairs(held_out, source_languages(_find_paths(options, held_out)))

    @classmethod
    def model(cls, options: TrainingOptions, features: Features, texts: Texts) -> Model:
        """Make a random network per source language, on the GPU if there is one.

        Raises:
            ValueError: The architecture is a bag, drops tokens, or has unfit dimensions or paths.
        """
        networks = {}
        for language in source_languages(_find_paths(options, texts)):
            network = make_model(options, features)
            if not isinstance(network, Network):
                raise ValueError(
                    f"--architecture {options.architecture.name} conflicts with --objective paths; "
                    "use --architecture bilstm"
                )
            networks[language] = network
        if rate := options.architecture.token_dropout:
            raise ValueError(f"--token-dropout {rate} conflicts with --objective paths; omit it")
        return Apart(networks)

    def batch_pairs(self, pairs: Sequence[TokenPairs]) -> Sequence[TokenPairs]:
        """Keep N-way ``pairs`` for ``loss``, and return an item for each path.

        It has the path's ``name``, share (``times``), and each row's first pair and least weight.
        """
        self._tokens = sentences_by_language(pairs)
        weight = np.minimum.reduce([language_pair.weight for language_pair in pairs])
        return [
            replace(pairs[0], name=name, weight=weight, times=path.share)
            for name, path in self._paths.items()
        ]

    def loss(self, model: Model, pairs: TokenPairs, rows: Rows, sides: list[Tokens]) -> Tensor:
        """Sum the mean cross entropies of targets of an item of ``batch_pairs``."""
        predictions = self._translate(model, self._paths[pairs.name], self._tokens, rows)
        return torch.stack([shared_mean(*each) for each in predictions]).sum()

    def figures(self, model: Model, held_out: Sequence[TokenPairs]) -> dict[str, float]:
        """Return the ``perplexity`` of held-out rows over all paths, by name.

        ``held_out`` is N-way text, in tokens. Task and model are left in evaluation mode.
        """
        sentences = sentences_by_language(held_out)
        return perplexity(
            prediction
            for _, rows, _ in self.held_out_batches(model, held_out[:1])
            for path in self._paths.values()
            for prediction in self._translate(model, path, sentences, rows)
        )

    def _translate(
        self, model: Model, path: Path, sentences: Mapping[str, Tokens], rows: Rows
    ) -> Iterator[tuple[Tensor, Tensor]]:
        assert isinstance(model, Apart)
        vectors = [model.network_of(name)(sentences[name].take(rows)) for name in path.sources]
        mean = torch.stack(vectors).mean(dim=0)
        for name in path.targets:
            yield self.decoders[module_key(name)](mean, sentences[name].take(rows), 0)


def _find_paths(options: TrainingOptions, texts: Texts) -> dict[str, Path]:
    assert isinstance(options.objective, PathsOptions)
    return find_paths(list(sentences_by_language(texts)), options.objective)
