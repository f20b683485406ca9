"""A cache of words, which saves cuts of texts between spaces.

Vectors are bit-identical to those without the cache. No rule of the tokeniser's normaliser matches
a space, and no piece crosses one. But the tokeniser adds scores in float32 from the sentence's
beginning, so the text before a word may decide between two cuts with nearly equal scores ("aa a"
and "a aa"). Sentences with such a word go to the tokeniser.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder.bag.compiled import compare_cuts, enter_pieces, number_texts
from encoder.bag.features import Features
from encoder.rows import Matrix, PackedTable, sum_rows
from encoder.tokenizer import Tokenizer, Tokens, join

MAX_CACHED_WORDS = 1 << 18  # texts between spaces, and vectors, 256 MiB in 256 dimensions
LONGEST = 48  # bytes; longer texts seldom recur, or are written without spaces
MAX_WORDS = 4  # words between two spaces; texts of more words seldom recur

# Each addition rounds by at most 2^-24 of the sum. There are two sums per character, and this is
# twice their error.
ROUNDING = 2.0**-22
UNKNOWN = 10.0  # how much a character without a piece scores below all pieces


class Cuts:
    """The ``pieces`` and ``scores`` of a ``Tokenizer``, to compare cuts."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float]) -> None:
        self._scores = np.array(scores)
        self._unknown = pieces.index("")
        lengths = np.array([*map(len, pieces)])
        self._longest = int(lengths.max())
        self._characters = Tokens(
            ids=np.frombuffer("".join(pieces).encode("utf-32-le"), dtype=np.int32),
            offsets=np.concatenate(([0], lengths.cumsum())),
        )
        self._hashes = np.zeros(len(pieces), dtype=np.uint64)
        self._slots = np.full(4 << len(pieces).bit_length(), -1, dtype=np.int32)
        enter_pieces(self._characters.ids, self._characters.offsets, self._hashes, self._slots)

    def margins(self, words: Tokens) -> tuple[Matrix, Matrix]:
        """Return the margin and the cost of each word's best cut into pieces.

        ``words`` are W lists of piece ids. A margin, float32 (W,), is the lead of the best cut's
        score over the second best, per character. It is infinite if there is one cut, and 0 if a
        piece is unknown. A cost, float32 (W,), is the best cut's negative score. If a word's margin
        exceeds ``ROUNDING`` times a sentence's sum of costs, the sentence has the word's best cut.
        """
        spellings = self._characters.take(words.ids.astype(np.int64))
        margins, costs = np.zeros((2, len(words)), dtype=np.float32)
        offsets = spellings.offsets[words.offsets]
        unknown = self._scores.min() - UNKNOWN
        table = self._hashes, self._slots, self._scores
        compare_cuts(spellings.ids, offsets, table, unknown, self._longest, margins, costs)
        margins[words.owners[words.ids == self._unknown]] = 0
        return margins, costs


class WordCache:
    """A cache of words' vectors, by a bag's tokeniser, features and table."""

    def __init__(
        self, tokenizer: Tokenizer, features: Features, table: Matrix | PackedTable
    ) -> None:
        self._tokenizer, self._features, self._table = tokenizer, features, table
        self._cuts = Cuts(tokenizer.pieces(), tokenizer.scores())
        self._vectors = np.empty((MAX_CACHED_WORDS, table.shape[1]), dtype=np.float32)
        self._keys = np.zeros(2 * MAX_CACHED_WORDS, dtype=np.uint64)
        self._kept = np.empty((MAX_CACHED_WORDS + 1, 1 + LONGEST), dtype=np.uint8)
        self._clear()

    def _clear(self) -> None:
        self._slots = np.full(len(self._keys), -1, dtype=np.int32)
        self._rows = 0
        # Number 0 is that of texts that are not kept: in doubt in each sentence, and of no words.
        self._words = Tokens.of([[]])
        self._margins, self._costs = np.zeros((2, 1), dtype=np.float32)

    def split(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        """Split one or more sentences into words, and return these with vectors.

        The first result has the word numbers of each sentence. The second has the vector of word i
        in row i, float32, and may have more rows. Both are valid until the next call.
        """
        texts = [sentence.encode() for sentence in sentences]
        numbered = self._number_texts(texts)
        if numbered is None:
            self._clear()
            numbered = self._number_texts(texts)
        if numbered is None:  # these sentences alone have too many words
            self._clear()
            return self._split_uncached(sentences)
        numbers, counts = numbered
        starts = counts.cumsum() - counts
        margins = np.minimum.reduceat(self._margins[numbers], starts)
        is_unsure = margins <= ROUNDING * np.add.reduceat(self._costs[numbers], starts)
        if 2 * is_unsure.sum() > len(sentences):  # scripts without spaces
            return self._split_uncached(sentences)
        numbers[np.repeat(is_unsure, counts)] = 0
        words = self._words.take(numbers.astype(np.int64))
        cached = Tokens(ids=words.ids, offsets=words.offsets[np.append(starts, len(numbers))])
        if not is_unsure.any():
            return cached, self._vectors
        unsure_sentences = [sentences[index] for index in np.flatnonzero(is_unsure).tolist()]
        return self._merge(cached, is_unsure, *self._split_uncached(unsure_sentences))

    def _number_texts(
        self, texts: Sequence[bytes]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
        # Numbers of all texts, after new ones are added, and counts; None if the cache is full.
        text = np.frombuffer(b"".join(texts), dtype=np.uint8)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        counts = np.empty(len(texts), dtype=np.int64)
        numbers = np.empty(np.count_nonzero(text == ord(" ")) + len(texts), dtype=np.int32)
        new = np.empty(len(text) + len(texts), dtype=np.uint8)
        table = self._keys, self._slots, self._kept
        count, used = number_texts(text, lengths, table, len(self._words), numbers, counts, new)
        if count < 0 or (used and not self._add(new[: used - 1].tobytes().decode().split(" "))):
            return None
        return numbers, counts

    def _add(self, texts: Sequence[str]) -> bool:
        """Add texts, without the words of long ones, and return whether they fit."""
        tokens = self._tokenizer.encode(texts)
        margins, costs = self._cuts.margins(tokens)
        words, offsets = self._features.words(tokens)
        counts = np.diff(offsets)
        has_too_many = counts > MAX_WORDS
        if has_too_many.any():
            margins[has_too_many] = 0
            kept_words = np.flatnonzero(np.repeat(~has_too_many, counts))
            words, offsets = words.take(kept_words), np.searchsorted(kept_words, offsets)
        stop = self._rows + len(words)
        if stop > MAX_CACHED_WORDS:
            return False
        rows = self._features.rows(words)
        sum_rows(self._table, rows, out=self._vectors[self._rows : stop])
        self._words = Tokens(
            ids=np.arange(stop, dtype=np.int32),
            offsets=np.concatenate([self._words.offsets, self._rows + offsets[1:]]),
        )
        self._margins = np.concatenate([self._margins, margins])
        self._costs = np.concatenate([self._costs, costs])
        self._rows = stop
        return True

    def _split_uncached(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        numbers, words = self._features.split(self._tokenizer.encode(sentences))
        return numbers, sum_rows(self._table, words)

    def _merge(
        self, cached: Tokens, is_unsure: NDArray[np.bool_], uncached: Tokens, vectors: Matrix
    ) -> tuple[Tokens, Matrix]:
        shifted = Tokens(ids=uncached.ids + np.int32(self._rows), offsets=uncached.offsets)
        order = np.arange(len(cached))
        order[is_unsure] = len(cached) + np.arange(len(uncached))
        tokens = join([cached, shifted]).take(order)
        stop = self._rows + len(vectors)
        if stop > MAX_CACHED_WORDS:
            return tokens, np.concatenate([self._vectors[: self._rows], vectors])
        self._vectors[self._rows : stop] = vectors
        return tokens, self._vectors
