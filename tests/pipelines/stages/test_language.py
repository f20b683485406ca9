"""What is said of the languages of corpora."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.options import CorpusOptions, MiningOptions
from pipelines.stages.language import describe_language, language_warnings, see_language

SWEDISH = ["Den gamla mannen gick långsamt hem genom skogen i regnet."] * 30


def options_for(folder: Path, language: str | None = None) -> MiningOptions:
    """Options with an encoder that covers German well, and Swedish hardly."""
    languages = {
        "de": {"error": 0.01, "measured": "ntrex"},
        "sv": {"error": 0.74, "measured": "tatoeba"},
    }
    text = json.dumps({"languages": languages})
    (folder / "config.json").write_text(text, encoding="utf-8")
    corpus = CorpusOptions(path=folder / "a.txt", language=language)
    return MiningOptions(
        source=corpus,
        target=corpus,
        output=folder / "out.tsv",
        work_dir=folder / "work",
        encoder=str(folder),
    )


@pytest.mark.parametrize(
    ("given", "shares", "said"),
    [
        (None, {"de": 0.9, "nl": 0.1}, []),
        ("deu", {"de": 0.9, "nl": 0.1}, []),
        ("de", {"nl": 0.8, "de": 0.2}, []),
        ("de", {"nl": 0.95, "de": 0.05}, ["95% of a sample is nl"]),
        (None, {"sv": 1.0}, ["search error of about 74%; LASER covers it: adit fetch sv"]),
        (None, {"pl": 1.0}, ["pl is not covered by"]),
        ("tlh", {"uz": 0.3, "hr": 0.2}, ["uz has most, 30%", "tlh is not covered by"]),
        (None, {"uz": 0.3, "hr": 0.2}, ["was not recognised"]),
        ("sv", {}, []),
    ],
)
def test_warnings(
    tmp_path: Path, given: str | None, shares: dict[str, float], said: list[str]
) -> None:
    lines = language_warnings(options_for(tmp_path, given), "source", shares)
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))


def test_only_where_the_encoder_knows_its_languages(tmp_path: Path) -> None:
    options = options_for(tmp_path)
    assert see_language(options, SWEDISH) == {"sv": 1.0}
    assert see_language(options, SWEDISH[:3]) == {}
    (tmp_path / "config.json").unlink()
    assert see_language(options, SWEDISH) == {}


def test_what_the_summary_has(tmp_path: Path) -> None:
    assert describe_language(options_for(tmp_path), "source", {"sv": 0.9, "da": 0.1}) == {
        "given": None,
        "seen": "sv",
        "share": 0.9,
        "quality": "weak",
    }
    assert describe_language(options_for(tmp_path, "de"), "target", {}) == {
        "given": "de",
        "seen": None,
        "share": None,
        "quality": "good",
    }
