"""Codes of languages in every spelling, and what is refused with the code to use."""

import pytest

from encoder.coverage import language_key
from encoder.laser.languages import LASER2, LASER3, files_of
from eval.data.languages import name_of
from miner.language_codes import base_language, macrolanguage, parse_language


@pytest.mark.parametrize(
    ("text", "tag", "base"),
    [
        ("uk", "uk", "uk"),
        ("UK", "uk", "uk"),
        ("uk_UA", "uk-UA", "uk"),
        ("uk-Cyrl", "uk", "uk"),
        ("UKR-ua", "uk-UA", "uk"),
        ("ger", "de", "de"),
        ("deu_Latn", "de", "de"),
        ("fre_ca", "fr-CA", "fr"),
        ("iw", "he", "he"),
        ("in_ID", "id-ID", "id"),
        ("ji", "yi", "yi"),
        ("mo", "ro", "ro"),
        ("no", "no", "no"),
        ("sh", "sr-Latn", "sr"),
        ("SR_latn_rs", "sr-Latn-RS", "sr"),
        ("zh_hant", "zh-Hant", "zh"),
        ("zh-cmn-Hans", "zh-Hans", "zh"),
        ("pt-br", "pt-BR", "pt"),
        ("es-419", "es-419", "es"),
        ("tl_PH", "tl-PH", "tl"),
        ("tgl", "tl", "tl"),
        ("prs_Arab", "prs-Arab", "prs"),
        ("yue", "yue", "yue"),
        ("x-mine", "x-mine", "x-mine"),
        ("qaa", "qaa", "qaa"),
    ],
)
def test_a_code_in_any_spelling(text: str, tag: str, base: str) -> None:
    assert parse_language(text) == parse_language(tag) == tag
    assert base_language(text) == base


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Ukrainian", "use uk$"),
        ("  norwegian   Bokmål", "use nb$"),
        ("Greek", "use el$"),
        ("Swahili", "use sw$"),
        ("de_DE.UTF-8", "use de-DE$"),
        ("ua", "use uk$"),
        ("JP", "use ja$"),
        ("xx", "is not a known language code; use one of ISO 639 or BCP 47"),
        ("deu-eng", "is not a known language code"),
        ("en-old", "is not a known language code"),
        ("und", "is not a known language code"),
        ("de en", "is not a known language code"),
        ("", "is not a known language code"),
    ],
)
def test_what_is_no_code(text: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=f"^'{text}' .*{remedy}"):
        parse_language(text)


@pytest.mark.parametrize("code", ["uk-UA", "UKR", "uk_cyrl_ua"])
def test_encoders_know_a_language_by_all_its_codes(code: str) -> None:
    assert language_key(code) == language_key("uk") == "ukr"


def test_one_name_for_a_language_of_several_codes() -> None:
    same = [("no", "nb"), ("fil", "tl"), ("ger", "de"), ("cmn", "zh"), ("arb", "ar"), ("zsm", "ms")]
    assert [language_key(one) for one, _ in same] == [language_key(other) for _, other in same]
    assert language_key("nn") != language_key("nb")
    assert macrolanguage("fil") == "tl"
    assert macrolanguage("not a code") == "not a code"


def test_every_encoder_of_laser_is_found_by_parsed_codes() -> None:
    for name in LASER3:
        assert files_of(parse_language(name.replace("_", "-").upper()))[0] == f"laser3-{name}.v1.pt"
    for name in LASER2:
        assert files_of(parse_language(name)) == ["laser2.pt", "laser2.spm"]


@pytest.mark.parametrize(
    ("code", "name"),
    [("deu", "de"), ("pt", "pt"), ("pt_BR", "pt-BR"), ("zho", "zh-Hant"), ("sr-Latn", "sr-Latn")],
)
def test_names_that_files_have(code: str, name: str) -> None:
    assert name_of(code, ["de", "pt", "pt-BR", "zh-Hant", "sr"]) == name
