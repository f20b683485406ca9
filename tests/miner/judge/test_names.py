"""Names against a slow comparison of all words, and in real sentences."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge.names import LEAST_GAP, compare_names, names_in


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
    for pair, (lesser, greater, lesser_weighted, greater_weighted, fewest, most) in enumerate(
        found
    ):
        gaps, weighted, counts = [], [], []
        for side, maker in enumerate(makers):
            names = maker.words([" ".join(names_in(texts[side][pair]))])
            others = makers[1 - side].words([texts[1 - side][pair]])
            counts.append(len(names.ids))
            if len(names.ids) and len(others.ids):
                cosines = names.vectors[names.ids] @ others.vectors[others.ids].T
                own = 1 - cosines.max(axis=1)
                gaps.append(own.max())
                own_words = maker.words([texts[side][pair]])
                weights = names.weights[names.ids] / own_words.weights[own_words.ids].mean()
                weighted.append((weights * np.maximum(own - LEAST_GAP, 0)).max())
        assert (fewest, most) == (min(counts), max(counts))
        for low, high, values in (
            (lesser, greater, gaps),
            (lesser_weighted, greater_weighted, weighted),
        ):
            assert high == pytest.approx(max(values), abs=1e-4) if values else np.isnan(high)
            assert low == pytest.approx(min(values), abs=1e-4) if len(values) > 1 else np.isnan(low)
    back = compare_names(makers[::-1], texts[::-1], words[::-1], languages[::-1])
    assert back.tobytes() == found.tobytes()


def test_another_name_is_missed() -> None:
    makers = word_encoders(load_encoder(), ("ru", "en"))
    texts = [["Вчера Путин встретил Меркель."] * 2, ["Yesterday Putin met Merkel."] * 2]
    texts[1][1] = "Yesterday Putin met Johnson."
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    same, other = compare_names(makers, texts, words, ("ru", "en"))
    assert other[1] > 0.2 + same[1]
    assert other[3] > 0.3 + same[3]


def test_nouns_of_german_are_names_only_beside_missing_names_of_the_other_side() -> None:
    makers = word_encoders(load_encoder(), ("de", "en"))
    texts = [
        ["Sie sah gestern ein Haus in Paris."] * 2,
        ["Yesterday she saw a house in Paris."] * 2,
    ]
    texts[1][1] = "Yesterday she saw a house in Obama."
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    german = compare_names(makers, texts, words, ("de", "en"))
    swedish = compare_names(makers, texts, words, ("sv", "en"))
    assert german[:, [4, 5]].tolist() == [[0, 1], [0, 1]]
    assert swedish[:, [4, 5]].tolist() == [[1, 2], [1, 2]]
    assert german[:, [0, 2]].tolist() == swedish[:, [0, 2]].tolist()
    assert german[1, 2] > 0.3 + german[0, 2]
