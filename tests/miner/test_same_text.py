"""Pairs with the same text on both sides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.same_text import same_texts


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Angela Merkel", "Angela Merkel", True),
        ("2010", "2010.", True),
        ("OK", "ok!", True),
        ("</div>", "< /DIV >", True),
        ("\u00abCaf\u00e9\u00bb", "Cafe\u0301", True),  # another Unicode form
        ("\uff21\uff22\uff23\uff11", "abc 1", True),  # full width
        ("Stra\u00dfe", "STRASSE", True),
        ("\u039f\u03b4\u03cc\u03c2", "\u039f\u0394\u038c\u03a3", True),  # a final sigma
        ("\ufb01n", "fin", True),  # a ligature
        ("\u2116 5", "No 5", True),
        ("\u2014 Ja \u200b", "ja", True),
        ("\u6771\u4eac", "\u6771\u4eac\u3002", True),
        ("...", "\u2026", True),
        ("?!", "!!", False),
        ("Ja.", "Yes.", False),
        ("Room 12", "Room 13", False),
        ("Berlin", "Berlin is large", False),
        ("\u0915\u093f\u0924\u093e\u092c", "\u0915\u0924\u092c", False),  # vowels are marks
        ("Der", "Die", False),
        ("", "Ja", False),
    ],
)
def test_examples(source: str, target: str, expected: bool) -> None:
    assert same_texts([source, target], [target, source]).tolist() == [expected, expected]


def slowly(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(one for one in text if unicodedata.category(one)[0] in "LMN")


@given(st.text(max_size=6), st.text(max_size=6), st.sampled_from([str.upper, str.lower, str]))
def test_by_the_definition(one: str, other: str, case: type[str]) -> None:
    for target in (other, case(one), unicodedata.normalize("NFD", one) + "!", one[::-1]):
        if slowly(one) or slowly(target):
            (found,) = same_texts([one], [target])
            assert found == (slowly(one) == slowly(target))


def test_no_pairs() -> None:
    assert same_texts([], []).shape == (0,)
