"""Compare numbers that texts write in digits, by value.

A number can have several readings: 1.234 differs in German and English, and 7 p.m. is 19:00. Axes:
``P`` pairs.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.arrays import FloatArray, code_points
from miner.number_wording import (
    POWERS,
    SECTION,
    context_of,
    named_values,
    values_in_context,
)

READING = 7  # version of reading texts, in work-folder keys; raise it when results change

# Marks between digits, by their kind, which is the first of its marks.
_GROUPS = " '`\u00b4\u2018\u2019\u00a0\u2009\u202f\u066c"  # group by three
_COMMAS, _POINTS = ",\u060c\uff0c", ".\uff0e"
_DECIMAL = "\u066b"  # begins a fraction
_MARKS = _COMMAS + _POINTS + _DECIMAL
_KINDS = {mark: kind[0] for kind in (_GROUPS, _COMMAS, _POINTS, _DECIMAL) for mark in kind}
_VULGAR = "\u00bc-\u00be\u2150-\u215e"  # one half to seven eighths
# Powers of ten that East Asian languages write after digits, and powers with words elsewhere.
_POWERS = {**POWERS, "백": 2, "천": 3, "만": 4, "억": 8, "兆": 12, "조": 12}
_WORDS = "".join(_POWERS)
_NAMED_POWERS = (0, 3, 6, 9, 12)
_MAX_TERM = 30  # characters of a term that is added to others
# It begins with one set of characters, which Python searches for three times as fast.
_NUMBER = re.compile(
    rf"[\d{_VULGAR}](?:\d{{,2}}(?:[{_GROUPS}]\d{{3}})+(?!\d)|\d*)(?:[{_MARKS}]\d+)*"
    rf"(?:[{_VULGAR}]| ?[{_WORDS}]+(?: ?\d[\d,]* ?[{_WORDS}]+)*"
    r"(?: ?\d(?:\d{,3}|,\d{3})(?![\d,.]))?)?"
)
_SIGN = re.compile(f"[0-9{_VULGAR}]")  # one of each number in ASCII digits
_BARE_FRACTION = re.compile(r"\.(?<![\w.,]\.)(?=\d)")  # .5; it begins with a character to search
_TERM = re.compile(rf"(\d[\d,]*) ?([{_WORDS}]*)")
_RUN = re.compile(r"\d+")
_FIRST_FOREIGN = 0x660  # the first digit after ASCII


class Number(NamedTuple):
    """A number in a text, by its possible values and its parts.

    ``readings`` are its possible values, like ``1234.5``, without redundant zeros: of 3万, 30000,
    30 (thousands) and 3. ``parts`` are the values of its runs of digits, such as 10 and 30 of
    10.30, or 1 and 2 of ½, empty for plain digits.
    """

    readings: frozenset[str]
    parts: frozenset[str] = frozenset()


def numbers_in(text: str) -> frozenset[Number]:
    """Return the distinct numbers in a text, in digits of any script.

    A date gives one number per part, except for zeros such as 00. Minus signs are ignored, and so
    are words, except for East Asian powers of ten after digits, as in 3万, and for what gives more
    readings (``context_of``).
    """
    text = _BARE_FRACTION.sub("0.", text)
    tokens = _NUMBER.finditer(text)
    return frozenset().union(*(_read(each[0], context_of(text, *each.span())) for each in tokens))


def compare_numbers(source: str, target: str) -> tuple[int, int, int]:
    """Count the shared and the unshared numbers of two texts.

    Two numbers match by a common reading, or if all parts of one are numbers of the other text. A
    number also matches a value of ``named_values``, and both texts share it. The counts are of
    numbers that both texts have; that only one has; and the lesser number of unshared numbers of
    the source and of the target.
    """
    both = numbers_in(source), numbers_in(target)
    if both[0] == both[1]:
        return len(both[0]), 0, 0
    matched = named = _count_matched(both)
    if sum(matched) < sum(map(len, both)):
        named = _count_matched(both, (named_values(source), named_values(target)))
    unmatched = [len(numbers) - count for numbers, count in zip(both, named, strict=True)]
    return min(matched) + sum(named) - sum(matched), sum(unmatched), min(unmatched)


def _count_matched(
    both: Sequence[frozenset[Number]], names: Sequence[frozenset[str]] = (frozenset(),) * 2
) -> list[int]:
    """Count the numbers of each text that match the other text or ``names``."""
    values = [
        named.union(*(number.readings for number in numbers))
        for numbers, named in zip(both, names, strict=True)
    ]
    parts = [  # of numbers whose parts are all in the other text
        frozenset[str]().union(*(number.parts for number in numbers if number.parts <= others))
        for numbers, others in zip(both, values[::-1], strict=True)
    ]
    return [
        sum(
            not number.readings.isdisjoint(others | of_others)
            or (bool(number.parts) and number.parts <= others)
            for number in numbers
        )
        for numbers, others, of_others in zip(both, values[::-1], parts[::-1], strict=True)
    ]


def count_numbers(source: Sequence[str], target: Sequence[str]) -> FloatArray:
    """Count the shared and unshared numbers of P pairs of texts, (3, P).

    Rows are the counts of ``compare_numbers``.
    """
    counts = np.zeros((3, len(source)))
    texts = map(with_ascii_digits, (source, target))
    for position, (one, two) in enumerate(zip(*texts, strict=True)):
        if _SIGN.search(one) or _SIGN.search(two):
            counts[:, position] = compare_numbers(one, two)
    return counts


def with_ascii_digits(texts: Sequence[str]) -> Sequence[str]:
    """Return ``texts`` with ASCII digits, or the same object if unchanged."""
    codes, starts = code_points(texts)
    table = _ascii_digits()
    foreign = np.flatnonzero(codes >= _FIRST_FOREIGN)
    digits = table[np.minimum(codes[foreign], len(table) - 1)]
    if not digits.any():
        return texts
    codes = codes.copy()
    codes[foreign[digits > 0]] = digits[digits > 0]
    whole = codes.tobytes().decode("utf-32-le", "surrogatepass")
    return [whole[start:end] for start, end in pairwise(starts.tolist())]


@cache
def _ascii_digits() -> NDArray[np.uint8]:
    """Return the code of each character's ASCII digit, 0 if it is not a digit."""
    table = np.zeros(1 << 17, dtype=np.uint8)
    for match in re.finditer(r"\d", "".join(map(chr, range(len(table))))):
        table[match.start()] = ord("0") + int(match[0])
    return table


@lru_cache(maxsize=1 << 16)
def _read(token: str, context: str | None = None) -> frozenset[Number]:
    """Return the number of a token, or its parts if it is none, as 2.5.2010."""
    if context:
        plain = _read(token.replace(".", ":") if context == "afternoon" else token)
        return frozenset(_with_context(number, context) for number in plain)
    terms = _TERM.findall(with_ascii_digits([token])[0])
    if len(terms) > 1 and terms[0][1]:
        total = _sum(terms)
        if total is None:
            return frozenset().union(*(_read(digits + words) for digits, words in terms))
        runs = [digits.replace(",", "") for digits, _ in terms]
        return frozenset([Number(frozenset(_multiples(total, 0)), frozenset(map(_value, runs)))])
    digits = token.rstrip(" ," + _WORDS)
    power = sum(_POWERS.get(word, 0) for word in token[len(digits) :])
    runs = _RUN.findall(with_ascii_digits([digits])[0])
    if len(runs) < 2 and not digits[-1].isdecimal():
        return frozenset([_fraction(runs, digits[-1])])
    marks = [_KINDS[mark] for mark in digits if mark in _KINDS]
    readings = set(_readings(runs, marks))
    if power:
        readings.update(*(_multiples(value, power) for value in readings or map(_value, runs[-1:])))
    if readings:
        return frozenset([Number(frozenset(readings), frozenset(map(_value, runs)))])
    # Zeros alone do not count: 10:00 is 10.
    numbers = [run for run in runs if run == "0" or run.strip("0")]
    return frozenset(Number(frozenset([_value(run)])) for run in numbers)


def _with_context(number: Number, context: str) -> Number:
    more = (values_in_context(value, context) for value in number.readings)
    return number._replace(readings=number.readings.union(*more))


def _sum(terms: Iterable[tuple[str, str]]) -> str | None:
    """Add up terms such as 1億 and 2千万, None if one is long or too great."""
    total = section = 0
    limits = [math.inf, math.inf]  # of the next term, and of the next section
    for digits, words in terms:
        powers = [_POWERS[word] for word in words]
        small, large = (sum(p for p in powers if (p < SECTION) == low) for low in (True, False))
        if len(digits) > _MAX_TERM:
            return None
        value = int(digits.replace(",", "")) * 10**small
        section += value
        if value >= limits[0] or section * 10**large >= limits[1]:
            return None
        limits[0] = 10 ** (small or large)
        if large:
            total, section, limits = total + section * 10**large, 0, [10**large, 10**large]
    return str(total + section)


def _multiples(value: str, power: int) -> list[str]:
    """Return the value, and its product with 10**power in ones, thousands ..."""
    scaled = (Decimal(value).scaleb(power - named) for named in _NAMED_POWERS)
    return [value, *(_value(*f"{number:f}".split(".")) for number in scaled if number >= 1)]


def _readings(runs: Sequence[str], marks: Sequence[str]) -> Iterable[str]:
    """Yield the values of two or more runs as one number, none for a date."""
    *group_marks, last = marks or [""]
    if marks and _are_groups(runs, marks):
        yield _value("".join(runs))
    if last not in ("", _GROUPS[0], *group_marks) and _are_groups(runs[:-1], group_marks):
        yield _value("".join(runs[:-1]), runs[-1])


def _are_groups(runs: Sequence[str], marks: Sequence[str]) -> bool:
    """Return whether marks group digits by three, or as in 1,50,000."""
    if not marks:
        return len(runs) == 1
    if len(set(marks)) > 1 or _DECIMAL in marks or len(runs[0]) > 3 or runs[0].startswith("0"):
        return False
    middle, last = set(map(len, runs[1:-1])), len(runs[-1])
    return last == 3 and (middle <= {3} or (middle == {2} and marks[0] == _COMMAS[0]))


def _fraction(runs: Sequence[str], sign: str) -> Number:
    """Return the number of a sign such as ½, after a whole number or none."""
    above, _, below = unicodedata.normalize("NFKC", sign).partition("\u2044")
    value = _value("".join(runs), f"{unicodedata.numeric(sign):.6f}".partition(".")[2])
    return Number(frozenset([value]), frozenset([*map(_value, runs), above, below]))


def _value(whole: str, fraction: str = "") -> str:
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
