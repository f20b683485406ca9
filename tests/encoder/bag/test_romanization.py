"""Letters of other alphabets as Latin ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoder.bag.romanization import LETTERS, SOUNDS, romanize, romanize_three_alphabets, to_sounds


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
        ("日本 ☃", ""),
        ("ไทย, ไทยแลนด์", "aithyaithyaelnd"),
        ("لندن پاریس", "lndnparys"),
        ("לונדון", "lvndvn"),
        ("लंदन दिल्ली", "lndndilli"),
        ("லண்டன்", "lntn"),
        ("워싱턴", "weosingteon"),
        ("トヨタ", "toyota"),
        ("თბილისი", "tbilisi"),
        ("Երևան", "erevan"),
        ("ለንደን", "lanedane"),
        ("ភ្នំពេញ", "phnnpeny"),
        ("Қазақстан", "kazakstan"),
        ("٣٤ १२", "3412"),
        ("Кремль объезд", "kremlobaezd"),
        ("কো কৌ", "kokau"),
        ("ೊ ೆ ೊ", "oeo"),
        ("\uac00 \u1100 \uac00", "gaga"),
        ("", ""),
    ],
)
def test_names_as_they_are_spelt(text: str, letters: str) -> None:
    assert romanize(text) == letters


def test_three_alphabets() -> None:
    assert romanize_three_alphabets("Йод ώρα 한국 لندن құс\nØl") == "iodoras\nol"


@pytest.mark.parametrize(
    ("texts", "sound"),
    [
        ("London لندن लंदन ลอนดอน 런던 ロンドン Лондон Λονδίνο לונדון লন্ডন Լոնդոն ለንደን", "lntn"),
        ("Washington واشنطن 워싱턴 ワシントン ვაშინგტონი Вашингтон वाशिंगटन וושינגטון", "sntn"),
        ("123 ١٢٣", "123"),
        ("aa 日", ""),
    ],
)
def test_names_sound_alike(texts: str, sound: str) -> None:
    assert {to_sounds(romanize(text)) for text in texts.split()} == {sound}


def test_lines_are_kept_apart() -> None:
    assert romanize("Лес\n\nरात") == "les\n\nrat"
    assert to_sounds("les\nsal\n\nl") == "ls\nsl\n\nl"


@given(st.text().filter(lambda text: "\n" not in text))
def test_only_letters_are_left_and_they_stay(text: str) -> None:
    letters = romanize(text)
    assert set(letters) <= set(LETTERS)
    assert romanize(letters) == letters
    assert set(to_sounds(letters)) <= set(SOUNDS)


@given(st.text(), st.sampled_from(["a", "я", "ψ", "5"]))
def test_letters_do_not_hang_on_those_before_them(text: str, letter: str) -> None:
    assert romanize(text + letter) == romanize(text) + romanize(letter)
