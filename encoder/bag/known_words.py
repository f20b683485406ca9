"""Words met before: what stands between two spaces is cut into pieces and summed once.

A sentence's vector has the same bits as without this: the tokeniser's normaliser has no rule with a
space in it, no piece goes across one, and a sentence in which rounding might cut a word otherwise
than alone is left to the tokeniser. For that adds scores up from the sentence's beginning, in
float32, and of two ways to cut a word that score nearly the same ("aa a" and "a aa" do), what
stands before it may decide.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder.bag.compiled import compare_cuts, enter_pieces, number_texts
from encoder.bag.features import Features
from encoder.rows import Matrix, PackedTable, sum_rows
from encoder.tokenizer import Tokenizer, Tokens

MAX_CACHED_WORDS = 1 << 18  # texts between spaces, and vectors: 256 MiB of 256 dimensions
LONGEST = 48  # bytes: what is longer is seldom met again, or written without spaces
MANY = 4  # words between two spaces, likewise

# A sum is rounded by 2^-24 of itself at most, each of two at each character; and twice that much.
ROUNDING = 2.0**-22
UNKNOWN = 10.0  # that a character of no piece scores below all pieces


class Cuts:
    """The pieces of a unigram model (Kudo 2018) and their scores, to cut words into."""

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
        """Return by how much the best cut of each word beats the next, and what it costs.

        Margins are per character, float32 (W,), infinite where there is one cut, and 0 where a
        character has no piece; costs are negative log probabilities, float32 (W,). In a sentence
        whose words cost C together, one with a margin above C ``ROUNDING`` is cut as it is alone.
        """
        spelt = self._characters.take(words.ids.astype(np.int64))
        margins, costs = np.zeros((2, len(words)), dtype=np.float32)
        offsets = spelt.offsets[words.offsets]
        unknown = self._scores.min() - UNKNOWN
        table = self._hashes, self._slots, self._scores
        compare_cuts(spelt.ids, offsets, table, unknown, self._longest, margins, costs)
        margins[words.owners[words.ids == self._unknown]] = 0
        return margins, costs


class WordCache:
    """Texts between spaces, as words, and the vectors of these; it begins anew when full."""

    def __init__(
        self, tokenizer: Tokenizer, features: Features, table: Matrix | PackedTable
    ) -> None:
        self._tokenizer, self._features, self._table = tokenizer, features, table
        self._cuts = Cuts(tokenizer.pieces(), tokenizer.scores())
        self._vectors = np.empty((MAX_CACHED_WORDS, table.shape[1]), dtype=np.float32)
        self._keys = np.zeros(2 * MAX_CACHED_WORDS, dtype=np.uint64)
        self._kept = np.empty((MAX_CACHED_WORDS + 1, 1 + LONGEST), dtype=np.uint8)
        self._forget()

    def _forget(self) -> None:
        self._slots = np.full(len(self._keys), -1, dtype=np.int32)
        self._rows = 0
        # Number 0 is that of texts that are not kept: in doubt in each sentence, and of no words.
        self._words = Tokens.of([[]])
        self._margins, self._costs = np.zeros((2, 1), dtype=np.float32)

    def split(self, sentences: Sequence[str]) -> tuple[Tokens, Matrix]:
        """Return sentences as numbers of words, and vectors (W, D), valid until the next call."""
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
        """Return the numbers of texts, added if new, and their counts; None if there is no room."""
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
        ids[of_others], ids[~of_others] = others.ids + self._rows, known.ids
        tokens = Tokens(ids=ids, offsets=np.concatenate(([0], lengths.cumsum())))
        stop = self._rows + len(vectors)
        if stop > MAX_CACHED_WORDS:
            return tokens, np.concatenate([self._vectors[: self._rows], vectors])
        self._vectors[self._rows : stop] = vectors
        return tokens, self._vectors
