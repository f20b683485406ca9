"""The language of a corpus, by a sample of its sentences."""

from miner.languages import SAMPLED, language_shares, main_language

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
