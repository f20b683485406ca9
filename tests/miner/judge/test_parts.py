"""Names and sentences against a slow comparison of all words, and in real texts."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge.compiled import LEAST_GAP, MATCHED
from miner.judge.features import match_words
from miner.judge.parts import NAME, PART, START, combine_parts, flag_words

LANGUAGES = "fr", "en"
TEXTS = [
    [
        *("Hier Sarkozy et Obama ont parlé.", "Bonjour Paris et Rome.", "Il pleut.", "", "Oui"),
        *("Le chat dort dans la maison.", "Il pleut.", "Le chien mange. Nous partons demain."),
    ],
    [
        *("Yesterday Sarkozy and Obama spoke.", "Hello Paris.", "In London it rains."),
        *("In Rome", "", "The cat sleeps in the house. Shares fell sharply on Monday."),
        *("It rains.", "The dog eats. We are leaving tomorrow."),
    ],
]


def part_of(text: str, language: str, flag: int) -> list[str]:
    """The words of a text that have a flag."""
    (maker,) = word_encoders(load_encoder(), [language])
    flags = flag_words(maker, [text], maker.words([text]), language)
    return [word for word, own in zip(text.split(), flags, strict=True) if own & flag]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Angela Merkel met Obama.", ["Merkel", "Obama."]),
        ("He said \u201cParis\u201d, (Rome) and Eu.", ["\u201cParis\u201d,", "(Rome)"]),
        ("He met Łukasz and Ólafur.", ["Łukasz", "Ólafur."]),
        ("Alone", []),
        ("", []),
    ],
)
def test_names_are_capitalised_words_after_the_first(text: str, names: list[str]) -> None:
    assert part_of(text, "en", NAME) == names


@pytest.mark.parametrize(
    ("text", "language", "starts"),
    [
        ("They came. You saw.", "en", ["You"]),
        (
            "Mr. Smith met her. \u201cWhy?\u201d (Nobody knew.)",
            "en",
            ["\u201cWhy?\u201d", "(Nobody"],
        ),
        ("Only one. and a half", "en", []),
        ("नमस्ते। वह गया।", "hi", ["वह"]),
    ],
)
def test_sentences_start_where_they_are_split(text: str, language: str, starts: list[str]) -> None:
    assert part_of(text, language, START) == starts


def test_places_in_scripts_without_spaces() -> None:
    for language, text, sentence in (
        ("zh", "他昨天去了北京。今天下雨了。", "今天下雨了。"),
        ("ja", "彼は昨日東京へ行った。今日は雨だ。", "今日は雨だ。"),
    ):
        (maker,) = word_encoders(load_encoder(), [language])
        flags = flag_words(maker, [text], maker.words([text]), language)
        (place,) = np.flatnonzero(flags == START).tolist()
        assert "".join(maker.split([text])[0][place:]) == sentence
    (maker,) = word_encoders(load_encoder(), ["th"])
    text = "เมื่อวานนี้ Obama พบกับเขา"
    flags = flag_words(maker, [text], maker.words([text]), "th")
    (own,) = maker.split([text])
    assert flags[own.index("Obama") if "Obama" in own else -1] == NAME
    assert flags[len(own) :].all() and len(flags) > len(own)


def test_names_and_sentences_are_described_by_all_words() -> None:
    makers = word_encoders(load_encoder(), LANGUAGES)
    words = [maker.words(side) for maker, side in zip(makers, TEXTS, strict=True)]
    flags = [*map(flag_words, makers, TEXTS, words, LANGUAGES)]
    *_, found = match_words(*words, flags=flags)
    for pair, both in enumerate(found):
        one, other = (slice(*side.offsets[pair : pair + 2]) for side in words)
        cosines = words[0].vectors[words[0].ids[one]] @ words[1].vectors[words[1].ids[other]].T
        if not cosines.size:
            assert np.isnan(both).all()
            continue
        for side, (part, axis) in enumerate(((one, 1), (other, 0))):
            best, own = cosines.max(axis=axis), flags[side][part]
            weights = words[side].weights[words[side].ids[part]]
            names = own & NAME > 0
            assert both[side, 0] == names.sum()
            if names.any():
                gaps = 1 - best[names]
                weighted = weights[names] / weights.mean() * np.maximum(gaps - LEAST_GAP, 0)
                assert both[side, 1:3] == pytest.approx([gaps.max(), weighted.max()], abs=1e-4)
            else:
                assert np.isnan(both[side, 1:3]).all()
            starts = np.flatnonzero(own & START)
            if len(starts):
                missing = weights * (1 - np.clip(best / MATCHED, 0, 1))
                lost, sums = (
                    np.array([each.sum() for each in np.split(values, starts)])
                    for values in (missing, weights)
                )
                covered = 1 - lost / sums
                least = covered.argmin()
                expected = covered[least], np.ptp(covered), lost[least] / weights.mean()
                assert both[side, 3:] == pytest.approx(expected, abs=1e-3)
            else:
                assert np.isnan(both[side, 3:]).all()
    assert found[5, 1, 3] < 0.5 < found[7, 1, 3]


def test_sides_are_combined() -> None:
    parts = np.array(
        [
            [[1, 0.5, 2, 0.3, 0.4, 1], [2, 0.4, 3, 0.2, 0.5, 0]],
            [[1, 0.5, 2, np.nan, np.nan, np.nan], [0, np.nan, np.nan, 0.2, 0.5, 0]],
        ],
        dtype=np.float32,
    )
    assert parts.shape[2] == PART
    found = combine_parts(parts, LANGUAGES)
    nan = np.nan
    expected = [[0.4, 0.5, 2, 3, 1, 2, 0.2, 0.5, 1], [nan, 0.5, nan, 2, 0, 1, 0.2, 0.5, 0]]
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.float32))
    back = combine_parts(np.ascontiguousarray(parts[:, ::-1]), LANGUAGES[::-1])
    assert back.tobytes() == found.tobytes()
    german = combine_parts(parts, ("de", "en"))
    np.testing.assert_array_equal(german[:, [0, 2]], found[:, [0, 2]])
    expected = [[np.float32(0.4), 3, 0, 2], [nan, nan, 0, 0]]
    np.testing.assert_array_equal(german[:, [1, 3, 4, 5]], np.array(expected, dtype=np.float32))


def test_another_name_is_missed() -> None:
    makers = word_encoders(load_encoder(), ("ru", "en"))
    texts = [["Вчера Путин встретил Меркель."] * 2, ["Yesterday Putin met Merkel."] * 2]
    texts[1][1] = "Yesterday Putin met Johnson."
    words = [maker.words(side) for maker, side in zip(makers, texts, strict=True)]
    flags = [*map(flag_words, makers, texts, words, ("ru", "en"))]
    *_, parts = match_words(*words, flags=flags)
    same, other = combine_parts(parts, ("ru", "en"))
    assert other[1] > 0.2 + same[1]
    assert other[3] > 0.3 + same[3]
