"""Letters of other alphabets as Latin ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoder.romanization import LETTERS, romanized


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("Обама", "obama"),
        ("Щедрин, ёж", "shchedrinezh"),
        ("Київ", "kiiv"),
        ("Ελλάδα", "ellada"),
        ("Škoda Çelik Øre Straße İstanbul", "skodacelikorestrasseistanbul"),
        ("\uff11\uff12\uff13 ²", "1232"),
        ("\u2581don't", "dont"),
        ("日本 ไทย ☃", ""),
        ("", ""),
    ],
)
def test_names_as_they_are_spelt(text: str, letters: str) -> None:
    assert romanized(text) == letters


@given(st.text())
def test_only_letters_are_left_and_they_stay(text: str) -> None:
    letters = romanized(text)
    assert set(letters) <= set(LETTERS)
    assert romanized(letters) == letters


@given(st.text(), st.sampled_from(["a", "я", "ψ", "5"]))
def test_letters_do_not_hang_on_those_before_them(text: str, letter: str) -> None:
    assert romanized(text + letter) == romanized(text) + romanized(letter)
