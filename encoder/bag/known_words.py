"""Words met before: what stands between two spaces is cut into pieces and summed once.

A sentence then costs one look-up and one row for each word, and its vector has the same bits as
without this: the tokeniser's normaliser has no rule with a space in it, no piece goes across one,
and a sentence in which rounding might cut a word otherwise than alone is left to the tokeniser.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder.bag.compiled_words import number_texts
from encoder.bag.cuts import ROUNDING, Cuts
from encoder.bag.features import Features
from encoder.rows import PackedTable, sum_rows
from encoder.tokenizer import Tokenizer, Tokens

Matrix = NDArray[np.float32]

ROOM = 1 << 18  # texts between spaces that are kept, and vectors: 256 MiB of 256 dimensions
LONGEST = 48  # bytes: what is longer is seldom met again, or written without spaces
MANY = 4  # words between two spaces, likewise


class KnownWords:
    """Texts between spaces, as words, and the vectors of these; it begins anew when full."""

    def __init__(
        self, tokenizer: Tokenizer, features: Features, table: Matrix | PackedTable
    ) -> None:
        self._tokenizer = tokenizer
        self._features = features
        self._table = table
        self._cuts = Cuts(tokenizer.pieces(), tokenizer.scores())
        self._vectors = np.empty((ROOM, table.shape[1]), dtype=np.float32)
        self._keys = np.zeros(2 * ROOM, dtype=np.uint64)
        self._kept = np.empty((ROOM + 1, 1 + LONGEST), dtype=np.uint8)
        self._slots: NDArray[np.int32]
        self._rows: int
        self._words: Tokens
        self._margins: NDArray[np.float32]
        self._costs: NDArray[np.float32]
        self._forget()

    def split(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        """Return sentences as numbers of words, and the words' vectors, float32 (W, D).

        The vectors are valid until the next call.
        """
        texts = [sentence.encode() for sentence in sentences]
        found = self._find(texts)
        if found is None:
            self._forget()
            found = self._find(texts)
        if found is None:  # more than there is room for in these sentences alone
            self._forget()
            return self._cut(sentences)
        numbers, counts = found
        starts = counts.cumsum() - counts
        margins = np.minimum.reduceat(self._margins[numbers], starts)
        unsure = margins <= ROUNDING * np.add.reduceat(self._costs[numbers], starts)
        if 2 * unsure.sum() > len(sentences):  # scripts without spaces
            return self._cut(sentences)
        numbers[np.repeat(unsure, counts)] = 0
        words = self._words.take(numbers.astype(np.int64))
        known = Tokens(ids=words.ids, offsets=words.offsets[np.append(starts, len(numbers))])
        if not unsure.any():
            return known, self._vectors
        left = [sentences[place] for place in np.flatnonzero(unsure).tolist()]
        return self._joined(known, unsure, *self._cut(left))

    def _find(self, texts: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
        """Return the numbers of all texts between spaces, and how many each sentence has.

        New ones are added. None if there is no room for them.
        """
        text = b"".join(texts)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        counts = np.empty(len(texts), dtype=np.int64)
        numbers = np.empty(text.count(b" ") + len(texts), dtype=np.int32)
        new = np.empty(len(text) + len(texts), dtype=np.uint8)
        before = len(self._words)
        count, used = number_texts(
            np.frombuffer(text, dtype=np.uint8),
            lengths,
            LONGEST,
            self._keys,
            self._slots,
            self._kept,
            before,
            numbers,
            counts,
            new,
        )
        if count < 0 or (used and not self._add(new[: used - 1].tobytes().decode().split(" "))):
            return None
        return numbers, counts

    def _add(self, texts: Sequence[str]) -> bool:
        """Add texts, of few words as those words; return whether there is room for them."""
        tokens = self._tokenizer.encode(texts)
        margins, costs = self._cuts.margins(tokens)
        words, offsets = self._features.words(tokens)
        counts = np.diff(offsets)
        many = counts > MANY
        if many.any():
            margins[many] = 0
            kept = np.flatnonzero(np.repeat(~many, counts))
            words, offsets = words.take(kept), np.searchsorted(kept, offsets)
        stop = self._rows + len(words)
        if stop > ROOM:
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

    def _forget(self) -> None:
        self._slots = np.full(len(self._keys), -1, dtype=np.int32)
        self._rows = 0
        # Number 0 is that of texts that are not kept: in doubt in each sentence, and of no words.
        self._words = Tokens.of([[]])
        self._margins, self._costs = np.zeros((2, 1), dtype=np.float32)

    def _cut(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        """Do without what is known."""
        numbers, words = self._features.split(self._tokenizer.encode(sentences))
        return numbers, sum_rows(self._table, words)

    def _joined(
        self, known: Tokens, unsure: NDArray[np.bool_], others: Tokens, vectors: Matrix
    ) -> tuple[Tokens, Matrix]:
        """Put the sentences that were cut between the others, and their words after those kept."""
        lengths = np.diff(known.offsets)
        lengths[unsure] = np.diff(others.offsets)
        of_others = np.repeat(unsure, lengths)
        ids = np.empty(len(of_others), dtype=np.int32)
        ids[of_others] = others.ids + self._rows
        ids[~of_others] = known.ids
        tokens = Tokens(ids=ids, offsets=np.concatenate(([0], lengths.cumsum())))
        stop = self._rows + len(vectors)
        if stop > ROOM:
            return tokens, np.concatenate([self._vectors[: self._rows], vectors])
        self._vectors[self._rows : stop] = vectors
        return tokens, self._vectors
