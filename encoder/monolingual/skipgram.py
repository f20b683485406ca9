"""Skip-gram with subwords: a word's vector foretells the words around it.

Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information": a word is the mean of a
row of its own and those of its subwords, which are features of a bag (``encoder.bag.features``).
All contexts of a word are learnt before its rows change. One thread learns a language, so that the
result is the same each time; two languages are learnt side by side.
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
from encoder.tokenizer import SPACE, Tokenizer, Tokens
from encoder.training.data import join
from encoder.training.state import State, load_state, save_state

CHUNK_SENTENCES = 16_384  # bounds the memory of a step
WINDOW = 5
NEGATIVES = np.float32(5)  # for each context
FREQUENT = 1e-4  # share of the text from which on a word is passed over at times
NOISE_WORDS, NOISE_POWER = 1 << 20, 0.75
PARTS = 100  # of an epoch, in each of which the learning rate is the same

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The V most frequent words of a text, and the text in numbers of them.

    ``counts`` are int64 (V,), ``idf`` float32 (V,) the logarithm of how many sentences there are
    for each that has the word. ``text`` has the numbers of the words of each sentence.
    """

    words: list[str]
    counts: NDArray[np.int64]
    idf: NDArray[np.float32]
    text: Tokens


def read_vocabulary(sentences: Sequence[str], tokenizer: Tokenizer, min_count: int) -> Vocabulary:
    """Count the words of S sentences: what the tokeniser leaves between spaces, without edges.

    In scripts without spaces each subword is a word. Words with characters that the tokeniser does
    not know are left out, and those beyond ``MAX_WORDS``. Of equally frequent ones the first in the
    alphabet comes first.
    """
    numbers: dict[str, int] = {}
    text = join(
        [
            _numbered(sentences[start : start + CHUNK_SENTENCES], tokenizer, numbers)
            for start in range(0, len(sentences), CHUNK_SENTENCES)
        ]
    )
    counts = np.bincount(text.ids, minlength=len(numbers))
    if "" in numbers:
        counts[numbers[""]] = 0
    names = np.array(list(numbers), dtype=object)
    often = sorted(np.flatnonzero(counts >= min_count), key=lambda n: (-counts[n], names[n]))
    if len(often) < 2:
        raise ValueError(
            f"fewer than 2 words occur {min_count} times; use more text, or lower --min-count"
        )
    order = np.array(often[:MAX_WORDS])
    place = np.full(len(numbers), -1, dtype=np.int32)
    place[order] = np.arange(len(order))
    known = place[text.ids] >= 0
    kept, owners = place[text.ids[known]], text.owners[known]
    once = np.unique(owners * len(order) + kept)
    there = np.bincount(once % len(order), minlength=len(order))
    return Vocabulary(
        words=names[order].tolist(),
        counts=counts[order],
        idf=np.log((1 + len(sentences)) / there).astype(np.float32),
        text=Tokens(ids=kept, offsets=np.searchsorted(owners, np.arange(len(sentences) + 1))),
    )


def _numbered(texts: Sequence[str], tokenizer: Tokenizer, numbers: dict[str, int]) -> Tokens:
    """Return sentences as numbers of words, which are added to ``numbers``."""
    pieces = tokenizer.pieces()
    sentences, words = Features(pieces).split(tokenizer.encode(texts))
    found = np.empty(len(words), dtype=np.int32)
    for row, (start, end) in enumerate(pairwise(words.offsets)):
        parts = [pieces[piece] for piece in words.ids[start:end]]
        word = "".join(parts).replace(SPACE, " ") if all(parts) else ""  # one is unknown
        found[row] = numbers.setdefault(_EDGES.sub("", word.strip()), len(numbers))
    return Tokens(ids=found[sentences.ids], offsets=sentences.offsets)


class SkipGram:
    """The vectors of a vocabulary, after ``epoch`` passes over its text.

    ``inputs`` are rows of the V words and of the features after them, ``outputs`` of words as
    contexts; a word is the mean of its own and its features' inputs.
    """

    def __init__(
        self, vocabulary: Vocabulary, features: Tokens, feature_count: int, options: WordOptions
    ) -> None:
        count, dim = len(vocabulary.words), options.dim
        generator = np.random.default_rng(options.seed)
        drawn = generator.random((count + feature_count, dim), dtype=np.float32)
        self.inputs = (drawn - np.float32(0.5)) * np.float32(2 / dim)
        self.outputs = np.zeros((count, dim), dtype=np.float32)
        self.epoch = 0
        self._vocabulary, self._options = vocabulary, options
        self._rows = _with_own(features)

    def vectors(self) -> Matrix:
        """Return the vectors of the V words, float32 (V, D)."""
        counts = np.diff(self._rows.offsets).astype(np.float32)
        return sum_rows(self.inputs, self._rows) / counts[:, None]

    def advance(self, progress: Callable[[int], None]) -> None:
        """Go once over the text; ``progress`` is called with the words seen, in parts."""
        from encoder.monolingual.compiled import train_sentences  # loads Numba

        options, text, counts = self._options, self._vocabulary.text, self._vocabulary.counts
        generator = np.random.default_rng([options.seed, self.epoch])
        state = generator.integers(2**64, size=1, dtype=np.uint64)
        words = self.inputs, self.outputs, self._rows.ids, self._rows.offsets
        drawn = _kept(counts), _noise(counts), WINDOW, NEGATIVES
        edges = np.linspace(0, len(text), PARTS + 1).astype(np.int64)
        for part, (start, end) in enumerate(pairwise(edges)):
            done = (self.epoch + part / PARTS) / options.epochs
            offsets = text.offsets[start : end + 1]
            rate = np.float32(options.learning_rate * (1 - done))
            train_sentences(words, (text.ids, offsets), drawn, rate, state)
            progress(int(offsets[-1] - offsets[0]))
        if not np.isfinite(self.inputs).all():
            raise ValueError(
                f"training diverged; restart with a learning rate below {options.learning_rate}"
            )
        self.epoch += 1

    def save(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Write the state; what was in ``path`` is kept until it is written in full."""
        tensors = {"inputs": self.inputs, "outputs": self.outputs}
        save_state(path, State(identity=identity, tensors=tensors, step=self.epoch))

    def restore(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Go on from what ``save`` wrote; a ValueError if of other text or options, or damaged."""
        state = load_state(path, identity)
        self.inputs, self.outputs = state.tensors["inputs"], state.tensors["outputs"]
        self.epoch = state.step


def _with_own(features: Tokens) -> Tokens:
    """Return the rows of V words, each with its own row before its features'."""
    count = len(features)
    ids = np.insert(features.ids + np.int32(count), features.offsets[:-1], np.arange(count))
    return Tokens(ids=ids.astype(np.int32), offsets=features.offsets + np.arange(count + 1))


def _kept(counts: NDArray[np.int64]) -> Matrix:
    """Return the probability of each word to be looked at (Mikolov et al. 2013; fastText's)."""
    shares = FREQUENT / (counts / counts.sum())
    return np.asarray(np.minimum(1, np.sqrt(shares) + shares), dtype=np.float32)


def _noise(counts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return words, each as often as the power of its count says."""
    shares = np.cumsum(counts**NOISE_POWER)
    middles = (np.arange(NOISE_WORDS) + 0.5) / NOISE_WORDS * shares[-1]
    return np.searchsorted(shares, middles).astype(np.int32)
