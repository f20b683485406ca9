"""A language's words, from its text or from given vectors, and the bags that are made of two."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import MORE
from encoder.bag.features import Features
from encoder.checkpoint import read_config, save_encoder
from encoder.monolingual.fitting import fit_table, spelling_table, weighted
from encoder.monolingual.options import WordOptions
from encoder.monolingual.skipgram import SkipGram
from encoder.monolingual.vec import WordVectors
from encoder.monolingual.vocabulary import feature_rows, read_vocabulary, zipfian_idf
from encoder.rows import sum_rows
from encoder.tokenizer import Tokenizer
from encoder.training.data import join

logger = logging.getLogger(__name__)

SHARED_PENALTY = 0.05  # of the squared rows that both languages share: little is left open
SPELLING = 256  # dimensions in which words are alike by their spelling alone
OWN_PENALTY = 1.0  # of how a language's rows differ from those: names keep what is shared


@dataclass(frozen=True, kw_only=True)
class Side:
    """V words of a language with vectors float32 (V, D) and weights float32 (V,)."""

    words: WordVectors
    weights: NDArray[np.float32]


def of_vectors(words: WordVectors) -> Side:
    """Return the side of given vectors, whose weights follow from the words' ranks."""
    return Side(words=words, weights=zipfian_idf(len(words)))


def of_text(
    sentences: Sequence[str],
    tokenizer: Tokenizer,
    options: WordOptions,
    state: Path,
    *,
    progress: Callable[[int], None] = lambda words: None,
) -> Side:
    """Learn the vectors of the words of S different sentences; their weights are their idf.

    Args:
        sentences: the text.
        tokenizer: of both languages.
        options: of the words.
        state: the file that an interrupted training goes on from, written after each epoch.
        progress: called with the words seen, in parts.

    Raises:
        ValueError: the text is too small, or ``state`` is of another text or other options.
    """
    identity: dict[str, Any] = {
        **asdict(options),
        "text": _digest("\n".join(sentences).encode("utf-8", "surrogatepass")),
        "tokenizer": _digest(tokenizer.model),
    }
    vocabulary = read_vocabulary(sentences, tokenizer, min_count=options.min_count)
    features = Features(tokenizer.pieces(), options.ngram_rows)
    rows = feature_rows(vocabulary.words, tokenizer, features)
    training = SkipGram(vocabulary, rows, len(features), options)
    if state.exists():
        training.restore(state, identity)
        logger.info("%s: going on after epoch %d", state.stem, training.epoch)
    while training.epoch < options.epochs:
        training.advance(progress)
        training.save(state, identity)
    words = WordVectors(words=vocabulary.words, vectors=training.vectors())
    return Side(words=words, weights=vocabulary.idf)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def save_sides(
    folder: Path,
    sides: Mapping[str, Side],
    tokenizer: Tokenizer,
    options: WordOptions,
    facts: Mapping[str, Any],
) -> None:
    """Write bags in which words have the directions of their vectors and their weights.

    One table is fitted to both languages; each language's own table differs from it by what its
    words ask for. In ``SPELLING`` further dimensions both have the same random rows, as long in all
    as the others: there, names and numbers are alike, which have no vector or a poor one.

    Args:
        folder: to write; the second language's bag goes there, the first one's beside it, as if
            added to it.
        sides: of two languages, vectors in one space.
        tokenizer: of both languages.
        options: with the rows that n-grams share.
        facts: kept in the configurations.
    """
    features = Features(tokenizer.pieces(), options.ngram_rows)
    rows = [feature_rows(side.words.words, tokenizer, features) for side in sides.values()]
    wanted = [weighted(side.words.vectors, side.weights) for side in sides.values()]
    count = len(features)
    spelling = spelling_table(
        rows, [side.weights for side in sides.values()], rows=count, dim=SPELLING, seed=options.seed
    )
    shared = fit_table(join(rows), np.concatenate(wanted), rows=count, penalty=SHARED_PENALTY)
    source, target = (
        np.hstack(
            [
                shared
                + fit_table(own, aim - sum_rows(shared, own), rows=count, penalty=OWN_PENALTY),
                spelling,
            ]
        )
        for own, aim in zip(rows, wanted, strict=True)
    )
    known = {
        **facts,
        "pairs": {"-".join(sides): {}},
        "options": asdict(options),
        "words": {language: len(side.words) for language, side in sides.items()},
    }
    save = partial(save_encoder, ngram_rows=options.ngram_rows, tokenizer_model=tokenizer.model)
    save(folder, table=target, facts=known)
    teacher = f"{folder.resolve().name}@{read_config(folder)['sha256'][:12]}"
    save(folder / MORE, table=source, facts={**known, "teacher": teacher})
