"""Cleaning of documents before they are split into sentences.

A cleaned text knows where its characters were in the document, as ids of sentences say.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from math import log
from typing import Self

from miner.storage.documents.splitting import AFTER_SENTENCE, LETTER

# Default-ignorable characters that mean nothing in a sentence: soft hyphens, characters without
# width, byte order marks, marks and isolates of direction, marks of music and shorthand.
_MARKS = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
# Those that change the letter or the picture before them: joiners, selectors, fillers and tags.
_MODIFIERS = "\u115f\u1160\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
INVISIBLE = re.compile(rf"(?<![^\s{AFTER_SENTENCE}])[{_MARKS}{_MODIFIERS}]+|[{_MARKS}]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")

# OCR writes a soft hyphen as a negation sign.
_SOFT_BREAK = re.compile(rf"(?<={LETTER})[\u00ad\u00ac][ \t{_MARKS}]*\n[ \t{_MARKS}]*(?={LETTER})")
_HARD_BREAK = re.compile(rf"((?:{LETTER}|\d)+)([-\u2010])[ \t]*\n[ \t]*((?:{LETTER}|\d)+)")
_LINE_END = re.compile(r"\S[ \t]*\n[ \t]*(?=\S)")
_WORDS = re.compile(rf"{LETTER}+")
_COMPOUNDS = re.compile(rf"{LETTER}+[-\u2010]{LETTER}+")
# Conjunctions after a word whose second half comes later, as in German "Vor- und Nachteile".
_CONJUNCTIONS = frozenset(
    "und oder bis bzw sowie and or to en of och eller og ja tai eli sekä või ehk és vagy".split()
)
# How much likelier frequent hyphens at line ends must be in a hyphenated text than by chance.
_MIN_EVIDENCE = log(20)

Edit = tuple[int, int, str]
"""Start and end of a part of a text, and its replacement."""


class CleanText:
    """A cleaned text that knows the places of its characters in the document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps: list[_Places] = []

    @classmethod
    def of(cls, text: str, *, is_wrapped: bool) -> Self:
        """Clean a text, and join words at hyphens if its lines are wrapped."""
        clean = cls(_CONTROL.sub(" ", text))
        clean._edit((*match.span(), "") for match in _SOFT_BREAK.finditer(clean.text))
        clean._edit((*match.span(), "") for match in INVISIBLE.finditer(clean.text))
        if not unicodedata.is_normalized("NFC", clean.text):
            clean._edit(_compositions(clean.text))
        if is_wrapped:
            clean._edit(_joints(clean.text))
        return clean

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the cleaned text begins and ends in the document."""
        for places in reversed(self._steps):
            start, end = places.start(start), places.end(end)
        return start, end

    def _edit(self, edits: Iterable[Edit]) -> None:
        places, parts, last = _Places(), list[str](), 0
        for start, end, new in edits:
            parts += self.text[last:start], new
            places.add(start, end, len(new))
            last = end
        if parts:
            self.text = "".join([*parts, self.text[last:]])
            self._steps.append(places)


class _Places:
    """Places of one round of edits, in the text before and after."""

    def __init__(self) -> None:
        self._old: list[tuple[int, int]] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int, length: int) -> None:
        own = start - self._shift(len(self._ends) - 1)
        self._old.append((start, end))
        self._starts.append(own)
        self._ends.append(own + length)

    def start(self, place: int) -> int:
        at = bisect_right(self._starts, place) - 1
        return self._old[at][0] if self._is_within(at, place) else place + self._shift(at)

    def end(self, place: int) -> int:
        at = bisect_right(self._starts, place - 1) - 1
        return self._old[at][1] if self._is_within(at, place - 1) else place + self._shift(at)

    def _is_within(self, at: int, place: int) -> bool:
        return at >= 0 and place < self._ends[at]

    def _shift(self, at: int) -> int:
        return self._old[at][1] - self._ends[at] if at >= 0 else 0


def _compositions(text: str) -> Iterator[Edit]:
    """Yield the edits of NFC, each of as few characters as possible."""
    for word in re.finditer(r"\S+", text):
        if not unicodedata.is_normalized("NFC", word[0]):
            start = word.start()
            for piece in _pieces(word[0]):
                composed = unicodedata.normalize("NFC", piece)
                if composed != piece:
                    yield start, start + len(piece), composed
                start += len(piece)


def _pieces(word: str) -> Iterator[str]:
    piece, normal = "", partial(unicodedata.normalize, "NFC")
    for character in word:
        starts = not unicodedata.combining(character)
        if piece and starts and normal(piece + character) == normal(piece) + normal(character):
            yield piece
            piece = ""
        piece += character
    yield piece


def _joints(text: str) -> Iterator[Edit]:
    """Yield the edits that join words which a hyphen divides at a line's end.

    Writing shows which: words, and words with hyphens, that occur elsewhere in the text, and
    whether line ends have more hyphens than other places have.
    """
    breaks = list(_HARD_BREAK.finditer(text))
    if not breaks:
        return
    rest = _HARD_BREAK.sub(" ", text)
    written = _WORDS.findall(rest)
    compounds = [compound.lower().replace("\u2010", "-") for compound in _COMPOUNDS.findall(rest)]
    words, whole, hyphened = {*written}, {word.lower() for word in written}, {*compounds}
    divided = [
        not _is_compound(one[1], one[3]) and one[1].lower() + "-" + one[3].lower() not in hyphened
        for one in breaks
    ]
    lines = len(_LINE_END.findall(text))
    by_chance = (len(compounds) + 2) / (len(written) + 200) * lines
    hyphenates = _evidence(sum(divided), by_chance) > _MIN_EVIDENCE
    for one, is_divided in zip(breaks, divided, strict=True):
        left, hyphen, right = one.groups()
        if (left + right).lower() in whole:
            yield one.start(2), one.start(3), ""
        elif right not in _CONJUNCTIONS or (hyphenates and right not in words):
            yield one.start(2), one.start(3), "" if is_divided and hyphenates else hyphen


def _is_compound(left: str, right: str) -> bool:
    """Return whether a hyphen is part of a word, as in "EU-Norm" or "x-ray"."""
    both = left + right
    is_name = right[0].isupper() or (left.isupper() and len(left) > 1)
    is_short = min(len(left), len(right)) == 1 or any(map(str.isdigit, both))
    return is_short or (is_name and not both.isupper())


def _evidence(seen: int, expected: float) -> float:
    """Return the log likelihood ratio of the seen and the expected rate."""
    return seen * log(seen / expected) - (seen - expected) if seen > expected else 0.0
