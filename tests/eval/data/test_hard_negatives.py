"""Changed copies: what each kind changes, and what never happens."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.tasks.xsim_pp import KINDS, MAX_VARIANTS, hard_negatives

SENTENCES = [
    "The shop in Oslo sold 11 boats in 2008.",
    "He met Anna Berg, who is not rich.",
    "Prices will rise before May.",
    "Nothing here",
]


def copies(row: int, kind: str) -> list[str]:
    made = hard_negatives(SENTENCES)
    return [copy.text for copy in made if (copy.row, copy.kind) == (row, kind)]


def test_numbers_keep_their_length() -> None:
    one, other = copies(0, "number")
    assert re.fullmatch(r"The shop in Oslo sold [1-9]\d boats in 2008\.", one)
    assert re.fullmatch(r"The shop in Oslo sold 11 boats in [1-9]\d\d\d\.", other)
    assert SENTENCES[0] not in (one, other)


def test_number_words() -> None:
    (made,) = [copy.text for copy in hard_negatives(["We saw seven birds"])]
    word = re.fullmatch(r"We saw (\w+) birds", made)
    assert word is not None
    assert word[1] != "seven"


def test_names_come_from_other_sentences() -> None:
    assert copies(0, "entity")[0] in {
        "The shop in Anna Berg sold 11 boats in 2008.",
        "The shop in May sold 11 boats in 2008.",
    }
    assert copies(1, "entity")[0] in {
        "He met Oslo, who is not rich.",
        "He met May, who is not rich.",
    }


def test_negations() -> None:
    assert copies(1, "negation") == ["He met Anna Berg, who is rich."]
    assert copies(2, "negation") == [
        "Prices will not rise before May.",
        "Prices will fall before May.",
        "Prices will rise after May.",
    ]
    (made,) = hard_negatives(["I don't know"])
    assert (made.kind, made.text) == ("negation", "I do know")
    (made,) = hard_negatives(["It has been seen"])
    assert made.text == "It has not been seen"


def test_a_copy_that_is_another_sentence_is_none() -> None:
    assert copies(3, "negation") == []
    made = hard_negatives(["He is tall", "He is not tall"])
    assert [copy.text for copy in made] == []


@pytest.mark.parametrize("number", ["0", "7", "10", "100", "05", "1000000"])
def test_any_number_has_another(number: str) -> None:
    texts = [copy.text for copy in hard_negatives([f"about {number} of them"])]
    for text in texts:
        other = text.split()[1]
        assert int(other) != int(number)
        assert len(other) == len(number)
    assert texts


ALPHABET = st.sampled_from(["is", "not", "Ann", "in", "Bonn", "7", "90", "two", "won", "x", ","])


@given(st.lists(st.lists(ALPHABET, max_size=8).map(" ".join), max_size=6), st.integers(0, 9))
def test_copies_are_new_bounded_and_repeatable(sentences: list[str], seed: int) -> None:
    made = hard_negatives(sentences, seed=seed)
    assert made == hard_negatives(sentences, seed=seed)
    assert not {copy.text for copy in made} & set(sentences)
    assert [(copy.row, KINDS.index(copy.kind)) for copy in made] == sorted(
        (copy.row, KINDS.index(copy.kind)) for copy in made
    )
    for row in range(len(sentences)):
        own = [copy for copy in made if copy.row == row]
        assert len({copy.text for copy in own}) == len(own)
        assert all(sum(copy.kind == kind for copy in own) <= MAX_VARIANTS for kind in KINDS)
