"""Names against a slow comparison of all words, and in real sentences."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge.names import compare_names, names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Angela Merkel met Obama.", ["Merkel", "Obama"]),
        ("He said \u201cParis\u201d, (Rome) and Eu.", ["Paris", "Rome"]),
        ("Wladimir traf Łukasz und Ólafur.", ["Łukasz", "Ólafur"]),
        ("东京 是 首都", []),
        ("Alone", []),
        ("", []),
    ],
)
def test_names_are_capitalised_words_after_the_first(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_names_are_compared_with_all_words_of_the_other_side() -> None:
    languages = "fr", "en"
    makers = word_encoders(load_encoder(), languages)
    texts = [
        ["Hier Sarkozy et Obama ont parlé.", "Bonjour Paris et Rome.", "Il pleut.", "", "Oui"],
        [
            "Yesterday Sarkozy and Obama spoke.",
            "Hello Paris.",
            "In London it rains.",
            "In Rome",
            "",
        ],
    ]
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    found = compare_names(makers, texts, words, languages)
    for pair, (lesser, greater, fewest, most) in enumerate(found):
        gaps, counts = [], []
        for side, maker in enumerate(makers):
            names = maker.words([" ".join(names_in(texts[side][pair]))])
            others = makers[1 - side].words([texts[1 - side][pair]])
            counts.append(len(names.ids))
            if len(names.ids) and len(others.ids):
                cosines = names.vectors[names.ids] @ others.vectors[others.ids].T
                gaps.append(1 - cosines.max(axis=1).min())
        assert (fewest, most) == (min(counts), max(counts))
        assert greater == pytest.approx(max(gaps), abs=1e-5) if gaps else np.isnan(greater)
        assert lesser == pytest.approx(min(gaps), abs=1e-5) if len(gaps) > 1 else np.isnan(lesser)
    back = compare_names(makers[::-1], texts[::-1], words[::-1], languages[::-1])
    assert back.tobytes() == found.tobytes()


def test_another_name_is_missed() -> None:
    makers = word_encoders(load_encoder(), ("ru", "en"))
    texts = [["Вчера Путин встретил Меркель."] * 2, ["Yesterday Putin met Merkel."] * 2]
    texts[1][1] = "Yesterday Putin met Johnson."
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    same, other = compare_names(makers, texts, words, ("ru", "en"))[:, 1]
    assert other > 0.2 + same


def test_nouns_of_german_are_no_names() -> None:
    makers = word_encoders(load_encoder(), ("de", "en"))
    texts = [["Das Haus ist alt."], ["The house is old."]]
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    for language, most in (("de", 0), ("sv", 1)):
        assert compare_names(makers, texts, words, (language, "en"))[0, 3] == most
