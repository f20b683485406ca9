"""Lines as the Perl scripts of Moses write them, to the last character."""

from __future__ import annotations

from pathlib import Path

import pytest

from encoder.laser.preprocess import PerlTokenizer, normalize_punctuation, remove_non_printing

GOLDEN = Path(__file__).parents[2] / "golden" / "moses"
LANGUAGES = sorted(path.stem for path in GOLDEN.glob("*.raw"))
assert len(LANGUAGES) == 12


def lines(name: str) -> list[str]:
    return (GOLDEN / name).read_bytes().decode("utf-8").split("\n")[:-1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_lines_are_those_of_the_scripts(language: str) -> None:
    normalize, tokenize = normalize_punctuation(language), PerlTokenizer(language)
    norm = [normalize(remove_non_printing(line)) for line in lines(f"{language}.raw")]
    assert norm == lines(f"{language}.norm")
    assert [tokenize(line) for line in norm] == lines(f"{language}.tok")
    descaped = lines(f"{language}.norm.descaped")
    assert [tokenize(line) for line in descaped] == lines(f"{language}.descaped.tok")


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("en", "the dogs' 1990's o'clock isn't", "the dogs ' 1990 's o 'clock isn 't"),
        ("ga", "d'ith m'athair", "d' ith m' athair"),
        ("ca", "il·lusió · l'home", "il·lusió · l' home"),
        ("so", "go'aan 'aad", "go'aan ' aad"),
        ("sv", "USA:s (S:t) kl: 5", "USA:s ( S:t ) kl : 5"),
        ("de", "usw. Nr. 5 am 3. Mai, 5,3 und 7, ...", "usw. Nr. 5 am 3. Mai , 5,3 und 7 , ..."),
        ("en", "Mr. Smith came at 5 p.m.", "Mr. Smith came at 5 p.m ."),
    ],
)
def test_rules_for_some_languages(language: str, line: str, expected: str) -> None:
    assert PerlTokenizer(language)(line) == expected
