"""Names that have no similar word on the other side."""

import numpy as np
import pytest

from encoder import load_encoder
from encoder.words import word_encoders
from miner.judge.names import names_in, unmatched_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday Merkel met «Macron» in Ústí.", ["Merkel", "Macron", "Ústí"]),
        ("Он видел Меркель", ["Меркель"]),
        ("A Headline With Capitals", []),
        ("They met in a US city", []),
        ("", []),
    ],
)
def test_names_have_a_capital_letter_inside_a_text(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def unmatched(language: str, source: str, target: str) -> np.ndarray:
    makers = word_encoders(load_encoder(), (language, "en"))
    texts = [source], [target]
    words = [maker.words(each) for maker, each in zip(makers, texts, strict=True)]
    return unmatched_names(texts, words, makers)[0]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("de", "Gestern sprach Obama in Berlin."),
        ("ru", "Вчера Обама выступил в Берлине."),
        ("fi", "Eilen Obama puhui hallituksen kanssa Berliinissä."),
    ],
)
def test_another_name_has_no_match(language: str, source: str) -> None:
    same = unmatched(language, source, "Yesterday he heard Obama speak in Berlin.")
    other = unmatched(language, source, "Yesterday he heard Thatcher speak in Berlin.")
    assert (other > same + 0.1).all()


def test_scripts_without_capital_letters_have_no_names() -> None:
    found = unmatched("ja", "昨日オバマはベルリンで話した。", "Then he and Thatcher spoke.")
    assert np.isnan(found[0])
    assert found[1] > 0.4
    assert unmatched("de", "ohne", "Without a name").tolist() == [0, 0]
