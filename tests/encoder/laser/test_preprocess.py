"""What is done to a line before it is split into subwords, whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from encoder import load_encoder
from encoder.laser.preprocess import make_normalizer, make_tokenizer
from tests.encoder.laser.conftest import SENTENCES, make_bilstm, pieces_model


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("de", "Er sagte: „JA“\u200b …", 'er sagte: "ja" ...'),
        ("cs", "3\u00a0000 Kč", "3,000 kč"),
        (None, "A\tB\u0007C", "a b c"),
    ],
)
def test_regular_lines(language: str | None, line: str, expected: str) -> None:
    assert make_normalizer(language)(line).strip() == expected


@pytest.mark.parametrize(
    ("package", "languages", "line", "expected"),
    [
        ("jieba", ("zh", "cmn", "wuu", "yue"), "我来到北京清华大学。", "我 来到 北京 清华大学 。"),
        ("MeCab", ("ja", "jpn"), "すもももももももものうち", "すもも も もも も もも の うち"),
        ("transliterate", ("el",), "Καλημέρα, κόσμε", "kalimera , kosme"),
    ],
)
def test_languages_that_need_a_package(
    package: str,
    languages: tuple[str, ...],
    line: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=package):
        make_tokenizer(languages[0])
    monkeypatch.undo()
    pytest.importorskip(package)
    for language in languages:
        assert " ".join(make_tokenizer(language)(line).split()) == expected


def test_laser1(tmp_path: Path) -> None:
    """Words as Moses splits them, lower case, fastBPE's subwords; a language is told by name."""
    path = make_bilstm(tmp_path / "bilstm.pt", pieces_model())
    path.with_suffix(".spm").unlink()
    path.with_suffix(".fcodes").write_text("t h 9\nth e</w> 8\nd o 7\n", encoding="utf-8")
    path.with_suffix(".fvocab").write_text("the 9\ndo@@ 7\n", encoding="utf-8")
    encoder = load_encoder(f"laser:{path}")
    tokens = load_encoder(f"laser:{path}", pretokenized=True)
    found = encoder.encode(["The dog!", *SENTENCES])
    assert (found[:1] == tokens.encode(["the do@@ g !"])).all()
    assert encoder.for_language("de").name == f"{encoder.name}/de"
