"""Skip-gram with subwords, which predicts the words around a word.

A word is the mean of a row of its own and of its features' rows (Bojanowski et al. 2017, as in
``encoder.bag.features``). One thread trains a language, so results are reproducible on a CPU.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.bag.features import Features
from encoder.monolingual.options import MAX_WORDS, WordOptions
from encoder.rows import Matrix, sum_rows
from encoder.tokenizer import SPACE, Tokenizer, Tokens, join
from encoder.training.state import State, load_state, save_state
from miner.threads import blocks

CHUNK_SENTENCES = 16_384  # sentences per step, to limit memory
WINDOW = 5  # context words per side
NEGATIVES = np.float32(5)  # per context word
FREQUENT = 1e-4  # share of the text above which occurrences of a word are sampled
NOISE_WORDS = 1 << 20  # length of the list that negatives are drawn from
NOISE_POWER = 0.75  # exponent of a word's count in its share of that list
PARTS = 100  # parts of an epoch with equal learning rates

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The V most frequent words of S sentences, and the sentences' texts.

    Attributes:
        words: the words, the most frequent first.
        counts: occurrences of each word, int64 (V,).
        idf: log((1 + S) / number of sentences with the word), float32 (V,).
        text: each sentence's words, as positions in ``words``. Others are dropped.
    """

    words: list[str]
    counts: NDArray[np.int64]
    idf: NDArray[np.float32]
    text: Tokens


def read_vocabulary(sentences: Sequence[str], tokenizer: Tokenizer, min_count: int) -> Vocabulary:
    """Find the frequent words of S sentences.

    Words are between spaces, without punctuation at their ends, and normalised by the tokeniser. In
    scripts without spaces, each subword is a word. Words with fewer than ``min_count`` occurrences
    or unknown characters, or after the 200,000 most frequent, are skipped. Ties are alphabetical.

    Raises:
        ValueError: The text has fewer than two words of ``min_count`` occurrences.
    """
    numbers = {"": 0}  # "" is punctuation, or has unknown characters
    chunks = (sentences[block] for block in blocks(len(sentences), CHUNK_SENTENCES))
    text = join([_number_words(chunk, tokenizer, numbers) for chunk in chunks])
    counts = np.bincount(text.ids, minlength=len(numbers))
    counts[0] = 0
    names = np.array(list(numbers), dtype=object)
    frequent = sorted(np.flatnonzero(counts >= min_count), key=lambda n: (-counts[n], names[n]))
    if len(frequent) < 2:
        raise ValueError(
            f"--min-count {min_count}: fewer than 2 words are so frequent in this text; lower it, "
            "or use more text"
        )
    order = np.array(frequent[:MAX_WORDS])
    new_numbers = np.full(len(numbers), -1, dtype=np.int32)
    new_numbers[order] = np.arange(len(order))
    kept = text.keep(new_numbers[text.ids] >= 0)
    ids = new_numbers[kept.ids]
    word_sentences = np.unique(kept.owners * len(order) + ids)
    sentence_counts = np.bincount(word_sentences % len(order), minlength=len(order))
    return Vocabulary(
        words=names[order].tolist(),
        counts=counts[order],
        idf=np.log((1 + len(sentences)) / sentence_counts).astype(np.float32),
        text=Tokens(ids=ids, offsets=kept.offsets),
    )


def _number_words(texts: Sequence[str], tokenizer: Tokenizer, numbers: dict[str, int]) -> Tokens:
    pieces = tokenizer.pieces()
    sentences, words = Features(pieces).split(tokenizer.encode(texts))
    word_numbers = np.empty(len(words), dtype=np.int32)
    for row, (start, end) in enumerate(pairwise(words.offsets)):
        parts = [pieces[piece] for piece in words.ids[start:end]]
        word = "".join(parts).replace(SPACE, " ") if all(parts) else ""  # "" if a piece is unknown
        word_numbers[row] = numbers.setdefault(_EDGES.sub("", word.strip()), len(numbers))
    return Tokens(ids=word_numbers[sentences.ids], offsets=sentences.offsets)


class SkipGram:
    """Skip-gram vectors of a vocabulary, in training.

    ``epoch`` is the number of passes over the text so far. ``inputs``, float32, are rows of the V
    words, then of ``feature_count`` features, and ``outputs`` of words as contexts. A word's vector
    is the mean of its own and its features' inputs. ``features`` are each word's feature numbers.
    """

    def __init__(
        self, vocabulary: Vocabulary, features: Tokens, feature_count: int, options: WordOptions
    ) -> None:
        count, dim = len(vocabulary.words), options.dim
        generator = np.random.default_rng(options.seed)
        random_rows = generator.random((count + feature_count, dim), dtype=np.float32)
        self.inputs = (random_rows - np.float32(0.5)) * np.float32(2 / dim)
        self.outputs = np.zeros((count, dim), dtype=np.float32)
        self.epoch = 0
        self._vocabulary, self._options = vocabulary, options
        ids = np.insert(features.ids + np.int32(count), features.offsets[:-1], np.arange(count))
        offsets = features.offsets + np.arange(count + 1)  # a word's own row comes first
        self._rows = Tokens(ids=ids.astype(np.int32), offsets=offsets)

    def vectors(self) -> Matrix:
        """Return the vectors of the V words, float32 (V, D)."""
        counts = np.diff(self._rows.offsets).astype(np.float32)
        return sum_rows(self.inputs, self._rows) / counts[:, None]

    def advance(self, progress: Callable[[int], None]) -> None:
        """Train for the next epoch, of at most the options' ``epochs``.

        ``progress`` is called with the number of words of each hundredth of the sentences.

        Raises:
            ValueError: Training diverged, so that vectors are not finite.
        """
        from encoder.monolingual.compiled import train_sentences  # loads Numba

        options, text, counts = self._options, self._vocabulary.text, self._vocabulary.counts
        generator = np.random.default_rng([options.seed, self.epoch])
        state = generator.integers(2**64, size=1, dtype=np.uint64)
        words = self.inputs, self.outputs, self._rows.ids, self._rows.offsets
        sampling = _keep_rates(counts), _noise_words(counts), WINDOW, NEGATIVES
        edges = np.linspace(0, len(text), PARTS + 1).astype(np.int64)
        for part, (start, end) in enumerate(pairwise(edges)):
            done = (self.epoch + part / PARTS) / options.epochs
            offsets = text.offsets[start : end + 1]
            rate = np.float32(options.learning_rate * (1 - done))
            train_sentences(words, (text.ids, offsets), sampling, rate, state)
            progress(int(offsets[-1] - offsets[0]))
        if not np.isfinite(self.inputs).all():
            raise ValueError(
                f"--learning-rate {options.learning_rate}: word vectors became infinite; pass a "
                "lower one"
            )
        self.epoch += 1

    def save(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Write or replace the state by ``save_state``, with its ``identity``."""
        tensors = {"inputs": self.inputs, "outputs": self.outputs}
        save_state(path, State(identity=identity, tensors=tensors, step=self.epoch))

    def restore(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Continue from the state of ``save``, with errors as ``load_state``."""
        state = load_state(path, identity)
        self.inputs, self.outputs = state.tensors["inputs"], state.tensors["outputs"]
        self.epoch = state.step


def _keep_rates(counts: NDArray[np.int64]) -> Matrix:
    # Mikolov et al. 2013, as in fastText.
    shares = FREQUENT / (counts / counts.sum())
    return np.asarray(np.minimum(1, np.sqrt(shares) + shares), dtype=np.float32)


def _noise_words(counts: NDArray[np.int64]) -> NDArray[np.int32]:
    shares = np.cumsum(counts**NOISE_POWER)
    middles = (np.arange(NOISE_WORDS) + 0.5) / NOISE_WORDS * shares[-1]
    return np.searchsorted(shares, middles).astype(np.int32)
