"""Words of a language with vectors, and the bags of two languages.

Given vectors are fitted by least squares as sums of the words' features (Zhao et al. 2018,
"Generalizing Word Embeddings using Bag of Subwords"). So words without a vector also get one, whose
length is their weight. Axes: ``V`` words, ``R`` rows of the table, ``D`` dimensions.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
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
from encoder.tokenizer import Tokenizer, Tokens, join
from miner.threads import blocks

MIN_SHARE = 1e-6  # least share of the sentences that have a feature
STEPS = 20  # steps of conjugate gradients
SHARED_PENALTY = 0.05  # ridge penalty of the rows that both languages share
SPELLING = 256  # dimensions that represent the spelling only
OWN_PENALTY = 1.0  # ridge penalty of a language's differences, so that names stay shared

logger = logging.getLogger(__name__)


def scale_to(vectors: Matrix, weights: Matrix) -> Matrix:
    """Scale a copy of vectors (V, D), except 0, to the lengths ``weights``."""
    rows = vectors.copy()
    normalize_rows(rows)
    return rows * weights[:, None]


def fit_table(words: Tokens, wanted: Matrix, *, rows: int, penalty: float) -> Matrix:
    """Fit table rows whose sums over each word's features approach ``wanted``.

    ``words`` are the row numbers of each of V words, below R = ``rows``, and ``wanted``, float32
    (V, D), their vectors. The table is float32 (R, D). It is ridge regression, with a ``penalty``
    above 0 on the squared rows, by 20 steps of conjugate gradients (Hestenes & Stiefel 1952).
    """
    owners = Tokens.group(words.owners.astype(np.int32), words.ids, rows)
    table = np.zeros((rows, wanted.shape[1]), dtype=np.float32)
    residual = sum_rows(wanted, owners)
    direction = residual.copy()
    size = _dot(residual, residual)
    for _ in range(STEPS):
        product = sum_rows(sum_rows(direction, words), owners) + np.float32(penalty) * direction
        step = _ratio(size, _dot(direction, product))
        table += step * direction
        residual -= step * product
        size_before, size = size, _dot(residual, residual)
        direction = residual + _ratio(size, size_before) * direction
    return table


def _dot(first: Matrix, second: Matrix) -> NDArray[np.float64]:
    return np.einsum("rd,rd->d", first, second, dtype=np.float64)


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Matrix:
    """Divide (D,) by (D,), with 0 for dimensions that are already solved."""
    quotients = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return quotients.astype(np.float32)


def spelling_table(
    words: Sequence[Tokens], weights: Sequence[Matrix], *, rows: int, dim: int, seed: int
) -> Matrix:
    """Draw random rows, so that words with common features are similar.

    The table is float32 (``rows``, ``dim``). ``words`` are the row numbers of each language's V
    words, and ``weights``, float32 (V,), their idf. A row's expected length is in proportion to its
    feature's idf. Over the text, squared lengths of words have the mean of squared ``weights``.
    """
    all_shares = [np.exp(-part.astype(np.float64)) for part in weights]  # of the sentences
    feature_shares = np.full(rows, MIN_SHARE)
    for part, shares in zip(words, all_shares, strict=True):
        np.add.at(feature_shares, part.ids, shares[part.owners] / len(words))
    table = np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)
    table *= -np.log(np.minimum(feature_shares, 1)).astype(np.float32)[:, None]
    expected_squares = squares = 0.0
    for part, shares, idf in zip(words, all_shares, weights, strict=True):
        sums = sum_rows(table, part)
        expected_squares += float(shares @ idf.astype(np.float64) ** 2)
        squares += float(shares @ np.einsum("vd,vd->v", sums, sums, dtype=np.float64))
    return table * np.float32(np.sqrt(expected_squares / squares))


def learn_words(
    sentences: Sequence[str],
    tokenizer: Tokenizer,
    options: WordOptions,
    state: Path,
    *,
    progress: Callable[[int], None] = lambda words: None,
) -> WordVectors:
    """Learn the vectors of the words of one language, weighted by idf.

    ``sentences`` are distinct. Each epoch writes the file ``state``, in an existing folder. From
    it, training resumes if it exists. ``progress`` gets the number of words since its last call.
    Errors of ``read_vocabulary``, ``advance``, ``load_state`` and ``save_state`` are raised.
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
    return WordVectors(words=vocabulary.words, vectors=training.vectors(), weights=vocabulary.idf)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def feature_rows(words: Sequence[str], tokenizer: Tokenizer, features: Features) -> Tokens:
    """Return the row numbers in a bag's table of each of one or more words."""
    parts = []
    for block in blocks(len(words), CHUNK_SENTENCES):
        strings, rows = features.split(tokenizer.encode(words[block]))
        word_rows = rows.take(strings.ids.astype(np.int64))
        parts.append(Tokens(ids=word_rows.ids, offsets=word_rows.offsets[strings.offsets]))
    return join(parts)


def save_sides(
    folder: Path,
    sides: dict[str, WordVectors],
    tokenizer: Tokenizer,
    options: WordOptions,
    facts: Facts,
) -> None:
    """Write bags whose words have about the vectors and weights of two sides.

    ``sides`` are by language. The second language's bag goes to ``folder``, the first one's to the
    subfolder ``more``, as an added language. In 256 further dimensions, both have the same random
    rows, for names and numbers. ``facts``, with others added, and errors are of ``save_encoder``.
    """
    features = Features(tokenizer.pieces(), options.ngram_rows)
    count, weights = len(features), [side.weights for side in sides.values()]
    rows = [feature_rows(side.words, tokenizer, features) for side in sides.values()]
    targets = [scale_to(side.vectors, side.weights) for side in sides.values()]
    spelling = spelling_table(rows, weights, rows=count, dim=SPELLING, seed=options.seed)
    shared = fit_table(join(rows), np.concatenate(targets), rows=count, penalty=SHARED_PENALTY)
    tables = []
    for part, goal in zip(rows, targets, strict=True):
        extra = fit_table(part, goal - sum_rows(shared, part), rows=count, penalty=OWN_PENALTY)
        tables.append(np.hstack([shared + extra, spelling]))
    source, target = tables
    all_facts = {
        **facts,
        "pairs": {"-".join(sides): {}},
        "options": asdict(options),
        "words": {language: len(side) for language, side in sides.items()},
    }
    save = partial(save_encoder, ngram_rows=options.ngram_rows, tokenizer_model=tokenizer.model)
    save(folder, table=target, facts=all_facts)
    teacher = f"{folder.resolve().name}@{read_config(folder)['sha256'][:12]}"
    save(folder / MORE, table=source, facts={**all_facts, "teacher": teacher})
