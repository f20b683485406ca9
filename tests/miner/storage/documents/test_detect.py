"""Which texts are documents, and which have a sentence a line."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from miner.storage.documents.split import holds_documents, looks_like_a_document

SENTENCES = [
    "The rain came down in the night and the river rose.",
    "Nobody had expected that, and so the bridge was still open in the morning!",
    "When did the first cars turn back?",
    "It must have been around seven, or so the keeper of the inn told everyone who asked him.",
    "The water stayed for nine days.",
] * 4
CAPTIONS = ["a man in a red coat rides a horse", "two dogs play with a ball on the grass"] * 9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (textwrap.fill(" ".join(SENTENCES), 72), True),
        (textwrap.fill("雨が降って川の水が増えた。" * 30, 36), True),
        ("\n\n".join(" ".join(SENTENCES[start : start + 4]) for start in range(5)), True),
        ("<!DOCTYPE html>\n<html><p>One.</p>", True),
        ("\n".join(SENTENCES), False),
        ("\n\n".join(SENTENCES), False),
        ("\n".join(CAPTIONS), False),
        ("\n".join(caption * (place % 3 + 1) for place, caption in enumerate(CAPTIONS)), False),
        ("雨が降った。\n川の水がたいへん増えた。\n" * 9, False),
        ("", False),
    ],
)
def test_looks(tmp_path: Path, text: str, expected: bool) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8")
    assert looks_like_a_document(path) is expected


def test_folders(tmp_path: Path) -> None:
    def folder(name: str, **files: str) -> Path:
        (tmp_path / name).mkdir()
        for file, text in files.items():
            path = tmp_path / name / file.replace("_", ".")
            path.write_text(text, encoding="utf-8")
        return tmp_path / name

    wrapped, lines = textwrap.fill(" ".join(SENTENCES), 72), "\n".join(SENTENCES)
    assert holds_documents(folder("pages", a_html="<p>One.", b_md="One.", README_md=lines))
    assert holds_documents(folder("texts", a_txt=wrapped, b_txt=wrapped, c_txt=lines))
    assert not holds_documents(folder("lines", a_txt=lines, b_txt=lines, c_txt=wrapped))
    assert not holds_documents(folder("records", a_html="<p>One.", b_jsonl="{}"))
    assert not holds_documents(folder("empty"))
