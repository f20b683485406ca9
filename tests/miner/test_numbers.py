"""Numbers of two texts, compared by value: against an obvious comparison of every two."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.number_wording import named_values
from miner.numbers import (
    Number,
    compare_numbers,
    count_numbers,
    numbers_in,
    with_ascii_digits,
)

TEXTS = st.text(
    st.sampled_from(
        "00127 .,:'/a\u00e9\u00bd\u0661\u0662\u066b\u96f6\uff17\u4e07\u5343\U0001d7d8\n"
    )
)
SENTENCES = st.lists(
    st.sampled_from(
        "two twenty six May IV XX 1 2 6 19 20 24 1950-52 10.6 7 p.m. s inches to 5 15 80s".split()
    )
).map(" ".join)


def compare(source: str, target: str) -> tuple[int, int]:
    return compare_numbers(source, target)[:2]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        # digits of other scripts
        ("٢٥٠٠", "2500"),
        ("۱۴۰۲", "1402"),
        ("१२,३४५", "12345"),
        ("১৯৭১", "1971"),
        ("๑๒", "12"),
        ("២០២៤", "2024"),
        ("၄၅", "45"),
        ("３．５", "3.5"),
        ("１２，５００", "12,500"),
        ("𝟠𝟘", "80"),
        # zeros at both ends
        ("06", "6"),
        ("007", "7"),
        ("1,50", "1.5"),
        ("2,0", "2"),
        ("0,500", "0.5"),
        ("1.200,00", "1,200"),
        # groups and fractions
        ("1.234,5", "1,234.5"),
        ("1 234,5", "1'234.5"),
        ("12\u2019500", "12,500"),
        ("12\u00a0500", "12500"),
        ("12\u202f500,25", "12,500.25"),
        ("12\u2009500", "12.500"),
        ("1,50,000", "150 000"),
        ("12,34,56,789", "123.456.789"),
        ("١٬٢٣٤٫٥", "1,234.5"),
        ("١٢٫٥", "12,5"),
        # in two ways
        ("1.234", "1,234"),
        ("1.234", "1234"),
        ("1,234", "1.2340"),
        ("10 300", "10300"),
        # times and dates
        ("10.30", "10:30"),
        ("10h30", "10.30"),
        ("10:00", "10"),
        ("10.00", "10:00"),
        ("08:05", "8.05"),
        ("2.5.2010", "5/2/2010"),
        ("02.05.2010", "2010-05-02"),
        ("2.5.2010", "2010年5月2日"),
        # what is about them
        ("50 %", "50%"),
        ("21st", "21."),
        ("№ 5", "5\u00ba"),
        ("10\u00b2", "10"),
        ("\u00bd", "0,5"),
        ("\u00bd", "1/2"),
        ("2\u00bd", "2.5"),
        ("2\u00bd", "2 1/2"),
        ("\u2153", "1/3"),
        # powers of ten
        ("3万", "30,000"),
        ("2.8亿", "280 million"),
        ("28億", "2,8 Milliarden"),
        ("5천만", "50 million"),
        ("3万", "3万"),
        ("310 億", "31 billion"),
        ("½ 万", "0.5"),
        ("3万5千", "35,000"),
        ("3만 5천 원", "35,000 won"),
        ("1億2千万人", "120 million"),
        ("2億3000万円", "230 million yen"),
        ("1억 2,345만", "123.45 million"),
        ("5千6百万", "56 million"),
        ("２万５百", "20,500"),
        ("1万 2万 3万", "10,000, 20,000, 30,000"),
        ("1百2,百", "100, 200"),
        ("37万5,000ドル", "$375,000"),
        # number words, months, and Roman numerals
        ("32 %", "Thirty-two percent"),
        ("3回、5ヶ月", "three times in five months"),
        ("12 Spiele", "a dozen games"),
        ("der 21.", "the twenty-first"),
        ("30 Jahre", "thirty years"),
        ("11月6日", "November 6"),
        ("29.9.1918", "29 September 1918"),
        ("6.11.", "Nov. 6"),
        ("XIXe siècle", "19th century"),
        ("1. Weltkrieg", "World War One"),
        ("2. Weltkrieg", "World War II"),
        # times and years
        ("um 19:00 Uhr", "at 7 p.m."),
        ("19.30 Uhr", "7:30 PM"),
        ("19:30", "7.30pm"),
        ("19 h 30", "7:30 p. m."),
        ("30-е годы", "the 1930s"),
        ("1930-luvulla", "in the '30s"),
        ("17. Jahrhundert", "1600-luku"),
        ("på 1800-tallet", "in the 19th century"),
        ("1950–1953", "1950-53"),
        # units that are not metric
        ("5 bis 10 Zentimeter", "2 to 4 inches"),
        ("75-150 mm", "3 to 6 inches"),
        ("320 km", "200 miles"),
        ("322 km", "200 miles"),
        ("137 km/h", "85 mph"),
        ("6 Meter", "20 feet"),
        ("27 Meter", "30 yards"),
        ("295 kg", "650-pound"),
        ("27 Grad", "80 degrees"),
        ("6 Grad wärmer", "10 degrees warmer"),
        ("26 °C", "79 °F"),
        ("2 Hektar", "5 acres"),
        # no zero before the fraction, and marks that look like an apostrophe
        (".5 percent", "0,5 Prozent"),
        ("$.50", "0,50 $"),
        ("5`000", "5000"),
        ("12\u00b4500", "12\u2018500"),
    ],
)
def test_equal(source: str, target: str) -> None:
    shared, unmatched = compare(source, target)
    assert shared > 0
    assert unmatched == 0


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("٢٥٠٠", "2501"),
        ("12", "13"),
        ("1,5", "15"),
        ("1.05", "1.5"),
        ("10 000", "10"),
        ("1.234", "1"),
        ("0.500", "500"),
        ("10.30", "10"),
        ("10.30", "10:45"),
        ("1,50,000", "1,500"),
        ("3万", "4万"),
        ("\u00bd", "2"),
        ("12\u2019500", "12"),
        ("1234 567", "1234567"),
        ("3万5千", "30,500"),
        ("1億2千万", "12,000"),
        (".5", "5"),
        ("19:00", "8 p.m."),
        ("19:00", "7 people"),
        ("30 Jahre", "forty years"),
        ("22", "twenty and thirty-two"),
        ("1963", "1950-53"),
        ("1930", "in the 1830s"),
        ("5 Zentimeter", "20 inches"),
        ("40 Grad", "80 degrees"),
        ("3 km", "5 km"),
        ("6", "XVI"),
        ("5", "V"),
    ],
)
def test_different(source: str, target: str) -> None:
    assert compare(source, target)[0] == 0


def test_counts() -> None:
    assert compare("12 von 30 Leuten, 12 Frauen", "30 of many, or 40 %") == (1, 2)
    assert compare("am 24.12.2010 um 10.30", "12/24/2010, 11:30") == (3, 3)
    assert compare("keine", "none") == (0, 0)
    assert compare("", "1 2 3") == (0, 3)


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("十", "10"),
        ("十九", "19"),
        ("三百二十", "320"),
        ("两百零五", "205"),
        ("二\u3007一八", "2018"),
        ("一万二千", "12000"),
        ("十二万五千", "125000"),
        ("五千六百万", "56000000"),
        ("一亿三千万", "130000000"),
        ("一万亿", "1000000000000"),
    ],
)
def test_chinese_numerals(numeral: str, value: str) -> None:
    assert named_values(f"有{numeral}人") == {value}
    assert compare_numbers(f"有{numeral}人", f"{value} people") == (1, 0, 0)


def test_a_value_in_words_is_shared_by_both_texts() -> None:
    assert compare_numbers("3 Siege, 2 Tore", "three wins, 2 goals") == (2, 0, 0)
    assert compare_numbers("3 Siege", "four wins") == (0, 1, 0)
    assert compare_numbers("3 Siege", "three wins in 5 games") == (1, 1, 0)
    assert compare_numbers("drei Siege", "three wins") == (0, 0, 0)


def test_a_number_of_any_length() -> None:
    digits = "9" * 10_000
    assert compare(digits, digits + ",0") == (1, 0)
    assert compare(digits + "万", "1") == (0, 2)
    assert compare(digits + "万5千", "5,000") == (1, 1)
    for context in ("p.m.", "s", "inches", "degrees"):
        assert compare(f"{digits} {context}", digits) == (1, 0)


def slow_comparison(source: str, target: str) -> tuple[int, int, int]:
    """Compare every number with every other; parts are numbers of their own where all are there."""
    numbers = [set(numbers_in(text)) for text in (source, target)]
    names = [named_values(text) for text in (source, target)]

    def is_whole(number: Number, side: int, named: bool) -> bool:
        return bool(number.parts) and all(
            any(part in other.readings for other in numbers[side])
            or (named and part in names[side])
            for part in number.parts
        )

    def matches(number: Number, side: int, named: bool) -> bool:
        return (
            is_whole(number, 1 - side, named)
            or (named and not names[1 - side].isdisjoint(number.readings))
            or any(
                number.readings & other.readings
                or (number.readings & other.parts and is_whole(other, side, named))
                for other in numbers[1 - side]
            )
        )

    plain, all_matches = (
        [sum(matches(number, side, named) for number in numbers[side]) for side in (0, 1)]
        for named in (False, True)
    )
    unmatched = [len(own) - count for own, count in zip(numbers, all_matches, strict=True)]
    return min(plain) + sum(all_matches) - sum(plain), sum(unmatched), min(unmatched)


@given(TEXTS | SENTENCES, TEXTS | SENTENCES)
def test_the_comparison_is_that_of_every_two(source: str, target: str) -> None:
    shared, *rest = compare_numbers(source, target)
    assert (shared, *rest) == slow_comparison(source, target)
    assert (shared, *rest) == compare_numbers(target, source)


@given(TEXTS)
def test_a_text_has_its_own_numbers(text: str) -> None:
    assert compare(text, text) == (len(numbers_in(text)), 0)


@given(st.lists(TEXTS, max_size=4))
def test_the_order_of_numbers_means_nothing(texts: list[str]) -> None:
    other = sorted(texts)
    one, two = " ; ".join(texts), " ; ".join(other)
    assert compare(one, two) == (len(numbers_in(one)), 0)


@given(st.lists(st.tuples(TEXTS, TEXTS)))
def test_numbers_of_pairs_are_those_of_each_text(pairs: list[tuple[str, str]]) -> None:
    found = count_numbers([one for one, _ in pairs], [two for _, two in pairs])
    assert found.T.tolist() == [list(compare_numbers(*pair)) for pair in pairs]


@pytest.mark.parametrize(
    ("source", "target", "contradicting"),
    [
        ("12 Boote", "13 boats", 1),
        ("12 Boote, 3 Tage", "3 days, 13 boats", 1),
        ("1 und 2", "3 and 4", 2),
        ("1 und 2", "3", 1),
        ("3 bis 9 Grad", "three to nine degrees", 0),
        ("1.000 Euro", "1,000 euros", 0),
        ("5 Tage, 7 Nächte", "5 days", 0),
        ("keine", "none", 0),
    ],
)
def test_numbers_contradict_if_either_text_has_one_more(
    source: str, target: str, contradicting: int
) -> None:
    assert count_numbers([source, target], [target, source])[2].tolist() == [contradicting] * 2


@given(st.integers(0, 10**12), st.integers(0, 99))
def test_a_value_is_read_however_it_is_written(whole: int, cents: int) -> None:
    plain = f"{whole}.{cents:02}"
    grouped = f"{whole:,}.{cents:02}"
    continental = grouped.translate(str.maketrans(",.", ".,"))
    spaced = grouped.replace(",", "\u202f")
    arabic = plain.translate({ord("0") + digit: 0x660 + digit for digit in range(10)})
    for form in (grouped, continental, spaced, arabic):
        assert compare(plain, form) == (1, 0)


@given(st.lists(TEXTS))
def test_digits_become_those_of_ascii(texts: list[str]) -> None:
    expected = [
        "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
        for text in texts
    ]
    assert list(with_ascii_digits(texts)) == expected


def test_all_digits_are_looked_for() -> None:
    digits = [
        character for character in map(chr, range(sys.maxunicode + 1)) if character.isdecimal()
    ]
    assert len(digits) >= 660
    _, unmatched, _ = count_numbers(digits, [""] * len(digits))
    assert unmatched.tolist() == [1] * len(digits)
    assert all(text in "0123456789" for text in with_ascii_digits(digits))
