"""Cleaning of documents before they are split into sentences."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import log
from operator import itemgetter
from typing import Self

from miner.storage.documents.splitting import AFTER_SENTENCE, LETTER

# Default-ignorable characters without meaning in a sentence: soft hyphens, zero-width characters,
# byte order marks, direction marks and isolates, marks of objects, music and shorthand.
_MARKS = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
# Ignorable characters that change the one before: joiners, variation selectors, fillers and tags.
_MODIFIERS = "\u115f\u1160\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
INVISIBLE = re.compile(rf"(?<![^\s{AFTER_SENTENCE}])[{_MARKS}{_MODIFIERS}]+|[{_MARKS}]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")

# OCR writes a soft hyphen as a negation sign.
_SOFT_BREAK = re.compile(rf"(?<={LETTER})[\u00ad\u00ac][ \t{_MARKS}]*\n[ \t{_MARKS}]*(?={LETTER})")
_HARD_BREAK = re.compile(rf"((?:{LETTER}|\d)+)([-\u2010])[ \t]*\n[ \t]*((?:{LETTER}|\d)+)")
_LINE_END = re.compile(r"\S[ \t]*\n[ \t]*(?=\S)")
_WORDS = re.compile(rf"{LETTER}+")
_COMPOUNDS = re.compile(rf"{LETTER}+[-\u2010]{LETTER}+")
# Conjunctions after a word that shares its second half, as in German "Vor- und Nachteile".
_CONJUNCTIONS = frozenset(
    "und oder bis bzw sowie and or to en of och eller og ja tai eli sekä või ehk és vagy".split()
)
# Hyphens at line ends must be 20 times as likely in a hyphenated text as by chance.
_MIN_EVIDENCE = log(20)

Edit = tuple[int, int, str]
"""Start and end of a span of text, and its replacement."""

Move = tuple[int, int, int, int]
"""Start and end of an edited span in the new text, then in the old one."""


class CleanText:
    """A ``text`` from ``from_text``, whose spans are mapped to the document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps: list[list[Move]] = []

    @classmethod
    def from_text(cls, text: str, *, is_wrapped: bool) -> Self:
        r"""Clean a document's text, in which all lines end with ``\n``.

        Control characters except for white space become spaces. Invisible ones are removed, except
        for joiners and variants within words. The rest is in NFC. Words that a soft hyphen divides
        at a line end are joined. If ``is_wrapped``, so are most with another hyphen, which
        compounds keep.
        """
        clean = cls(_CONTROL.sub(" ", text))
        clean._edit((*match.span(), "") for match in _SOFT_BREAK.finditer(clean.text))
        clean._edit((*match.span(), "") for match in INVISIBLE.finditer(clean.text))
        if not unicodedata.is_normalized("NFC", clean.text):
            clean._edit(_compositions(clean.text))
        if is_wrapped:
            clean._edit(_word_joins(clean.text))
        return clean

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Map a span of ``text`` to its start and end in the document."""
        for moves in reversed(self._steps):
            start, end = _origin(moves, start), _origin(moves, end, is_end=True)
        return start, end

    def _edit(self, edits: Iterable[Edit]) -> None:
        moves, pieces, done, size = list[Move](), list[str](), 0, 0
        for start, end, replacement in edits:
            pieces += self.text[done:start], replacement
            new_start = size + start - done
            size = new_start + len(replacement)
            moves.append((new_start, size, start, end))
            done = end
        if moves:
            self.text = "".join([*pieces, self.text[done:]])
            self._steps.append(moves)


def _origin(moves: Sequence[Move], offset: int, *, is_end: bool = False) -> int:
    character = offset - is_end
    position = bisect_right(moves, character, key=itemgetter(0))
    if not position:
        return offset
    _, new_end, start, end = moves[position - 1]
    if character < new_end:
        return end if is_end else start
    return offset + end - new_end


def _compositions(text: str) -> Iterator[Edit]:
    for word in re.finditer(r"\S+", text):
        if not unicodedata.is_normalized("NFC", word[0]):
            start = word.start()
            for unit in _normal_units(word[0]):
                composed = unicodedata.normalize("NFC", unit)
                if composed != unit:
                    yield start, start + len(unit), composed
                start += len(unit)


def _normal_units(word: str) -> Iterator[str]:
    unit, normal = "", partial(unicodedata.normalize, "NFC")
    for character in word:
        is_base = not unicodedata.combining(character)
        if unit and is_base and normal(unit + character) == normal(unit) + normal(character):
            yield unit
            unit = ""
        unit += character
    yield unit


def _word_joins(text: str) -> Iterator[Edit]:
    breaks = list(_HARD_BREAK.finditer(text))
    if not breaks:
        return
    rest = _HARD_BREAK.sub(" ", text)
    tokens = _WORDS.findall(rest)
    compounds = [compound.lower().replace("\u2010", "-") for compound in _COMPOUNDS.findall(rest)]
    words, lower_words, hyphened = {*tokens}, {word.lower() for word in tokens}, {*compounds}
    are_divided = [
        not _is_compound(cut[1], cut[3]) and cut[1].lower() + "-" + cut[3].lower() not in hyphened
        for cut in breaks
    ]
    line_ends = len(_LINE_END.findall(text))
    expected = (len(compounds) + 2) / (len(tokens) + 200) * line_ends
    is_hyphenated = _log_likelihood_ratio(sum(are_divided), expected) > _MIN_EVIDENCE
    for cut, is_divided in zip(breaks, are_divided, strict=True):
        left, hyphen, right = cut.groups()
        if (left + right).lower() in lower_words:
            yield cut.start(2), cut.start(3), ""
        elif right not in _CONJUNCTIONS or (is_hyphenated and right not in words):
            yield cut.start(2), cut.start(3), "" if is_divided and is_hyphenated else hyphen


def _is_compound(left: str, right: str) -> bool:
    """Return whether a hyphen belongs to a word, as in "EU-Norm" or "x-ray"."""
    joined = left + right
    is_name = right[0].isupper() or (left.isupper() and len(left) > 1)
    is_short = min(len(left), len(right)) == 1 or any(map(str.isdigit, joined))
    return is_short or (is_name and not joined.isupper())


def _log_likelihood_ratio(count: int, expected: float) -> float:
    return count * log(count / expected) - (count - expected) if count > expected else 0.0
