"""Which languages an encoder covers."""

import json
from pathlib import Path

import pytest

from encoder import BUNDLED
from encoder.coverage import Coverage, find_coverage, individual, read_coverage


@pytest.mark.parametrize(
    ("error", "quality"),
    [(0.0, "good"), (0.05, "good"), (0.06, "fair"), (0.15, "fair"), (0.2, "weak")],
)
def test_quality(error: float, quality: str) -> None:
    assert Coverage(error=error, measured="ntrex").quality == quality


def test_a_language_by_any_of_its_names() -> None:
    swedish = Coverage(error=0.01, measured="ntrex")
    malay = Coverage(error=0.02, measured="ntrex")
    languages = {"sv": swedish, "ms": malay}
    assert find_coverage(languages, "sv") == find_coverage(languages, "swe") == swedish
    assert find_coverage(languages, "zsm") == malay
    assert find_coverage(languages, "tlh") is None
    assert individual("no") == individual("nb") == "nob"


def test_what_a_configuration_says(tmp_path: Path) -> None:
    assert read_coverage(str(tmp_path)) == {}
    text = json.dumps({"languages": {"sv": {"error": 0.01, "measured": "ntrex"}}})
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert read_coverage(str(tmp_path)) == {"sv": Coverage(error=0.01, measured="ntrex")}
    assert read_coverage("laser:laser2.pt") == {}


def test_the_bundled_encoder_covers_twelve_languages_well() -> None:
    languages = read_coverage(BUNDLED)
    assert set(languages) == set("cs de en es fr it ja nl pt ru tr zh".split())
    assert sum(coverage.quality == "good" for coverage in languages.values()) >= 11
