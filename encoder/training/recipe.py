"""From files of parallel text to an encoder on disk."""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from encoder.bag import BagEncoder
from encoder.checkpoint import save_encoder
from encoder.tokenizer import Tokenizer, train_tokenizer
from encoder.training.data import (
    ParallelText,
    hold_out,
    pair_weights,
    read_parallel_text,
    tokenize_pairs,
)
from encoder.training.loop import TrainingOptions, train_table
from encoder.training.whitening import partly_whitened

if TYPE_CHECKING:
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

# Source sentences of each file that the vocabulary is made from, and the whitening.
VOCABULARY_SENTENCES = 80_000
WHITENING_SENTENCES = 2_000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an encoder is made of.

    ``corpus_weights`` maps a corpus's name to the probability that a pass uses a pair of it;
    corpora that are not named weigh 1. ``whitening`` is the power of that of what is saved;
    ``held_out`` pairs of each file are kept for evaluation.
    """

    files: tuple[Path, ...]
    exclude: frozenset[str] = frozenset()
    corpus_weights: Mapping[str, float] = field(default_factory=dict)
    vocabulary_size: int = 48_000
    whitening: float = 0.3
    held_out: int = 500
    evaluate_every: int = 5_000
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        for name in ("vocabulary_size", "held_out", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)}: expected 1 or more")
        if not 0 <= self.whitening <= 1:
            raise ValueError(f"whitening {self.whitening}: expected 0 to 1")
        for name, weight in self.corpus_weights.items():
            if not 0 <= weight <= 1:
                raise ValueError(f"weight {weight} of corpus {name}: expected 0 to 1")


def train_encoder(
    recipe: Recipe, output: Path, *, on_pairs: Callable[[int], None] = lambda pairs: None
) -> Mapping[str, float]:
    """Train a weighted bag and save it in the folder ``output``.

    The encoder as it stands is saved at every evaluation, so an interrupted training leaves its
    last one.

    Args:
        recipe: data, vocabulary and training options.
        output: the folder to write; its parent must exist.
        on_pairs: called after each step with the number of pairs seen in it.

    Returns:
        The error rate of each language pair's held-out sentences: nearest neighbour by cosine
        among them, mean of both directions.

    Raises:
        ValueError: ``output`` cannot be written, or a file is not parallel text, or too small.
    """
    _check_output(output)
    start = time.monotonic()
    texts, held_out = _read(recipe)
    model = train_tokenizer(
        sample_sentences(recipe, texts, VOCABULARY_SENTENCES),
        vocabulary_size=recipe.vocabulary_size,
    )
    tokenizer = Tokenizer(model)
    whitening_sentences = list(sample_sentences(recipe, texts, WHITENING_SENTENCES))
    pairs = [tokenize_pairs(text, tokenizer, recipe.corpus_weights) for text in texts]
    errors: dict[str, float] = {}

    def on_step(step: int, loss: float, table: torch.Tensor) -> None:
        on_pairs(recipe.options.batch_size)
        done = step + 1
        if done % recipe.evaluate_every and done != recipe.options.steps:
            return
        plain = BagEncoder(name="training", tokenizer=tokenizer, table=table.numpy())
        vectors = plain.encode(whitening_sentences)
        saved = partly_whitened(table.numpy(), vectors, power=recipe.whitening)
        encoder = BagEncoder(name="training", tokenizer=tokenizer, table=saved)
        errors.update((text.name, retrieval_error(encoder, text)) for text in held_out)
        seconds = time.monotonic() - start
        logger.info(
            "step %d: loss %.3f, held-out error %.2f %%, %.0f s",
            *(done, loss, 100 * float(np.mean(list(errors.values()))), seconds),
        )
        facts = _facts(recipe, texts, done, seconds, errors)
        save_encoder(output, table=saved, tokenizer_model=model, facts=facts)

    train_table(pairs, vocabulary_size=len(tokenizer), options=recipe.options, on_step=on_step)
    return errors


def retrieval_error(encoder: BagEncoder, text: ParallelText) -> float:
    """Share of sentences whose nearest neighbour by cosine is not their translation, both ways."""
    cosines = encoder.encode(text.source) @ encoder.encode(text.target).T
    own = np.arange(len(text))
    wrong = [(cosines.argmax(axis=axis) != own).mean() for axis in (0, 1)]
    return float(np.mean(wrong))


def _check_output(folder: Path) -> None:
    """Refuse before the hours of training what could not be written after them."""
    if not folder.parent.is_dir():
        raise ValueError(f"{folder}: there is no folder {folder.parent}; create it")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; the encoder needs a folder")
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        raise ValueError(f"{folder}: not permitted to write there")


def _read(recipe: Recipe) -> tuple[list[ParallelText], list[ParallelText]]:
    texts, held_out = [], []
    for path in recipe.files:
        text = read_parallel_text(path, exclude=recipe.exclude)
        kept, out = hold_out(text, recipe.held_out, seed=recipe.options.seed)
        if not pair_weights(kept, recipe.corpus_weights).any():
            raise ValueError(f"{path}: every pair is of a corpus of weight 0; leave the file out")
        logger.info("%s: %d pairs", text.name, len(kept))
        texts.append(kept)
        held_out.append(out)
    return texts, held_out


def sample_sentences(recipe: Recipe, texts: list[ParallelText], most: int) -> Iterator[str]:
    """From each file ``most`` source sentences, or all if they are fewer, and a third of targets.

    Targets are the same language in nearly every file, hence fewer; what is down-weighted in
    training is so here.
    """
    generator = np.random.default_rng(recipe.options.seed)
    for text in texts:
        weight = pair_weights(text, recipe.corpus_weights).astype(np.float64)
        count = min(most, int(weight.sum()))
        for sentences, share in ((text.source, count), (text.target, count // 3)):
            rows: NDArray[np.int64] = generator.choice(
                len(text), share, replace=False, p=weight / weight.sum()
            )
            yield from (sentences[row] for row in rows)


def _facts(
    recipe: Recipe,
    texts: list[ParallelText],
    steps: int,
    seconds: float,
    errors: Mapping[str, float],
) -> dict[str, Any]:
    """What the saved encoder tells of its training."""
    return {
        "pairs": {text.name: text.corpus_sizes() for text in texts},
        "excluded": sorted(recipe.exclude),
        "corpus_weights": dict(recipe.corpus_weights),
        "whitening": recipe.whitening,
        "options": dataclasses.asdict(recipe.options),
        "steps": steps,
        "seconds": round(seconds),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "held_out_error": {name: round(error, 4) for name, error in errors.items()},
    }
