"""A language's words, from its text or from given vectors, and the bags that are made of two.

Words get given vectors by the least squares of the sums of their features. Zhao et al. 2018,
"Generalizing Word Embeddings using Bag of Subwords", so that words without a vector have one, too;
here at the length that says how much a word counts. Axes: ``V`` words, ``R`` rows of the table,
``D`` dimensions.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import MORE
from encoder.bag.features import Features
from encoder.checkpoint import Facts, read_config, save_encoder
from encoder.monolingual.options import WordOptions
from encoder.monolingual.skipgram import CHUNK_SENTENCES, SkipGram, read_vocabulary
from encoder.monolingual.vec import WordVectors
from encoder.rows import Matrix, normalize_rows, sum_rows
from encoder.tokenizer import Tokenizer, Tokens
from encoder.training.data import join

Floats = NDArray[np.float32]

RAREST = 1e-6  # share of the sentences that any feature is taken to be in
STEPS = 20  # of conjugate gradients
SHARED_PENALTY = 0.05  # of the squared rows that both languages share: little is left open
SPELLING = 256  # dimensions in which words are alike by their spelling alone
OWN_PENALTY = 1.0  # of how a language's rows differ from those: names keep what is shared

logger = logging.getLogger(__name__)


def weighted(vectors: Matrix, weights: Floats) -> Matrix:
    """Return rows (V, D) of the length that weights (V,) say; zero rows stay zero."""
    rows = vectors.copy()
    normalize_rows(rows)
    return rows * weights[:, None]


def fit_table(words: Tokens, wanted: Matrix, *, rows: int, penalty: float) -> Matrix:
    """Return the table (R, D) whose sums over each word's rows are nearest to those wanted (V, D).

    ``penalty``, above 0, is of the squared rows (ridge regression). Each dimension is solved by
    conjugate gradients on the normal equations (Hestenes & Stiefel 1952).
    """
    order = np.argsort(words.ids, kind="stable")
    offsets = np.searchsorted(words.ids[order], np.arange(rows + 1))
    back = Tokens(ids=words.owners[order].astype(np.int32), offsets=offsets)  # words of each row
    table = np.zeros((rows, wanted.shape[1]), dtype=np.float32)
    residual = sum_rows(wanted, back)
    direction = residual.copy()
    size = _dot(residual, residual)
    for _ in range(STEPS):
        product = sum_rows(sum_rows(direction, words), back) + np.float32(penalty) * direction
        step = _ratio(size, _dot(direction, product))
        table += step * direction
        residual -= step * product
        before, size = size, _dot(residual, residual)
        direction = residual + _ratio(size, before) * direction
    return table


def _dot(one: Matrix, other: Matrix) -> NDArray[np.float64]:
    return np.einsum("rd,rd->d", one, other, dtype=np.float64)


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Matrix:
    """Return quotients (D,), 0 where a dimension is solved."""
    found = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found.astype(np.float32)


def spelling_table(
    words: Sequence[Tokens], weights: Sequence[Floats], *, rows: int, dim: int, seed: int
) -> Matrix:
    """Return random rows (R, D) by which words are alike that share rare features.

    ``words`` are the rows of the V words of each language, ``weights`` (V,) their idf. A row is as
    long as the logarithm of how rarely sentences have a word with its feature, as far as the words
    say; all are scaled so that words are as long as their weights in the mean over the text.
    """
    often = [np.exp(-each.astype(np.float64)) for each in weights]  # shares of the sentences
    found = np.full(rows, RAREST)
    for each, shares in zip(words, often, strict=True):
        np.add.at(found, each.ids, shares[each.owners] / len(words))
    table = np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)
    table *= -np.log(np.minimum(found, 1)).astype(np.float32)[:, None]
    asked = there = 0.0
    for each, shares, idf in zip(words, often, weights, strict=True):
        sums = sum_rows(table, each)
        asked += float(shares @ idf.astype(np.float64) ** 2)
        there += float(shares @ np.einsum("vd,vd->v", sums, sums, dtype=np.float64))
    return table * np.float32(np.sqrt(asked / there))


@dataclass(frozen=True, kw_only=True)
class Side:
    """V words of a language with vectors float32 (V, D) and weights float32 (V,)."""

    words: WordVectors
    weights: Floats


def of_vectors(words: WordVectors) -> Side:
    """Return the side of given vectors: a word's frequency is as the inverse of its rank (Zipf)."""
    return Side(words=words, weights=np.log(np.arange(2, len(words) + 2)).astype(np.float32))


def of_text(
    sentences: Sequence[str],
    tokenizer: Tokenizer,
    options: WordOptions,
    state: Path,
    *,
    progress: Callable[[int], None] = lambda words: None,
) -> Side:
    """Learn the vectors of the words of S different sentences; their weights are their idf.

    An interrupted training of the same text and options goes on from the file ``state``, written
    after each epoch. ``progress`` is called with the words seen, in parts.
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
        logger.info("%s: resuming after epoch %d", state.stem, training.epoch)
    while training.epoch < options.epochs:
        training.advance(progress)
        training.save(state, identity)
    words = WordVectors(words=vocabulary.words, vectors=training.vectors())
    return Side(words=words, weights=vocabulary.idf)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def feature_rows(words: Sequence[str], tokenizer: Tokenizer, features: Features) -> Tokens:
    """Return the rows of the table of a bag that each of V words is the sum of."""
    parts = []
    for start in range(0, len(words), CHUNK_SENTENCES):
        strings, rows = features.split(tokenizer.encode(words[start : start + CHUNK_SENTENCES]))
        chosen = rows.take(strings.ids.astype(np.int64))
        parts.append(Tokens(ids=chosen.ids, offsets=chosen.offsets[strings.offsets]))
    return join(parts)


def save_sides(
    folder: Path, sides: dict[str, Side], tokenizer: Tokenizer, options: WordOptions, facts: Facts
) -> None:
    """Write bags in which words have the directions of their vectors and their weights.

    The second language's bag goes to ``folder``, the first one's beside it, as if added to it.
    One table is fitted to both languages; each language's own table differs from it by what its
    words ask for. In ``SPELLING`` further dimensions both have the same random rows, as long in all
    as the others: there, names and numbers are alike, which have no vector or a poor one.
    """
    features = Features(tokenizer.pieces(), options.ngram_rows)
    count, weights = len(features), [side.weights for side in sides.values()]
    rows = [feature_rows(side.words.words, tokenizer, features) for side in sides.values()]
    wanted = [weighted(side.words.vectors, side.weights) for side in sides.values()]
    spelling = spelling_table(rows, weights, rows=count, dim=SPELLING, seed=options.seed)
    shared = fit_table(join(rows), np.concatenate(wanted), rows=count, penalty=SHARED_PENALTY)
    tables = []
    for own, aim in zip(rows, wanted, strict=True):
        rest = fit_table(own, aim - sum_rows(shared, own), rows=count, penalty=OWN_PENALTY)
        tables.append(np.hstack([shared + rest, spelling]))
    source, target = tables
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
