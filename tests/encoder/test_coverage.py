"""Which languages an encoder covers."""

import json
from pathlib import Path

import pytest

from encoder import BUNDLED, load_encoder
from encoder.coverage import Coverage, find_coverage, language_key, read_coverage

WIDE = str(Path(__file__).parents[2] / "encoders" / "wide")


@pytest.mark.parametrize(
    ("error", "quality"),
    [(0.0, "good"), (0.05, "good"), (0.06, "fair"), (0.15, "fair"), (0.2, "weak")],
)
def test_quality(error: float, quality: str) -> None:
    assert Coverage(error=error, measured="ntrex").quality == quality


def test_held_out_pairs_are_easy() -> None:
    assert Coverage(error=0.01, measured="held-out").quality == "fair"
    assert Coverage(error=0.2, measured="held-out").quality == "weak"


def test_a_language_by_any_of_its_names() -> None:
    swedish = Coverage(error=0.01, measured="ntrex")
    malay = Coverage(error=0.02, measured="ntrex")
    languages = {"sv": swedish, "ms": malay}
    assert find_coverage(languages, "sv") == find_coverage(languages, "swe") == swedish
    assert find_coverage(languages, "zsm") == malay
    assert find_coverage(languages, "tlh") is None
    assert language_key("no") == language_key("nb") == "nob"


def test_what_a_configuration_says(tmp_path: Path) -> None:
    assert read_coverage(str(tmp_path)) == {}
    text = json.dumps({"languages": {"sv": {"error": 0.01, "measured": "ntrex"}}})
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert read_coverage(str(tmp_path)) == {"sv": Coverage(error=0.01, measured="ntrex")}
    assert read_coverage("laser:laser2.pt") == {}


@pytest.mark.parametrize("text", ["{", "[1]", '{"languages": []}', '{"languages": {"sv": {}}}'])
def test_a_damaged_configuration_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.json is damaged; copy it again"):
        read_coverage(str(tmp_path))


def test_the_bundled_encoder_covers_twelve_languages_well() -> None:
    languages = read_coverage(BUNDLED)
    twelve = {languages[name].quality for name in "cs de en es fr it nl pt ru tr zh".split()}
    assert twelve == {"good"} and languages["ja"].quality == "fair"


@pytest.mark.parametrize("spec", [WIDE, BUNDLED])
def test_encoders_find_translations_in_many_alphabets(spec: str) -> None:
    english = "The President of Georgia met the Prime Minister of Sweden in London on Monday."
    other = "The children are playing football in the garden behind our house."
    languages = read_coverage(spec)
    assert len(languages) >= 90
    assert sum(coverage.quality != "weak" for coverage in languages.values()) >= 65
    texts = {
        "sv": "Georgiens president träffade Sveriges statsminister i London i måndags.",
        "pl": "Prezydent Gruzji spotkał się w poniedziałek w Londynie z premierem Szwecji.",
        "ar": "التقى رئيس جورجيا رئيس وزراء السويد في لندن يوم الاثنين.",
        "hi": "जॉर्जिया के राष्ट्रपति ने सोमवार को लंदन में स्वीडन के प्रधानमंत्री से मुलाकात की।",
    }
    assert texts.keys() <= languages.keys()
    encoder = load_encoder(spec)
    translations = encoder.for_language("en").encode([english, other]).T
    for language, text in texts.items():
        right, wrong = encoder.for_language(language).encode(text) @ translations
        assert right > wrong + 0.1


@pytest.mark.parametrize(
    ("language", "name", "english"),
    [("ka", "თბილისი", "Tbilisi"), ("hy", "Բեռլին", "Berlin")],
)
@pytest.mark.parametrize("spec", [WIDE, BUNDLED])
def test_names_are_read_in_every_alphabet(
    spec: str, language: str, name: str, english: str
) -> None:
    """As they are only if rows of n-grams are read as they were trained, by the format's number."""
    encoder = load_encoder(spec)
    vectors = encoder.for_language(language).encode(name), encoder.encode(english)
    assert vectors[0] @ vectors[1] > 0.5
