"""The language of a corpus, by a sample of its sentences."""

from array import array

import pytest

from miner.languages import SAMPLED, _loaded, identifier, language_shares, main_language

SWEDISH = "Den gamla mannen gick långsamt hem genom skogen i regnet."
GERMAN = "Der alte Mann ging langsam durch den Wald nach Hause."


def test_shares_of_an_even_sample() -> None:
    shares = language_shares([SWEDISH] * 3000 + [GERMAN] * 1000)
    assert list(shares) == ["sv", "de"]
    assert abs(shares["sv"] - 0.75) <= 1 / SAMPLED
    assert main_language(shares) == "sv"


def test_no_language_has_most() -> None:
    assert main_language({"sv": 0.4, "de": 0.3, "en": 0.3}) is None
    assert main_language({}) is None


def test_the_model_is_unpacked_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADIT_CACHE", str(tmp_path / "cache"))
    first = _loaded.__wrapped__()
    monkeypatch.setattr("py3langid.modelio.load_model", None)
    again = _loaded.__wrapped__()
    monkeypatch.undo()
    for text in (SWEDISH, GERMAN, "", "\u4f60\u597d"):
        assert first.rank(text) == again.rank(text) == identifier().rank(text)
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_the_model_cannot_be_kept(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ADIT_CACHE", str(tmp_path / "file"))
    found = _loaded.__wrapped__()
    assert isinstance(found.tk_nextmove, array)
    assert found.rank(GERMAN) == identifier().rank(GERMAN)
