"""How much likelier a text's own language is, against py3langid's own scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.judge import languages as module
from miner.judge.languages import own_language
from miner.languages import identifier

TEXTS = {
    "de": "Der Ausschuss hat den Vorschlag am Montag ohne Änderungen angenommen.",
    "en": "The committee adopted the proposal without amendments on Monday.",
    "es": "La comisión aprobó el lunes la propuesta sin modificaciones.",
    "fi": "Valiokunta hyväksyi ehdotuksen maanantaina muutoksitta.",
    "ja": "委員会は月曜日に提案を修正なしで採択した。",
    "ko": "위원회는 월요일에 제안을 수정 없이 채택했다.",
    "th": "คณะกรรมการรับข้อเสนอโดยไม่มีการแก้ไขเมื่อวันจันทร์",
}


def oracle(text: str, own: set[str]) -> float:
    """By py3langid itself, in float32."""
    known = identifier()
    data = known._encode(text)
    scores = dict(zip(known.nb_classes, known._raw_score(data).tolist(), strict=True))
    best = max(score for name, score in scores.items() if name in own)
    rest = max(score for name, score in scores.items() if name not in own)
    return (best - rest) / math.sqrt(len(data))


@pytest.mark.parametrize("language", TEXTS)
def test_it_is_what_py3langid_says_but_for_rounding(language: str) -> None:
    own = next((close for close in module._CLOSE if language in close), {language})
    found = own_language([*TEXTS.values()], language)
    expected = [oracle(text, own) for text in TEXTS.values()]
    np.testing.assert_allclose(found, expected, atol=0.25)
    assert [number > 0 for number in found] == [name == language for name in TEXTS]


@given(st.lists(st.text(max_size=40), max_size=6))
def test_a_text_has_the_same_bits_beside_any_others(texts: list[str]) -> None:
    alone = [own_language([text], "en")[0] for text in texts]
    assert own_language(texts, "en").tobytes() == np.array(alone, np.float32).tobytes()


def test_varieties_of_a_language_are_that_language() -> None:
    croatian = ["Sabor je danas usvojio prijedlog zakona o zdravstvu i socijalnoj skrbi."]
    norwegian = ["Stortinget vedtok i dag et forslag til ny lov om helsetjenester."]
    assert own_language(croatian, "hr") == own_language(croatian, "sr") > 0
    assert own_language(norwegian, "nb") == own_language(norwegian, "no") > 0


@pytest.mark.parametrize("language", [None, "xx", "tlh"])
def test_a_language_without_a_model_is_not_judged(language: str | None) -> None:
    assert np.isnan(own_language(["anything", ""], language)).all()


def test_texts_that_say_nothing() -> None:
    assert own_language(["", " "], "en").shape == (2,)
    assert own_language([], "en").shape == (0,)
    assert own_language(["a" * 5000], "en").dtype == np.float32
    assert own_language(["\ud800 broken"], "en").shape == (1,)
    assert own_language([TEXTS["en"].upper()], "en") > 0
