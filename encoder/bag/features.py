"""The summands of a bag: the pieces of each word, and hashed n-grams of how the word is spelt.

Names, numbers and words of common origin are spelt much alike in many languages, but the pieces of
a subword vocabulary cut them apart in different places. N-grams with marks at the ends of a word
match all the same (Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information",
section 3.2, of romanised words here); in scripts without spaces, a word's characters and pairs of
them do.
"""

import re
import sys
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from encoder.bag.romanization import LETTERS, SOUNDS, romanized, romanized_from_three, sounded
from encoder.tokenizer import SPACE, Tokens

Ids = NDArray[np.int64]
Owned = tuple[NDArray[np.int32], Ids]  # what is listed, and the number of the list it is in

# Characters of scripts that are written without spaces: each piece of theirs is taken for a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)

_BEGINS = re.compile(f"{SPACE}|{_UNSPACED.pattern}")  # what begins a word

# Those, and syllables of Hangul, each of which says as much as a Chinese character.
_SYLLABLES = re.compile(f"[\uac00-\ud7a3]|{_UNSPACED.pattern}")

SCHEME = 5  # of features; 3 and 4 can be read, too

LETTER_SIZES = (3, 4, 5)  # letters of an n-gram, marks included
STEM_SIZES = (6, 7, 8)  # letters that a word begins with, its mark included
SOUND_SIZES = (4, 5, 6)  # classes of consonants of an n-gram, marks included
CHARACTER_SIZES = (1, 2)  # characters of an n-gram in scripts without spaces
_MARK = 1  # before and after a word; the letters are 2 and following
_SOUND_MARK = _MARK + len(LETTERS) + 1  # the same among classes of consonants, which follow it
_LETTER_BASE = 64  # above all these codes: n-grams of up to 10 keep apart
_CHARACTER_BASE = 2**21  # above all characters; their n-grams keep apart from those of letters
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Knuth, volume 3, section 6.4)


class Features:
    """The rows that each word of a text is the sum of; they depend on its pieces alone.

    The V pieces of a tokeniser have rows 0 to V - 1; the ``ngram_rows`` after them are shared by
    all n-grams, by a hash. A piece begins a word or, in scripts without spaces, is one.
    """

    def __init__(self, pieces: Sequence[str], ngram_rows: int = 0, *, scheme: int = SCHEME) -> None:
        """For what ``Tokenizer.pieces`` gives.

        The fourth scheme has no stems. The third one romanises three alphabets, has no classes of
        consonants, either, and takes Hangul for letters alone.
        """
        self.pieces, self.ngram_rows = len(pieces), ngram_rows
        self._scheme, self._stem_sizes = scheme, STEM_SIZES if scheme > 4 else ()
        self._begins_word = np.array([*map(bool, map(_BEGINS.match, pieces))], dtype=np.bool_)
        self._numbers = _mixed(np.arange(1, self.pieces + 1, dtype=np.uint64))
        self._texts = pieces if ngram_rows else []

    def __len__(self) -> int:
        return self.pieces + self.ngram_rows

    def split(self, tokens: Tokens) -> tuple[Tokens, Tokens]:
        """Return S sentences as numbers of different words, and the rows of these, pieces first."""
        words, offsets = self.words(tokens)
        _, first, numbers = np.unique(self._hashes(words), return_index=True, return_inverse=True)
        sentences = Tokens(ids=numbers.astype(np.int32), offsets=offsets)
        return sentences, self.rows(words.take(first))

    def drop_words(self, tokens: Tokens, rate: float, generator: np.random.Generator) -> Tokens:
        """Leave out each word, with all its pieces, with probability ``rate``."""
        words, _ = self.words(tokens)
        kept = np.repeat(generator.random(len(words)) >= rate, np.diff(words.offsets))
        before = np.concatenate(([0], np.cumsum(kept)))
        return Tokens(ids=tokens.ids[kept], offsets=before[tokens.offsets])

    def words(self, tokens: Tokens) -> tuple[Tokens, Ids]:
        """Return sentences' words as lists of pieces, and the first of each one: int64 (S + 1,)."""
        begins = np.zeros(len(tokens.ids) + 1, dtype=np.bool_)
        begins[:-1] = self._begins_word[tokens.ids]
        begins[tokens.offsets] = True
        starts = np.flatnonzero(begins[:-1])
        words = Tokens(ids=tokens.ids, offsets=np.append(starts, len(tokens.ids)))
        return words, np.searchsorted(starts, tokens.offsets)

    def _hashes(self, words: Tokens) -> NDArray[np.uint64]:
        """Return a number for each word; those of different words are equal once in 2^64."""
        if not len(words):
            return np.empty(0, dtype=np.uint64)
        places = np.arange(len(words.ids)) - words.offsets[words.owners]
        mixed = _mixed(self._numbers[words.ids] + places.astype(np.uint64))
        return np.add.reduceat(mixed, words.offsets[:-1])

    def rows(self, words: Tokens) -> Tokens:
        """Return the rows of each word, given its pieces: these, then its n-grams."""
        if not self.ngram_rows:
            return words
        rows = self._compiled_rows if "encoder.compiled" in sys.modules else self._rows
        return rows(words)

    @cached_property
    def _of_all_pieces(self) -> tuple[Tokens, Tokens, Tokens]:
        return self._spell(self._texts)

    def _spell(self, pieces: Sequence[str]) -> tuple[Tokens, Tokens, Tokens]:
        """Return the letters, the sounds, and the rows of characters of each piece."""
        lines = "\n".join(pieces)  # all at once: 10 times as fast
        before = self._scheme == 3
        spellings = romanized_from_three(lines) if before else romanized(lines)
        sounds = "\n" * spellings.count("\n") if before else sounded(spellings)
        texts = [piece.removeprefix(SPACE) for piece in pieces]
        split = _UNSPACED if before else _SYLLABLES
        characters = Tokens.of([*map(ord, text)] if split.match(text) else [] for text in texts)
        ngrams = self._ngrams(characters, CHARACTER_SIZES, _CHARACTER_BASE)
        letters, classes = _coded(spellings, LETTERS, _MARK), _coded(sounds, SOUNDS, _SOUND_MARK)
        return letters, classes, _grouped([ngrams], len(characters))

    def _compiled_rows(self, words: Tokens) -> Tokens:
        from encoder.bag.compiled import rows_of_words

        parts = self._of_all_pieces
        letters, sounds, characters = (
            np.diff(part.offsets)[words.ids].sum() + 2 * len(words) for part in parts
        )
        room = len(words.ids) + len(LETTER_SIZES) * letters + len(SOUND_SIZES) * sounds
        found = np.empty(room + len(STEM_SIZES) * len(words) + characters, dtype=np.int32)
        ends = np.zeros(len(words) + 1, dtype=np.int64)
        pieces, *spelling = ((part.ids, part.offsets) for part in (words, *parts))
        sizes = (np.array(own, np.int64) for own in (LETTER_SIZES, SOUND_SIZES, self._stem_sizes))
        hashed = _LETTER_BASE, self.pieces, self.ngram_rows
        marks = _MARK, _SOUND_MARK
        rows_of_words(pieces, tuple(spelling), marks, tuple(sizes), hashed, found, ends[1:])
        return Tokens(ids=found[: ends[-1]], offsets=ends)

    def _rows(self, words: Tokens) -> Tokens:
        """Do the same in NumPy, for few words, with the spelling of their pieces alone."""
        owners = words.owners
        used, ids = np.unique(words.ids, return_inverse=True)
        spelt = self._spell([self._texts[piece] for piece in used.tolist()])
        pieces = Tokens(ids=ids.astype(np.int32), offsets=words.offsets)
        marked = _marked(pieces, spelt[0], _MARK)
        letters = self._ngrams(marked, LETTER_SIZES, _LETTER_BASE)
        stems = self._ngrams(marked, self._stem_sizes, _LETTER_BASE, at_start=True)
        of_sounds = self._ngrams(_marked(pieces, spelt[1], _SOUND_MARK), SOUND_SIZES, _LETTER_BASE)
        characters = spelt[2].take(ids)
        of_characters = characters.ids, owners[characters.owners]
        return _grouped([(words.ids, owners), letters, of_sounds, stems, of_characters], len(words))

    def _ngrams(
        self, texts: Tokens, sizes: Sequence[int], base: int, *, at_start: bool = False
    ) -> Owned:
        """Return the rows of all n-grams of these sizes, and which text each is of."""
        owner, letters = texts.owners, texts.ids.astype(np.uint64)
        rows, owners = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int64)]
        for size in sizes:
            last = max(0, len(letters) - size + 1)
            if at_start:
                starts = texts.offsets[:-1][np.diff(texts.offsets) >= size]
            else:
                starts = np.flatnonzero(owner[:last] == owner[len(owner) - last :])
            codes = np.full(len(starts), size, dtype=np.uint64)
            for place in range(size):
                codes = codes * np.uint64(base) + letters[starts + place]
            hashed = _mixed(codes) % np.uint64(self.ngram_rows)
            rows.append((self.pieces + hashed.astype(np.int64)).astype(np.int32))
            owners.append(owner[starts])
        return np.concatenate(rows), np.concatenate(owners)


def _coded(lines: str, alphabet: str, mark: int) -> Tokens:
    """Return numbers for the letters of each line; those of the alphabet follow its mark's."""
    codes = np.zeros(128, dtype=np.int32)
    codes[[*alphabet.encode()]] = np.arange(mark + 1, mark + 1 + len(alphabet))
    letters = np.frombuffer(lines.encode("ascii"), dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    offsets = np.concatenate(([0], ends - np.arange(len(ends)), [len(letters) - len(ends)]))
    return Tokens(ids=codes[np.delete(letters, ends)], offsets=offsets)


def _marked(words: Tokens, spelt: Tokens, mark: int) -> Tokens:
    """Return the letters of each word between marks, given each piece's; none of one without."""
    pieces = spelt.take(words.ids.astype(np.int64))
    starts = pieces.offsets[words.offsets]
    lengths = np.diff(starts)
    offsets = np.concatenate(([0], np.cumsum(np.where(lengths > 0, lengths + 2, 0))))
    ids = np.full(offsets[-1], mark, dtype=np.int32)
    places = np.arange(len(pieces.ids)) + np.repeat(offsets[:-1] + 1 - starts[:-1], lengths)
    ids[places] = pieces.ids
    return Tokens(ids=ids, offsets=offsets)


def _grouped(parts: Sequence[Owned], count: int) -> Tokens:
    """Return one list for each of ``count`` owners, in the order of the parts."""
    ids, owners = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(owners, kind="stable")
    return Tokens(ids=ids[order], offsets=np.searchsorted(owners[order], np.arange(count + 1)))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose every bit hangs on all of the given ones' (finaliser of splitmix64)."""
    numbers = numbers * _FIBONACCI
    numbers ^= numbers >> np.uint64(32)
    numbers *= np.uint64(0xD6E8FEB86659FD93)
    return numbers ^ (numbers >> np.uint64(32))
