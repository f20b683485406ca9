"""Merges in the order of the codes, and back where the vocabulary lacks a token."""

from __future__ import annotations

from pathlib import Path

import pytest

from encoder.laser.subwords import BPE

CODES = "l o 9\nlo w</w> 8\ne r</w> 7\nn e 6\nne w 5\nnew er</w> 4\na a 3\n"


def bpe(folder: Path, vocabulary: str, codes: str = CODES) -> BPE:
    (folder / "x.fcodes").write_text(codes, encoding="utf-8")
    (folder / "x.fvocab").write_text(vocabulary, encoding="utf-8")
    return BPE(folder / "x.fcodes", folder / "x.fvocab")


@pytest.mark.parametrize(
    ("vocabulary", "line", "expected"),
    [
        ("low 5\nnewer 5\n", "low  newer", "low newer"),
        ("lo@@ 5\n", "low", "lo@@ w"),  # low is split into the parts it was merged from
        ("er 5\nne@@ 5\nw@@ 5\n", "newer", "ne@@ w@@ er"),
        ("er 5\n", "newer", "n@@ e@@ w@@ er"),  # characters stay, known or not
        ("aa@@ 5\na 3\n", "aaaa", "aa@@ a@@ a"),  # the last is a</w>, which no code merges
        ("low 5\n", "☃", "☃"),
        ("low 5\n", "", ""),
    ],
)
def test_tokens(tmp_path: Path, vocabulary: str, line: str, expected: str) -> None:
    assert bpe(tmp_path, vocabulary)(line) == expected.split()


def test_the_earliest_code_is_merged_first_wherever_it_stands(tmp_path: Path) -> None:
    split = bpe(tmp_path, "x 1\n", codes="b c 9\na b 8\nc d</w> 7\n")
    assert split("abcd") == ["a@@", "b@@", "c@@", "d"]  # bc, which the vocabulary lacks
    split = bpe(tmp_path, "bc@@ 1\n", codes="b c 9\na b 8\nc d</w> 7\n")
    assert split("abcd") == ["a@@", "bc@@", "d"]


def test_files_of_another_kind_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.fcodes line 1: 2 fields between spaces, not 3; "):
        bpe(tmp_path, "x 1\n", codes="a b\n")
    (tmp_path / "x.fcodes").write_bytes(b"\xff\xfe 1\n")
    with pytest.raises(ValueError, match="is not UTF-8"):
        BPE(tmp_path / "x.fcodes", tmp_path / "x.fvocab")
    with pytest.raises(ValueError, match="file not found"):
        BPE(tmp_path / "nosuch", tmp_path / "x.fvocab")
