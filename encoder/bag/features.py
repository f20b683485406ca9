"""The features of words, which are pieces and hashed n-grams.

Names, numbers and words of common origin are spelled similarly in many languages, but the pieces of
a subword vocabulary cut them in different places. N-grams with marks at the ends of a word match
nevertheless (Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information", section
3.2, here of romanised words). In scripts without spaces, characters and their pairs match.
"""

import re
import sys
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from encoder.bag.romanization import LETTERS, SOUNDS, romanize, romanize_three_alphabets, to_sounds
from encoder.tokenizer import SPACE, Tokens

Ids = NDArray[np.int64]
Owned = tuple[NDArray[np.int32], Ids]  # items, and the number of each item's list

# Characters of scripts that are written without spaces, in which each piece counts as a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_WORD_START = re.compile(f"{SPACE}|{_UNSPACED.pattern}")
# Also syllables of Hangul, because each carries as much meaning as a Chinese character.
_SYLLABLES = re.compile(f"[\uac00-\ud7a3]|{_UNSPACED.pattern}")

SCHEME = 5  # the version of features; encoders of 3 and 4 can also be read

LETTER_SIZES = (3, 4, 5)  # letters of an n-gram, marks included
STEM_SIZES = (6, 7, 8)  # letters of a word's beginning, its mark included
SOUND_SIZES = (4, 5, 6)  # classes of consonants of an n-gram, marks included
CHARACTER_SIZES = (1, 2)  # characters of an n-gram in scripts without spaces
_MARK = 1  # the code before and after a word's letters, whose codes are 2 and following
_SOUND_MARK = _MARK + len(LETTERS) + 1  # the same for sounds, whose codes follow it
_LETTER_BASE = 64  # above all these codes, so that n-grams of up to 10 differ
_CHARACTER_BASE = 2**21  # above all characters, so that their n-grams differ from letters'
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Knuth, volume 3, section 6.4)


class Features:
    """The features of words, each a row of a bag's table.

    The V ``pieces``, from ``Tokenizer.pieces``, have the first V rows. N-grams share ``ngram_rows``
    further rows by a hash, or are not used if it is 0. A word begins at a sentence's beginning, and
    at each piece that begins with a space or with a character of a script without spaces.
    ``scheme`` is the version, 3 to 5. Schemes 3 and 4 have no stems. Scheme 3 has no sounds, no
    syllables of Hangul and only three alphabets.
    """

    def __init__(self, pieces: Sequence[str], ngram_rows: int = 0, *, scheme: int = SCHEME) -> None:
        self.pieces, self.ngram_rows = len(pieces), ngram_rows
        self._scheme, self._stem_sizes = scheme, STEM_SIZES if scheme > 4 else ()
        self._begins_word = np.array([*map(bool, map(_WORD_START.match, pieces))], dtype=np.bool_)
        self._numbers = _mix(np.arange(1, self.pieces + 1, dtype=np.uint64))
        self._texts = pieces if ngram_rows else []

    def __len__(self) -> int:
        return self.pieces + self.ngram_rows

    def split(self, tokens: Tokens) -> tuple[Tokens, Tokens]:
        """Return sentences as word numbers, and each distinct word's table rows."""
        words, offsets = self.words(tokens)
        _, first, numbers = np.unique(self._hashes(words), return_index=True, return_inverse=True)
        sentences = Tokens(ids=numbers.astype(np.int32), offsets=offsets)
        return sentences, self.rows(words.take(first))

    def drop_words(self, tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
        """Return sentences of pieces, each word removed with probability ``rate``."""
        words, _ = self.words(tokens)
        return tokens.keep(np.repeat(generator.random(len(words)) >= rate, np.diff(words.offsets)))

    def words(self, tokens: Tokens) -> tuple[Tokens, Ids]:
        """Divide sentences of pieces into words.

        The first result has the pieces of each word, in text order, with repetitions. The second
        has the sentences' offsets in these words, int64 (S + 1,).
        """
        begins = np.zeros(len(tokens.ids) + 1, dtype=np.bool_)
        begins[:-1] = self._begins_word[tokens.ids]
        begins[tokens.offsets] = True
        starts = np.flatnonzero(begins[:-1])
        words = Tokens(ids=tokens.ids, offsets=np.append(starts, len(tokens.ids)))
        return words, np.searchsorted(starts, tokens.offsets)

    def _hashes(self, words: Tokens) -> NDArray[np.uint64]:
        if not len(words):
            return np.empty(0, dtype=np.uint64)
        # Hashes of two different words are equal once in 2^64.
        positions = np.arange(len(words.ids)) - words.offsets[words.owners]
        hashes = _mix(self._numbers[words.ids] + positions.astype(np.uint64))
        return np.add.reduceat(hashes, words.offsets[:-1])

    def rows(self, words: Tokens) -> Tokens:
        """Return the table rows of each word's features, its pieces' rows first."""
        if not self.ngram_rows:
            return words
        rows = self._compiled_rows if "encoder.compiled" in sys.modules else self._rows
        return rows(words)

    @cached_property
    def _piece_spellings(self) -> tuple[Tokens, Tokens, Tokens]:
        return self._spell(self._texts)

    def _spell(self, pieces: Sequence[str]) -> tuple[Tokens, Tokens, Tokens]:
        """Return each piece's letters, its sounds, and the rows of its characters."""
        lines = "\n".join(pieces)  # in one call, which is 10 times as fast as one per piece
        is_scheme_3 = self._scheme == 3
        spellings = romanize_three_alphabets(lines) if is_scheme_3 else romanize(lines)
        sounds = "\n" * spellings.count("\n") if is_scheme_3 else to_sounds(spellings)
        texts = [piece.removeprefix(SPACE) for piece in pieces]
        split = _UNSPACED if is_scheme_3 else _SYLLABLES
        characters = Tokens.of([*map(ord, text)] if split.match(text) else [] for text in texts)
        ngrams = self._ngrams(characters, CHARACTER_SIZES, _CHARACTER_BASE)
        letters, classes = _codes(spellings, LETTERS, _MARK), _codes(sounds, SOUNDS, _SOUND_MARK)
        return letters, classes, Tokens.group(*ngrams, len(characters))

    def _compiled_rows(self, words: Tokens) -> Tokens:
        from encoder.bag.compiled import rows_of_words

        pieces, *spelling = ((part.ids, part.offsets) for part in (words, *self._piece_spellings))
        sizes = (np.array(each, np.int64) for each in (LETTER_SIZES, SOUND_SIZES, self._stem_sizes))
        hashing = _LETTER_BASE, self.pieces, self.ngram_rows
        marks = _MARK, _SOUND_MARK
        rows, offsets = rows_of_words(pieces, tuple(spelling), marks, tuple(sizes), hashing)
        return Tokens(ids=rows, offsets=offsets)

    def _rows(self, words: Tokens) -> Tokens:
        owners = words.owners
        distinct_pieces, ids = np.unique(words.ids, return_inverse=True)
        spellings = self._spell([self._texts[piece] for piece in distinct_pieces.tolist()])
        pieces = Tokens(ids=ids.astype(np.int32), offsets=words.offsets)
        marked = _mark(pieces, spellings[0], _MARK)
        letters = self._ngrams(marked, LETTER_SIZES, _LETTER_BASE)
        stems = self._ngrams(marked, self._stem_sizes, _LETTER_BASE, at_start=True)
        sounds = self._ngrams(_mark(pieces, spellings[1], _SOUND_MARK), SOUND_SIZES, _LETTER_BASE)
        characters = spellings[2].take(ids)
        signs = characters.ids, owners[characters.owners]
        parts: list[Owned] = [(words.ids, owners), letters, sounds, stems, signs]
        rows, row_owners = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return Tokens.group(rows, row_owners, len(words))

    def _ngrams(
        self, texts: Tokens, sizes: Sequence[int], base: int, *, at_start: bool = False
    ) -> Owned:
        # Rows of all n-grams, and the number of each one's text.
        owner, letters = texts.owners, texts.ids.astype(np.uint64)
        rows, owners = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int64)]
        for size in sizes:
            last = max(0, len(letters) - size + 1)
            if at_start:
                starts = texts.offsets[:-1][np.diff(texts.offsets) >= size]
            else:
                starts = np.flatnonzero(owner[:last] == owner[len(owner) - last :])
            codes = np.full(len(starts), size, dtype=np.uint64)
            for index in range(size):
                codes = codes * np.uint64(base) + letters[starts + index]
            hashes = _mix(codes) % np.uint64(self.ngram_rows)
            rows.append((self.pieces + hashes.astype(np.int64)).astype(np.int32))
            owners.append(owner[starts])
        return np.concatenate(rows), np.concatenate(owners)


def _codes(lines: str, alphabet: str, mark: int) -> Tokens:
    """Replace letters of each line by numbers, which follow ``mark``."""
    codes = np.zeros(128, dtype=np.int32)
    codes[[*alphabet.encode()]] = np.arange(mark + 1, mark + 1 + len(alphabet))
    letters = np.frombuffer(lines.encode("ascii"), dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    offsets = np.concatenate(([0], ends - np.arange(len(ends)), [len(letters) - len(ends)]))
    return Tokens(ids=codes[np.delete(letters, ends)], offsets=offsets)


def _mark(words: Tokens, spellings: Tokens, mark: int) -> Tokens:
    """Join the letters of each word's pieces between marks, if it has letters."""
    pieces = spellings.take(words.ids.astype(np.int64))
    edges = pieces.offsets[words.offsets]
    has_letters = np.diff(edges) > 0
    ids = np.insert(pieces.ids, np.append(edges[:-1][has_letters], edges[1:][has_letters]), mark)
    return Tokens(ids=ids, offsets=edges + 2 * np.append(0, np.cumsum(has_letters)))


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    numbers = numbers * _FIBONACCI
    numbers ^= numbers >> np.uint64(32)
    numbers *= np.uint64(0xD6E8FEB86659FD93)
    return numbers ^ (numbers >> np.uint64(32))
