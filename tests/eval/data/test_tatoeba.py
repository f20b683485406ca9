"""The Tatoeba sets on disk: languages by either code, and what is wrong with them."""

from pathlib import Path

import pytest

from eval.data.languages import iso_639_1, iso_639_3
from eval.tasks.tatoeba import load_tatoeba, tatoeba_languages


@pytest.fixture
def tatoeba_dir(tmp_path: Path) -> Path:
    for code, foreign, english in (
        ("cmn", "一\u2028\n二\n", "one\ntwo\n"),
        ("deu", "\ufeffeins\r\nzwei\r\n", "one\ntwo"),
        ("ber", "yan\n", "one\ntwo\n"),
        ("nds", "", ""),
    ):
        stem = tmp_path / f"tatoeba.{code}-eng"
        stem.with_name(f"{stem.name}.{code}").write_bytes(foreign.encode())
        stem.with_name(f"{stem.name}.eng").write_bytes(english.encode())
    return tmp_path


def test_tatoeba(tatoeba_dir: Path) -> None:
    assert list(tatoeba_languages(tatoeba_dir)) == ["ber", "cmn", "deu", "nds"]
    assert load_tatoeba(tatoeba_dir, "deu") == (["eins", "zwei"], ["one", "two"])
    assert load_tatoeba(tatoeba_dir, "de") == load_tatoeba(tatoeba_dir, "deu")
    assert load_tatoeba(tatoeba_dir, "zh") == (["一\u2028", "二"], ["one", "two"])


@pytest.mark.parametrize(("short", "long"), [("pl", "pol"), ("zh", "cmn"), ("no", "nob")])
def test_codes_of_two_letters(tmp_path: Path, short: str, long: str) -> None:
    for suffix in (long, "eng"):
        (tmp_path / f"tatoeba.{long}-eng.{suffix}").write_text("1\n")
    assert load_tatoeba(tmp_path, short) == load_tatoeba(tmp_path, long) == (["1"], ["1"])


def test_codes_of_a_language() -> None:
    assert [iso_639_3(code) for code in ("pl", "pol", "nb", "cbk")] == ["pol", "pol", "nob", "cbk"]
    assert iso_639_3("notalanguage") == "notalanguage"
    assert [iso_639_1(code) for code in ("pl", "pol", "nob", "cbk")] == ["pl", "pl", "nb", "cbk"]


def test_missing_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no Tatoeba data; expected tatoeba"):
        tatoeba_languages(tmp_path)
    with pytest.raises(ValueError, match="nowhere: folder not found"):
        load_tatoeba(tmp_path / "nowhere", "de")


@pytest.mark.parametrize(
    ("language", "message"),
    [
        (
            "ber",
            r"tatoeba.ber-eng.eng: the number of lines is 2, but 1 in .*ber-eng.ber; pass",
        ),
        ("nds", "tatoeba.nds-eng.nds: empty"),
        ("fr", "no language 'fra'; choose one of ber, cmn, deu, nds"),
    ],
)
def test_bad_tatoeba(tatoeba_dir: Path, language: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_tatoeba(tatoeba_dir, language)
