"""Measure the F1 of sentence boundaries in lines that are joined.

python benchmarks/splitting.py DIR [LANGUAGE ...]

DIR holds ntrex/xx.txt and tatoeba/tatoeba.xxx-eng.xxx. Fifteen lines of NTREX make a document, in
which a line without a mark at its end (a headline) ends a paragraph; six sentences of Tatoeba make
a paragraph.

A line may hold several sentences, as translators make two of one; boundaries within it then count
as wrong. "F1 single" is that without such lines: those in which a full stop after a word that ends
in four lower-case letters, or a Chinese or Japanese one, is followed by more than a closing mark.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from eval.data.languages import iso_639_3
from miner.storage.documents.records import Document
from miner.storage.documents.sentences import clean_sentence, document_sentences

LANGUAGES = ("de", "fr", "es", "ru", "cs", "it", "pt", "nl", "tr", "zh", "ja", "en")
UNSPACED = ("zh", "ja")
# Looks at neither abbreviations nor initials nor numbers, which are what is hard.
SEVERAL = re.compile(
    r"[^\W\d_A-Z]{4}[.!?…]+[\W_]*?\s[\W_]*(?![\Wa-zà-ÿа-я\d_])"
    r"|[。！？][」』”）]*[^」』”）\sと]"  # noqa: RUF001
)
MARKS = tuple(".!?…。！？؟।\"”“»'’」』):;）")  # noqa: RUF001


def main() -> None:
    folder = Path(sys.argv[1])
    print("language    set          P      R     F1  F1 single  lines left out")
    for language in sys.argv[2:] or LANGUAGES:
        code = iso_639_3(language)
        for name, path, size in (
            ("ntrex", folder / "ntrex" / f"{language}.txt", 15),
            ("tatoeba", folder / "tatoeba" / f"tatoeba.{code}-eng.{code}", 6),
        ):
            if path.is_file():
                lines = [
                    clean_sentence(line) for line in path.read_text(encoding="utf-8").split("\n")
                ]
                lines = [line for line in lines if line]
                single = [line for line in lines if not SEVERAL.search(line)]
                figures = (*measure(lines, language, size), measure(single, language, size)[2])
                shown = "  ".join(f"{figure:.3f}" for figure in figures)
                print(f"{language:12}{name:8} {shown}  {len(lines) - len(single):6}")


def measure(lines: Sequence[str], language: str, size: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the boundaries between joined lines."""
    right = found = gold = 0
    for start in range(0, len(lines), size):
        part = lines[start : start + size]
        text = "".join(pieces(part, "" if language in UNSPACED else " "))
        document = Document(name=language, text=text)
        own = boundaries(sentence.text for sentence in document_sentences(document, language))
        true = boundaries(part)
        right, found, gold = right + len(own & true), found + len(own), gold + len(true)
    precision, recall = right / found, right / gold
    return precision, recall, 2 * precision * recall / (precision + recall)


def pieces(lines: Iterable[str], space: str) -> Iterator[str]:
    for line in lines:
        yield line + (space if line.endswith(MARKS) else "\n\n")


def boundaries(sentences: Iterable[str]) -> set[int]:
    """Return the number of non-space characters before each inner boundary."""
    lengths = (len("".join(sentence.split())) for sentence in sentences)
    ends = list(itertools.accumulate(lengths))
    return set(ends[:-1])


if __name__ == "__main__":
    main()
