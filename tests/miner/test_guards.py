"""The guards: what each rejects, and what it lets pass."""

import pytest

from miner.guards import GUARDS, length_odds, numbers_in


def test_length_odds() -> None:
    odds = length_odds(["a" * 7, "a" * 7, "a" * 15], ["b" * 3, "b" * 7, "b" * 1])
    assert odds.tolist() == [0.0, 1.0, 2.0]  # ratios 2, 1 and 8
    assert length_odds([], []).tolist() == []


@pytest.mark.parametrize(
    ("guard", "source", "target", "expected"),
    [
        ("short", "Ja", "Yes, of course", True),
        ("short", "1234 5678", "1234 5678", True),
        ("short", "\u8bf7\u7528\u8336", "Have some tea", False),
        ("copied", "Tel Aviv!", "tel-aviv", True),
        ("copied", "Tel Aviv", "Tel Aviv is big", False),
        ("numbers", "Es waren 12 Leute", "There were 13 people", True),
        ("numbers", "Es waren 12 Leute", "There were 12 people", False),
        ("numbers", "Es waren 12 Leute", "There were twelve people", False),
        ("numbers", "1.234.567,8 Euro", "1,234,567.8 euros", False),
        ("numbers", "10 000 Euro und 5", "5 and 10,000 euros", False),
    ],
)
def test_a_pair(guard: str, source: str, target: str, expected: bool) -> None:
    assert GUARDS[guard]([source], [target]).tolist() == [expected]


def test_length() -> None:
    """Of ten pairs of equal lengths one is half as long, which is a whole power of 2."""
    source = ["a" * 31] * 10
    target = ["b" * 31] * 9 + ["b" * 15]
    assert GUARDS["length"](source, target).tolist() == [False] * 9 + [True]
    target[9] = "b" * 25
    assert not GUARDS["length"](source, target).any()


@pytest.mark.parametrize("guard", GUARDS)
def test_no_pairs(guard: str) -> None:
    assert GUARDS[guard]([], []).tolist() == []


def test_numbers() -> None:
    assert numbers_in("In 2008, 1,5 von 3 (4.000)") == {"2008", "15", "3", "4000"}
