"""Values of numbers that translations write in another form.

English writes small numbers and months in words, hours after noon with p.m., and lengths in inches.
Its translations write digits, hours to 24, and centimetres. All values are in ASCII digits, without
redundant zeros.
"""

import math
import re
from collections.abc import Iterator

_NUMBERS = """zero one,first,once two,second,twice three,third four,fourth five,fifth six,sixth
seven,seventh eight,eighth nine,ninth ten,tenth,decade eleven,eleventh twelve,twelfth,dozen
thirteen,thirteenth fourteen,fourteenth fifteen,fifteenth sixteen,sixteenth seventeen,seventeenth
eighteen,eighteenth nineteen,nineteenth"""
_TENS = "twent thirt fort fift sixt sevent eight ninet"
_MONTHS = """January,Jan February,Feb March,Mar April,Apr May June,Jun July,Jul August,Aug
September,Sept,Sep October,Oct November,Nov December,Dec"""
_VALUES = {
    **{word: value for value, words in enumerate(_NUMBERS.split()) for word in words.split(",")},
    **{
        stem + end: 10 * value
        for value, stem in enumerate(_TENS.split(), 2)
        for end in ("y", "ieth")
    },
    **{"hundred": 100, "century": 100, "thousand": 1000, "million": 10**6, "billion": 10**9},
    **{word: value for value, words in enumerate(_MONTHS.split(), 1) for word in words.split(",")},
}
_ROMAN = {numeral: value for value, numeral in enumerate("I II III IV V VI VII VIII IX".split(), 1)}
_ROMAN_NUMBER = re.compile("(?=[IVX]{2})(X{0,3})(IX|IV|V?I{0,3})(?:e|er|th)?")
_WORD = re.compile("[A-Za-z]+")
_CHINESE_DIGITS = dict(zip("零一二三四五六七八九\u3007两兩", (*range(10), 0, 2, 2), strict=True))
POWERS = {"百": 2, "千": 3, "万": 4, "萬": 4, "亿": 8, "億": 8}  # of ten, in Chinese and Japanese
_CHINESE_POWERS = {"十": 1, **POWERS}
_CHINESE = re.compile(f"[{''.join(_CHINESE_DIGITS)}{''.join(_CHINESE_POWERS)}]{{1,16}}")
SECTION = 4  # the powers from here on multiply all before them: 五千六百万 is 5600万

# What follows a number that has other values. The unit of a range, as in 2 to 4 inches, is of both.
_CONTEXT = re.compile(
    r"(?::\d\d)? ?(?P<afternoon>[pP]\.? ?[mM]\b)|(?P<decade>['\u2019]?s\b|-(?:lu[kv]|tal))"
    r"|(?: ?(?:to|or|and|-|\u2013) ?[\d.,]+)?[ -]?(?:(?P<inch>inch)|(?P<foot>f(?:oo|ee)?t\b)"
    r"|(?P<mile>miles?\b|mph\b)|(?P<yard>yards?\b)|(?P<pound>pounds?\b|lbs?\b)|(?P<acre>acres?\b)"
    r"|(?P<degree>degrees?\b|\u00b0 ?F))"
)
_YEARS = re.compile("[0-9]{4}[-\u2013/][0-9]{2}")  # such as 1950-53
_METRIC = {
    **{"inch": (2.54, 25.4), "foot": (0.3048, 30.48), "yard": (0.9144,)},
    **{"mile": (1.609344,), "pound": (0.45359237,), "acre": (0.40468564,)},
}
_ROUNDING = 0.09  # by which a translation may differ
_LONGEST = 12  # characters of a value that is converted


def named_values(text: str) -> frozenset[str]:
    """Return the values of number words, months, and other numerals.

    Words are English. Tens and units are added up. Numerals are Chinese, or Roman with 2 letters or
    more, and at most 39.
    """
    values, tens = set[int](), 0
    for word in _WORD.findall(text):
        value = _VALUES.get(word, _VALUES.get(word.lower(), -1))
        if value >= 0:
            values.add(tens + value if 0 < value < 10 else value)
        elif roman := _ROMAN_NUMBER.fullmatch(word):
            values.add(10 * len(roman[1]) + _ROMAN.get(roman[2], 0))
        tens = value if value in range(20, 100, 10) else 0
    values.update(map(_read_chinese, _CHINESE.findall(text)))
    return frozenset(map(str, values))


def _read_chinese(numeral: str) -> int:
    """Return the value of a numeral such as 三百二十 or 一九三七."""
    total = section = digit = 0
    is_spelt = _CHINESE_POWERS.keys().isdisjoint(numeral)
    for character in numeral:
        power = _CHINESE_POWERS.get(character, 0)
        if not power:
            digit = (10 * digit if is_spelt else 0) + _CHINESE_DIGITS[character]
        elif power < SECTION:
            section, digit = section + (digit or 1) * 10**power, 0
        elif section or digit:
            total, section, digit = total + (section + digit) * 10**power, 0, 0
        else:
            total = (total or 1) * 10**power
    return total + section + digit


def context_of(text: str, start: int, end: int) -> str | None:
    """Return the context that gives other values to the number in a text.

    The number is ``text[start:end]``. The context is "afternoon" before p.m., "decade" as in 1930s,
    the English name of a unit that is not metric, or "degree". Of the last year of a range, as in
    1950-53, it is the first two digits of the first year. Other numbers have None.
    """
    if end - start == 2 and start > 4 and _YEARS.fullmatch(text, start - 5, end):
        return text[start - 5 : start - 3]
    following = _CONTEXT.match(text, end)
    return following.lastgroup if following else None


def values_in_context(value: str, context: str) -> Iterator[str]:
    """Yield the other values of a number by a context of ``context_of``."""
    if context.isdecimal():
        yield context + value.zfill(2)
    elif context == "afternoon":
        if len(value) < 3 and value.isdecimal() and int(value) < 12:
            yield str(int(value) + 12)
    elif context == "decade":
        if len(value) == 4 and value.isdecimal() and value[3] == "0":
            yield value[2:] if value[2] != "0" else str(int(value[:2]) + 1)  # 19th century
    elif len(value) < _LONGEST:
        number = float(value)
        if context == "degree":  # of Fahrenheit, or a difference of temperatures
            metric = [(number - 32) / 1.8, number / 1.8]
        else:
            metric = [number * factor for factor in _METRIC[context]]
        for exact in metric:
            yield from _roundings(abs(exact))


def _roundings(value: float) -> Iterator[str]:
    """Yield a value as translators round it.

    They round to 1, 2, or 3 digits, up or down to 2, or to 0 or 5 as the second digit.
    """
    if not value:
        return
    unit = float(f"1e{int(f'{value:e}'.partition('e')[2]) - 1}")  # of the second digit
    steps = value / unit
    rounded = {round(steps, places) for places in (-1, 0, 1)}
    for number in rounded | {math.floor(steps), math.ceil(steps), 5 * round(steps / 5)}:
        if abs(number / steps - 1) < _ROUNDING:
            yield f"{number * unit:.4f}".rstrip("0").rstrip(".")
