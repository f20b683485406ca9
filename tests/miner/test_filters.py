"""The filters: what each rejects, and what it lets pass."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from miner.filters import (
    FILTERS,
    RATIO_PAIRS,
    Suspects,
    check_filter_languages,
    length_odds,
    median_log_ratio,
    occurrences,
    reasons,
)

GERMAN = "Die Kinder spielen heute im Garten hinter dem alten Haus."
ENGLISH = "The children are playing in the garden behind the old house today."


def suspects(
    source: Sequence[str],
    target: Sequence[str],
    lists: Sequence[Sequence[int]] = ((), ()),
) -> Suspects:
    return Suspects(
        source=source,
        target=target,
        ratio=median_log_ratio(source, target),
        lists=[np.array(side, dtype=np.int64) for side in lists],
        languages=("de", "en"),
        scripts=("LATIN", "LATIN"),
    )


def test_lengths_are_held_against_the_usual_ratio() -> None:
    """Ratios are 2, 1 and 8 of lengths and one more, the usual one is 2."""
    odds = length_odds(suspects(["a" * 7, "a" * 7, "a" * 15], ["b" * 3, "b" * 7, "b" * 1]))
    assert odds.tolist() == [0.0, 1.0, 2.0]
    assert median_log_ratio(["a" * 15] * 3 + ["a"], ["b" * 3] * 3 + ["b"]) == 2.0


def test_the_usual_ratio_is_that_of_the_best_pairs() -> None:
    source = ["aaa"] * RATIO_PAIRS + ["a" * 15] * (RATIO_PAIRS + 9)
    assert median_log_ratio(source, ["bbb"] * len(source)) == 0.0


@pytest.mark.parametrize(
    ("name", "source", "target", "expected"),
    [
        ("short", "Ja", "Yes, of course", True),
        ("short", "1234 5678", "1234 5678", True),
        ("short", " ", "Have some tea", True),
        ("short", "\u8bf7\u7528\u8336", "Have some tea", False),
        ("copied", "Tel Aviv!", "tel-aviv", True),
        ("copied", "FC Barcelona 3, Real Madrid 2", "FC Barcelona 3, Real Madrid 1", True),
        ("copied", "Tel Aviv", "Tel Aviv is a large city", False),
        ("copied", GERMAN, ENGLISH, False),
        ("numbers", "Es waren 12 Leute", "There were 13 people", True),
        ("numbers", "Es waren 12 Leute", "There were 12 people", False),
        ("numbers", "Es waren 12 Leute", "There were twelve people", False),
        ("numbers", "12 von 30 Leuten", "12 of thirty, or 40 %", False),
        ("numbers", "1.234.567,8 Euro", "1,234,567.8 euros", False),
        ("numbers", "10 000 Euro", "10,000 euros", False),
        ("numbers", "\u0662\u0665\u0660\u0660 \u0646\u0633\u0645\u0629", "2500 inhabitants", False),
        ("numbers", "\u0662\u0665\u0660\u0660 \u0646\u0633\u0645\u0629", "2501 inhabitants", True),
        ("numbers", "Abfahrt um 10.30 Uhr", "Departure at 10:30", False),
        ("numbers", "Abfahrt um 10.30 Uhr", "Departure at 11:45", True),
        ("urls", "Mehr auf www.example.de/a.", "More at www.example.de/a", False),
        ("urls", "Mehr auf www.example.de/a", "More at www.example.de/b", True),
        ("urls", "Schreiben Sie an info@example.de", "Write to us", True),
        (
            "urls",
            "\u8bf7\u8bbf\u95eehttps://example.org/help\u3002",
            "See https://example.org/help.",
            False,
        ),
        (
            "urls",
            "\u8bf7\u8bbf\u95eehttps://example.org/help\u3002",
            "See https://example.org/.",
            True,
        ),
        ("urls", GERMAN, ENGLISH, False),
        ("script", GERMAN, "The children \u0438\u0433\u0440", False),
        (
            "script",
            GERMAN,
            "\u0434\u0435\u0442\u0438 play \u0438\u0433\u0440\u0430\u044e\u0442",
            True,
        ),
        ("script", "\u05e9\u05dc\u05d5\u05dd", ENGLISH, True),
        ("script", "12", "34", False),
        ("language", GERMAN, ENGLISH, False),
        ("language", ENGLISH, ENGLISH, True),
        ("language", GERMAN, GERMAN, True),
        ("language", "12", "?", False),
    ],
)
def test_a_pair(name: str, source: str, target: str, expected: bool) -> None:
    assert FILTERS[name](suspects([source], [target])).tolist() == [expected]


def test_length() -> None:
    """Of ten pairs of equal lengths one is half as long, which is a whole power of 2."""
    source = ["a" * 31] * 10
    target = ["b" * 31] * 9 + ["b" * 15]
    assert FILTERS["length"](suspects(source, target)).tolist() == [False] * 9 + [True]
    target[9] = "b" * 25
    assert not FILTERS["length"](suspects(source, target)).any()


def test_hubs_on_either_side() -> None:
    pairs = suspects(["a"] * 4, ["b"] * 4, ([50, 51, 0, 0], [50, 0, 51, 0]))
    assert FILTERS["hub"](pairs).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("name", "message"), [("hub", "requires 2 lists, not 0"), ("language", "--src-lang")]
)
def test_facts_that_a_filter_lacks(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reasons(Suspects.of([GERMAN], [ENGLISH]), [name])


def test_occurrences() -> None:
    ids = np.random.default_rng(4).integers(-1, 9, (20, 3))
    counts = Counter(ids.ravel().tolist())
    assert occurrences(ids, 12).tolist() == [counts[row] for row in range(12)]


@pytest.mark.parametrize("name", FILTERS)
def test_no_pairs(name: str) -> None:
    assert FILTERS[name](suspects([], [])).tolist() == []


def test_reasons() -> None:
    pairs = suspects(["Ja", "12 Leute waren da", GERMAN], ["ja", "13 people came", ENGLISH])
    assert reasons(pairs, ["copied", "numbers", "short"]) == ["copied,short", "numbers", ""]
    assert reasons(pairs, []) == ["", "", ""]


@pytest.mark.parametrize(
    ("names", "languages", "message"),
    [
        (
            ("language",),
            ("de", None),
            "unknown language; pass --src-lang and --tgt-lang",
        ),
        (
            ("language",),
            ("de", "klingon"),
            r"--filters language \(also in web\): does not recognise 'klingon'; name other filters "
            r"\(recognised are ace",
        ),
    ],
)
def test_what_cannot_be_checked(
    names: Sequence[str], languages: tuple[str, str | None], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_filter_languages(names, languages)


def test_what_can() -> None:
    check_filter_languages((), (None, None))
    check_filter_languages(tuple(FILTERS), ("de", "en"))
