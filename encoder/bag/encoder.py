"""The encoder whose sentence vectors are unit-length sums of word vectors.

A word's vector is the sum of the vectors of its features (``encoder.bag.features``). Its length is
the word's weight. Training on sums shrinks the vectors of words that say little.
"""

import re
import sys
import threading
from collections.abc import Sequence
from copy import copy
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from encoder import Precision
from encoder.bag.features import SCHEME, Features
from encoder.base import BaseEncoder, as_list
from encoder.rows import Matrix, PackedTable, normalize_rows, sum_rows
from encoder.tokenizer import SPACE, Tokenizer, Tokens
from encoder.words import Words, join_words
from miner.threads import blocks

if TYPE_CHECKING:
    from encoder.bag.known_words import WordCache  # loads Numba

KNOWN_FROM = 4096  # sentences; for fewer, remembering their words takes longer than it saves
CHUNK_SENTENCES = 16_384  # sentences per step, to limit memory


class BagEncoder(BaseEncoder):
    """An encoder that sums the vectors of a sentence's pieces and n-grams.

    ``table``, float32 or packed, has rows of the V pieces of ``tokenizer``, then ``ngram_rows`` of
    n-grams, by default none. ``scheme`` is the version of ``Features``, by default 5. ``namer`` is
    the bag of ``with_names``, or None. ValueError says that the table has a wrong number of rows.
    """

    def __init__(
        self,
        *,
        name: str,
        tokenizer: Tokenizer,
        table: Matrix | PackedTable,
        ngram_rows: int = 0,
        scheme: int = SCHEME,
    ) -> None:
        if len(table) != len(tokenizer) + ngram_rows:
            pieces = len(table) - ngram_rows
            raise ValueError(
                f"encoder {name}: {pieces} vectors for {len(tokenizer)} pieces, so "
                "weights and tokeniser are from different trainings; copy the folder again"
            )
        self.name, self.scheme, self.dim = name, scheme, table.shape[1]
        self.precision: Precision = "float32"
        self.tokenizer_model = tokenizer.model
        self._tokenizer, self._table = tokenizer, table
        self._features = Features(tokenizer.pieces(), ngram_rows, scheme=scheme)
        self._known: WordCache | None = None
        self._lock = threading.Lock()  # around the known words, which each call adds to
        self.namer: BagEncoder | None = None

    def with_names(self, other: "BagEncoder") -> "BagEncoder":
        """Return a copy that encodes names also by another bag of the same space.

        ``encode`` adds ``other``'s vectors of ``find_names`` before it normalises the sums.
        """
        copied = copy(self)
        copied.namer = other
        return copied

    def _embed(self, sentences: Sequence[str], *, normalize: bool) -> Matrix:
        vectors = np.empty((len(sentences), self.dim), dtype=np.float32)
        for block in blocks(len(sentences), CHUNK_SENTENCES):
            with self._lock:
                numbers, words = self._sum_words(sentences[block])
                sum_rows(words, numbers, out=vectors[block])
            if self.namer is not None:
                vectors[block] += self.namer.encode(find_names(sentences[block]), normalize=False)
        if normalize:
            normalize_rows(vectors)
        return vectors

    def rows(self) -> Matrix:
        """Return a copy of the table, float32 (V + ``ngram_rows``, D)."""
        return np.array(self._table[np.arange(len(self._table))])

    def words(self, sentences: str | Sequence[str]) -> Words:
        """Return the words of sentences, or of one, with vectors and weights.

        A weight is the length of the word's vector in the sum. A sentence's vector is the sum of
        its words' unit vectors times weights, at unit length. But if ``with_names`` added an
        encoder, a name has the mean of both encoders' unit vectors, at unit length. It follows
        the sentence's own words if its place is unknown, as in scripts without spaces.
        """
        with self._lock:
            numbers, known = self._sum_words(as_list(sentences))
            used = np.zeros(len(known), dtype=np.bool_)
            used[numbers.ids] = True
            vectors = known.take(np.flatnonzero(used), axis=0)  # twice as fast as a mask
        ids = (used.cumsum(dtype=np.int32) - 1)[numbers.ids]
        weights = normalize_rows(vectors)
        own_words = Words(vectors=vectors, weights=weights, ids=ids, offsets=numbers.offsets)
        if self.namer is None:
            return own_words
        return _average_names(own_words, as_list(sentences), self.namer)

    def split(self, sentences: Sequence[str]) -> list[list[str]]:
        """Split sentences into the normalised texts of their words.

        They are in the order of ``words``, without names. They lack unknown pieces, and may be "".
        """
        words, offsets = self._features.words(self._tokenizer.encode(sentences))
        pieces = self._tokenizer.pieces(words.ids.tolist())
        parts = (pieces[first:last] for first, last in pairwise(words.offsets.tolist()))
        texts = ["".join(part).replace(SPACE, "") for part in parts]
        return [texts[first:last] for first, last in pairwise(offsets.tolist())]

    def _sum_words(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        # Word numbers by sentence, and vectors of words (W, D), both valid until the next call.
        uses_cache = self._known is not None or len(sentences) >= KNOWN_FROM
        if len(sentences) and uses_cache and "encoder.compiled" in sys.modules:
            if self._known is None:
                from encoder.bag.known_words import WordCache

                self._known = WordCache(self._tokenizer, self._features, self._table)
            return self._known.split(sentences)
        numbers, words = self._features.split(self._tokenizer.encode(sentences))
        return numbers, sum_rows(self._table, words)


def _average_names(words: Words, sentences: Sequence[str], namer: "BagEncoder") -> Words:
    """Replace the vectors of names by unit means of these and of ``namer``'s.

    If spaces do not separate a sentence's words, names follow them.
    """
    places: list[int] = []  # in the words of all sentences
    names: list[str] = []
    unplaced = [""] * len(sentences)
    for number, sentence in enumerate(sentences):
        matches = list(_name_pattern().finditer(sentence))
        if not matches:
            continue
        first, last = words.offsets[number : number + 2].tolist()
        if last - first == len(sentence.split()):
            places += [first + len(sentence[: match.start()].split()) for match in matches]
            names += [match[0] for match in matches]
        else:
            unplaced[number] = find_names([sentence])[0]
    others = namer.words(names)
    is_word = np.diff(others.offsets) == 1
    place, name = np.array(places, dtype=np.int64)[is_word], others.offsets[:-1][is_word]
    both = np.stack([words.ids[place], others.ids[name]])
    (own, other), rows = np.unique(both, axis=1, return_inverse=True)
    means = words.vectors[own] + others.vectors[other]
    normalize_rows(means)
    ids = words.ids.copy()
    ids[place] = len(words.vectors) + rows
    averaged = Words(
        vectors=np.concatenate((words.vectors, means)),
        weights=np.concatenate((words.weights, words.weights[own])),
        ids=ids,
        offsets=words.offsets,
    )
    return join_words(averaged, namer.words(unplaced)) if any(unplaced) else averaged


def find_names(sentences: Sequence[str]) -> list[str]:
    """Return the names in each sentence, joined by spaces, or "".

    A name follows white space, lasts until the next, and begins with a capital letter, maybe after
    punctuation. If more than half of a sentence's words, its spaces plus 1, are names, it has "".
    """
    words_by_sentence = map(_name_pattern().findall, sentences)
    return [
        " ".join(words) if 2 * len(words) <= 1 + sentence.count(" ") else ""
        for words, sentence in zip(words_by_sentence, sentences, strict=True)
    ]


@cache
def _name_pattern() -> re.Pattern[str]:
    capitals = "".join(letter for letter in map(chr, range(2**16)) if letter.isupper())
    # After a space, because any first word has a capital; quotes and brackets may precede it.
    return re.compile(rf"(?<=\s)[^\w\s]*[{capitals}]\S*")
