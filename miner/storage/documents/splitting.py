"""Paragraphs to sentences, by punctuation and what stands around it.

Of the libraries that were measured none found the boundaries of news in twelve languages as well
(docs/results-documents.md): most know one script, or take what is between quotation marks for one.
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import files

# Every mark that touches a full stop closes something; the languages differ in which.
_CLOSERS = "\"'“”„‘’«»‹›)\\]」』》〉）］】"
_OPENERS = "\"'“”„‟‘‚‛«»‹›(\\[「『《〈（［【¿¡*•—–-"

_STOPS = ".!?…‽؟۔։།༎"

# Chinese and Japanese put no space after a sentence; with these marks others often do not, either.
_WIDE = "。！？｡．।॥።။។"
_WIDE_CLOSERS = "\"'“”’)」』》〉）］】"
_WIDE_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Hiragana, Katakana, Han

# Greek asks with a semicolon, and Armenian is often written with a colon for its full stop.
_GREEK, _GREEK_CAPITAL = "\u0370-\u03ff\u1f00-\u1fff", "\u0386-\u03ab\u1f08-\u1f0f\u1f18-\u1f1d"
_ARMENIAN, _ARMENIAN_CAPITAL = "\u0531-\u0588", "\u0531-\u0556"

# Within a character class: what may stand last in a sentence.
AFTER_SENTENCE = _STOPS + _WIDE + _CLOSERS + _WIDE_CLOSERS

# Quantifiers are possessive, and marks in a row are met once: the time is linear in any text.
_END = re.compile(
    rf"""
    (?P<stop>
        (?<![{_STOPS}]) [{_STOPS}]++ (?:\s[!?]++)*+ (?:[{_CLOSERS}{_WIDE}]|\s»(?=\s|$))*+ (?=\s)
      | [{_WIDE}] [{_STOPS}{_WIDE}]*+ [{_WIDE_CLOSERS}]*+
      | (?<=[{_WIDE_LETTER}{_WIDE_CLOSERS}]) [!?]++ (?:[ ][!?]++)*+ [{_WIDE_CLOSERS}]*+
        (?=[{_WIDE_LETTER}「『“])
      | (?<=[{_GREEK}{_CLOSERS}]) ; [{_CLOSERS}]*+ (?=\s[\s{_OPENERS}]*+[{_GREEK_CAPITAL}])
      | (?<=[{_ARMENIAN}{_CLOSERS}]) : (?=\s[\s{_OPENERS}]*+[{_ARMENIAN_CAPITAL}\d])
    )
    (?=[\s{_OPENERS}]*+ (?P<next>.?))
    """,
    re.VERBOSE,
)
_CONTINUES = tuple(",;:，、；：")
_MORE_MARKS = re.compile(rf"\s*+(?:(?!\.)[{_STOPS}{_WIDE}]|\.++(?!\w))")  # French: "Quoi ? !"
_CLITIC = re.compile(r"\s+['’]\w\s+[^\W\d_]")  # Dutch: "'s Avonds"

# A letter, or one with its vowel signs and accents, which Python's \w does not count.
LETTER = (
    r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0970-\u0dff"
    r"\u0e31-\u0e4e\u102b-\u103e])"
)
# What precedes a full stop: letters with dots within, or a number, at the end of the text so far.
_WORD = re.compile(rf"(?:(?<!\w)(?:{LETTER}+[.'’])*{LETTER}+|\d[\d.,]*)$")
_WHOLE_WORD = re.compile(r"[^\W\d_]+(?![\w.])")  # no abbreviation
_LOOK_BACK = 24  # characters; no abbreviation is longer
_LONG = 7  # letters in a row; no abbreviation has as many

# A number and a full stop is an ordinal in many languages: "am 1. Mai". So are Roman numerals.
_ORDINAL = re.compile(r"\d{1,2}|[IVX]+")
_RESULT = tuple("-–:&/")  # what precedes the last number of "3:1" or "13-21-3"
_UNIT = re.compile(r"(?:\d\s?(?:mm?|h|g|l|s|u|мм?|ч)|[/°º]\w)$")
_DOUBLED = re.compile(r"([A-Z])\1\b")  # "EE. UU."

# A letter of these scripts is a syllable, and no initial.
_SYLLABLE = re.compile(r"[\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7a3]")

_TEXT = files("miner").joinpath("assets", "splitting-words.json").read_text(encoding="utf-8")
_WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in json.loads(_TEXT).items()}
# Words whose full stop ends no sentence where a name, a noun or a number may follow, and those of
# them that end one as often as not; one language after the other: en de fr es it pt nl cs pl ru tr,
# then others.
_ABBREVIATIONS, _MAY_END = _WORDS["abbreviations"], _WORDS["may_end"]
# The same where a number follows, and words of their own, or likely ends, elsewhere.
_BEFORE_NUMBERS = _WORDS["before_numbers"]
# Words that begin sentences and are hardly ever names or nouns, in the same order; and those of
# them that may stand between an initial and a surname.
_STARTERS, _PARTICLES = _WORDS["starters"], _WORDS["particles"]
# Letters that are words by themselves, and no initials: "Ik hou van u."
_LETTER_WORDS = {"nl": "u", "tr": "o", "ru": "я", "uk": "я", "bg": "я"}


def sentence_spans(text: str, language: str | None = None) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a paragraph begin and end, without the space around them.

    Line ends within it count as spaces. ``language`` (ISO 639-1) decides whether a number and a
    full stop may be an ordinal; where it is not known they may.
    """
    start = counted = quotes = 0
    for match in _END.finditer(text):
        quotes += sum(text.count(mark, counted, match.start()) for mark in '"“”')
        counted = match.start()
        if _is_end(text, match, start, language):
            end = _end(match, is_quoted=quotes % 2 == 1)
            yield from _stripped(text, start, end)
            start = end
    yield from _stripped(text, start, len(text))


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    if part.strip():
        yield end - len(part.lstrip()), start + len(part.rstrip())


def _end(match: re.Match[str], *, is_quoted: bool) -> int:
    """Return where the stop ends: before a quotation mark that opens what comes next.

    Without spaces only the number of marks before says which does: often one of a pair is wrong.
    """
    start, stop = match.span("stop")
    if stop < match.endpos and match.string[stop].isspace():
        return stop
    for place, character in enumerate(match["stop"], start):
        if character in '"“' and not is_quoted:
            return place
        is_quoted = is_quoted and character not in '"“”'
    return stop


def _is_end(text: str, match: re.Match[str], start: int, language: str | None) -> bool:
    following, stop, end = match["next"], match["stop"], match.end("stop")
    if following in _CONTINUES or _MORE_MARKS.match(text, end):
        return False
    # Georgian sentences begin with what counts as lower case.
    is_lower = following.islower() and not "\u10d0" <= following <= "\u10ff"
    if is_lower and not _CLITIC.match(text, end):
        return False
    if stop[-1] in _WIDE_CLOSERS and following == "と":  # Japanese: "...", he said
        return False
    if stop[0] != "." or stop.startswith(".."):
        return True
    place = match.start()
    if place >= _LONG and text[place - _LONG : place].isalpha():
        return True
    before = _WORD.search(text, max(start, place - _LOOK_BACK), place)
    return not (before and _is_abbreviated(text, before, match.start("next"), start, language))


def _is_abbreviated(
    text: str, before: re.Match[str], following: int, start: int, language: str | None
) -> bool:
    """Return whether a sentence goes on after a word or a number and a full stop."""
    word, lowered = before[0], before[0].lower()
    head = text[max(start, before.start() - _LOOK_BACK) : before.start()]
    if word.replace(".", "").isdecimal() and not head.strip(f" {_OPENERS}"):  # "1.2. News"
        return True
    next_word = _WHOLE_WORD.match(text, following)
    follower = next_word[0].lower() if next_word else ""
    begins = follower in _STARTERS
    if _ORDINAL.fullmatch(word) and (language is None or language in _WORDS["ordinal_languages"]):
        return not (begins or head.endswith(_RESULT))
    if _UNIT.search(head + word):
        return False
    if lowered in _ABBREVIATIONS and word != "VS":
        return not (begins and lowered in _MAY_END)
    is_short = all(sum(map(str.isalpha, part)) == 1 for part in word.split("."))
    if is_short or ("." in word and _SYLLABLE.match(word)):
        ends = begins and ("." in word or follower not in _PARTICLES)
        return _is_initial(before, language) and not ends
    if _DOUBLED.match(word):
        return bool(_DOUBLED.match(text, following) or (_DOUBLED.match(head[-4:]) and not begins))
    return text[following : following + 1].isdigit() and lowered in _BEFORE_NUMBERS


def _is_initial(before: re.Match[str], language: str | None) -> bool:
    """Return whether letters with full stops stand for longer words, as in "J. R." or "U.S."."""
    word = before[0]
    if "." in word:
        return True
    if before.string[: before.start()].endswith("-"):  # Portuguese: "vista-a."
        return before.string[: before.start() - 1].endswith(".")
    return not _SYLLABLE.match(word) and word not in _LETTER_WORDS.get(language or "ru", "")
