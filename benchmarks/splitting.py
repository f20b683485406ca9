"""Measure sentence splitting: F1 of boundaries in lines that are joined and split again.

python benchmarks/splitting.py DIR [LANGUAGE ...]

DIR holds ntrex/xx.txt and tatoeba/tatoeba.xxx-eng.xxx. Fifteen lines of NTREX make a document, in
which a line without a mark at its end (a headline) ends a paragraph; six sentences of Tatoeba make
a paragraph.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from eval.data.languages import iso_639_3
from miner.storage.documents.records import Document
from miner.storage.documents.sentences import document_sentences

LANGUAGES = ("de", "fr", "es", "ru", "cs", "it", "pt", "nl", "tr", "zh", "ja", "en")
UNSPACED = ("zh", "ja")
MARKS = tuple(".!?…。！？؟।\"”“»'’」』):;）")  # noqa: RUF001


def main() -> None:
    folder = Path(sys.argv[1])
    print("language    set        P      R     F1")
    for language in sys.argv[2:] or LANGUAGES:
        code = iso_639_3(language)
        for name, path, size in (
            ("ntrex", folder / "ntrex" / f"{language}.txt", 15),
            ("tatoeba", folder / "tatoeba" / f"tatoeba.{code}-eng.{code}", 6),
        ):
            if path.is_file():
                precision, recall = measure(path, language, size)
                f1 = 2 * precision * recall / (precision + recall)
                print(f"{language:12}{name:8} {precision:.3f}  {recall:.3f}  {f1:.3f}")


def measure(path: Path, language: str, size: int) -> tuple[float, float]:
    text = path.read_text(encoding="utf-8")
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    right = found = gold = 0
    for start in range(0, len(lines), size):
        part = lines[start : start + size]
        text = "".join(pieces(part, "" if language in UNSPACED else " "))
        document = Document(name=path.name, text=text)
        own = boundaries(sentence.text for sentence in document_sentences(document, language))
        true = boundaries(part)
        right, found, gold = right + len(own & true), found + len(own), gold + len(true)
    return right / found, right / gold


def pieces(lines: Iterable[str], space: str) -> Iterator[str]:
    for line in lines:
        yield line + (space if line.endswith(MARKS) else "\n\n")


def boundaries(sentences: Iterable[str]) -> set[int]:
    """Characters before each boundary within the text, spaces not counted."""
    lengths = (len("".join(sentence.split())) for sentence in sentences)
    ends = list(itertools.accumulate(lengths))
    return set(ends[:-1])


if __name__ == "__main__":
    main()
