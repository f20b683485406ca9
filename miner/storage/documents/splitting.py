"""Splitting of paragraphs into sentences, by punctuation and its context.

No measured library was as good on news in twelve languages (docs/results-documents.md).
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import files

# A mark that touches a full stop closes a quotation or bracket; languages differ in the marks.
_CLOSERS = "\"'“”„‘’«»‹›)\\]」』》〉）］】"
_OPENERS = "\"'“”„‟‘‚‛«»‹›(\\[「『《〈（［【¿¡*•—–-"

_STOPS = ".!?…‽؟۔։།༎"

# Marks that need no space after them: Chinese and Japanese put none, other languages often none.
_WIDE = "。！？｡．।॥።။។"
_WIDE_CLOSERS = "\"'“”’)」』》〉）］】"
_WIDE_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Hiragana, Katakana, Han

# Greek has a semicolon for a question mark. Armenian often has a colon for a full stop.
_GREEK, _GREEK_CAPITAL = "\u0370-\u03ff\u1f00-\u1fff", "\u0386-\u03ab\u1f08-\u1f0f\u1f18-\u1f1d"
_ARMENIAN, _ARMENIAN_CAPITAL = "\u0531-\u0588", "\u0531-\u0556"

# The characters that may end a sentence, for use in a character class.
AFTER_SENTENCE = _STOPS + _WIDE + _CLOSERS + _WIDE_CLOSERS

# The time is linear in any text: quantifiers are possessive, and marks in a row are matched once.
# Repeated groups are atomic instead, because Python before 3.11.5 fails to match possessive ones.
_END = re.compile(
    rf"""
    (?P<stop>
        (?<![{_STOPS}]) [{_STOPS}]++ (?>(?:\s[!?]++)*)
        (?>(?:[{_CLOSERS}{_WIDE}]|\s»(?=\s|$))*) (?=\s)
      | [{_WIDE}] [{_STOPS}{_WIDE}]*+ [{_WIDE_CLOSERS}]*+
      | (?<=[{_WIDE_LETTER}{_WIDE_CLOSERS}]) [!?]++ (?>(?:[ ][!?]++)*) [{_WIDE_CLOSERS}]*+
        (?=[{_WIDE_LETTER}「『“])
      | (?<=[{_GREEK}{_CLOSERS}]) ; [{_CLOSERS}]*+ (?=\s[\s{_OPENERS}]*+[{_GREEK_CAPITAL}])
      | (?<=[{_ARMENIAN}{_CLOSERS}]) : (?=\s[\s{_OPENERS}]*+[{_ARMENIAN_CAPITAL}\d])
    )
    (?=[\s{_OPENERS}]*+ (?P<next>.?))
    """,
    re.VERBOSE,
)
_FIRST = re.compile(rf"[{_STOPS}{_WIDE};:]")  # the first character of any match of _END
_CONTINUES = tuple(",;:，、；：")
_MORE_MARKS = re.compile(rf"\s*+(?:(?!\.)[{_STOPS}{_WIDE}]|\.++(?!\w))")  # French: "Quoi ? !"
_CLITIC = re.compile(r"\s+['’]\w\s+[^\W\d_]")  # Dutch: "'s Avonds"

# A letter, or a vowel sign or an accent, which Python's \w does not match.
LETTER = (
    r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0970-\u0dff"
    r"\u0e31-\u0e4e\u102b-\u103e])"
)
# The word before a full stop: letters with inner dots, or a number.
_WORD = re.compile(rf"(?:(?<!\w)(?:{LETTER}+[.'’])*{LETTER}+|\d[\d.,]*)$")
_WHOLE_WORD = re.compile(r"[^\W\d_]+(?![\w.])")  # not an abbreviation
_LOOK_BACK = 24  # characters; abbreviations are shorter
_LONG_WORD = 7  # letters in a row; abbreviations have fewer

# A number with a full stop is an ordinal in many languages: "am 1. Mai". So are Roman numerals.
_ORDINAL = re.compile(r"\d{1,2}|[IVX]+")
_RESULT = tuple("-–:&/")  # a mark before the last number of "3:1" or "13-21-3"
_UNIT = re.compile(r"(?:\d\s?(?:mm?|h|g|l|s|u|мм?|ч)|[/°º]\w)$")
_DOUBLED = re.compile(r"([A-Z])\1\b")  # "EE. UU."

# A letter of these scripts is a syllable, not an initial.
_SYLLABLE = re.compile(r"[\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7a3]")

_TEXT = files("miner").joinpath("assets", "splitting-words.json").read_text(encoding="utf-8")
_WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in json.loads(_TEXT).items()}
# Words with a full stop that does not end the sentence before a name, a noun or a number. The lists
# are ordered by language: en de fr es it pt nl cs pl ru tr, then others.
_ABBREVIATIONS = _WORDS["abbreviations"]
_MAY_END = _WORDS["may_end"]  # abbreviations that also end sentences often
_BEFORE_NUMBERS = _WORDS["before_numbers"]  # abbreviations only before a number
_STARTERS = _WORDS["starters"]  # words that begin sentences, and are hardly ever names or nouns
_PARTICLES = _WORDS["particles"]  # starters that may stand between an initial and a surname
# Letters that are words by themselves instead of initials: "Ik hou van u."
_LETTER_WORDS = {"nl": "u", "tr": "o", "ru": "я", "uk": "я", "bg": "я"}


def sentence_spans(text: str, language: str | None = None) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each stripped sentence in a paragraph.

    Line ends count as spaces. ``language`` (ISO 639-1) decides whether a number with a full stop
    may be an ordinal, as it may for None, and which single letters before a full stop are words.
    """
    start = counted_to = quotes = 0
    first = _FIRST.search(text)  # much faster than _END
    for match in _END.finditer(text, first.start() if first else len(text)):
        quotes += sum(text.count(mark, counted_to, match.start()) for mark in '"“”')
        counted_to = match.start()
        if _is_end(text, match, start, language):
            end = _stop_end(match, is_quoted=quotes % 2 == 1)
            yield from _strip_span(text, start, end)
            start = end
    yield from _strip_span(text, start, len(text))


def _strip_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    if part.strip():
        yield end - len(part.lstrip()), start + len(part.rstrip())


def _stop_end(match: re.Match[str], *, is_quoted: bool) -> int:
    """Return the end of a stop, before a mark that opens a quotation.

    Without spaces, only the parity of the marks before tells: one of a pair is often the wrong one.
    """
    start, stop = match.span("stop")
    if stop < match.endpos and match.string[stop].isspace():
        return stop
    for position, character in enumerate(match["stop"], start):
        if character in '"“' and not is_quoted:
            return position
        is_quoted = is_quoted and character not in '"“”'
    return stop


def _is_end(text: str, match: re.Match[str], start: int, language: str | None) -> bool:
    following, stop, end = match["next"], match["stop"], match.end("stop")
    if following in _CONTINUES or _MORE_MARKS.match(text, end):
        return False
    # Georgian letters count as lower case, also at the start of a sentence.
    is_lower = following.islower() and not "\u10d0" <= following <= "\u10ff"
    if is_lower and not _CLITIC.match(text, end):
        return False
    if stop[-1] in _WIDE_CLOSERS and following == "と":  # Japanese: "...", he said
        return False
    if stop[0] != "." or stop.startswith(".."):
        return True
    stop_start = match.start()
    if stop_start >= _LONG_WORD and text[stop_start - _LONG_WORD : stop_start].isalpha():
        return True
    before = _WORD.search(text, max(start, stop_start - _LOOK_BACK), stop_start)
    return not (before and _is_abbreviated(text, before, match.start("next"), start, language))


def _is_abbreviated(
    text: str, before: re.Match[str], following: int, start: int, language: str | None
) -> bool:
    """Return whether a word or number with a full stop ends no sentence."""
    word, lowered = before[0], before[0].lower()
    preceding = text[max(start, before.start() - _LOOK_BACK) : before.start()]
    if word.replace(".", "").isdecimal() and not preceding.strip(f" {_OPENERS}"):  # "1.2. News"
        return True
    next_word = _WHOLE_WORD.match(text, following)
    follower = next_word[0].lower() if next_word else ""
    begins = follower in _STARTERS
    if _ORDINAL.fullmatch(word) and (language is None or language in _WORDS["ordinal_languages"]):
        return not (begins or preceding.endswith(_RESULT))
    if _UNIT.search(preceding + word):
        return False
    if lowered in _ABBREVIATIONS and word != "VS":
        return not (begins and lowered in _MAY_END)
    is_short = all(sum(map(str.isalpha, part)) == 1 for part in word.split("."))
    if is_short or ("." in word and _SYLLABLE.match(word)):
        ends = begins and ("." in word or follower not in _PARTICLES)
        return _is_initial(before, language) and not ends
    if _DOUBLED.match(word):
        return bool(
            _DOUBLED.match(text, following) or (_DOUBLED.match(preceding[-4:]) and not begins)
        )
    return text[following : following + 1].isdigit() and lowered in _BEFORE_NUMBERS


def _is_initial(before: re.Match[str], language: str | None) -> bool:
    """Return whether letters with full stops are initials, as in "J. R."."""
    word = before[0]
    if "." in word:
        return True
    if before.string[: before.start()].endswith("-"):  # Portuguese: "vista-a."
        return before.string[: before.start() - 1].endswith(".")
    return not _SYLLABLE.match(word) and word not in _LETTER_WORDS.get(language or "ru", "")
