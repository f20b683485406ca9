"""Words: bilingual dictionaries and lists of pairs that people have scored, as published."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.data.textfiles import read_lines

DOUBTFUL = frozenset({"pn", "nw"})  # names, and what is no word (Kementchedjhieva et al. 2019)
_SCORES = ("SimLex999", "Average Score", "Human (mean)")  # how the originals name the column
_LANGUAGES = re.compile(r"([a-z]{2,3})(?:-([a-z]{2,3}))?\.")


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """Translations of words: ``pairs[i]`` is of the category ``kinds[i]``, which may be empty."""

    path: Path
    languages: tuple[str, str]
    pairs: Sequence[tuple[str, str]]
    kinds: Sequence[str]

    def translations(self, *, doubtful: bool = True) -> dict[str, set[str]]:
        """Return all translations of each source word; without those of doubtful categories."""
        found: dict[str, set[str]] = {}
        for (source, target), kind in zip(self.pairs, self.kinds, strict=True):
            if doubtful or kind not in DOUBTFUL:
                found.setdefault(source, set()).add(target)
        return found


@dataclass(frozen=True, kw_only=True)
class ScoredWords:
    """Pairs of words with scores float64 (N,), and their languages."""

    path: Path
    languages: tuple[str, str]
    first: Sequence[str]
    second: Sequence[str]
    scores: NDArray[np.float64]


def read_words(path: Path, languages: tuple[str, str] | None = None) -> Dictionary | ScoredWords:
    """Read scored pairs if the third column, or that which the header names, is a number.

    Else read a dictionary ``xx-yy.*``: a word and its translation between tabs or white space, and
    in some a category.

    Raises:
        ValueError: a line is neither, or a name does not begin with its languages, and no
            ``languages`` are given for scored pairs.
    """
    lines = read_lines(path)
    comma = bool(lines) and "\t" not in lines[0] and lines[0].count(",") > 1
    rows = [
        line.split(",") if comma else line.split("\t") if "\t" in line else line.split()
        for line in lines
    ]
    if not rows:
        raise ValueError(f"{path}: empty; expected two words a line")
    if len(rows[0]) < 2:
        raise ValueError(f"{path} line 1: expected two words a line")
    column = next((rows[0].index(name) for name in _SCORES if name in rows[0]), None)
    if column is not None:
        return _scored(path, rows[1:], column, first=2, languages=languages)
    if len(rows[0]) > 2 and _is_number(rows[0][2]):
        return _scored(path, rows, 2, first=1, languages=languages)
    return _dictionary(path, rows)


def _dictionary(path: Path, rows: Sequence[Sequence[str]]) -> Dictionary:
    match = _LANGUAGES.match(path.name)
    if not match or match[2] is None:
        raise ValueError(f"{path}: the name of a dictionary must begin with its languages, xx-yy.")
    for number, row in enumerate(rows, start=1):
        if len(row) < 2:
            raise ValueError(f"{path} line {number}: expected a word and its translation")
    return Dictionary(
        path=path,
        languages=(match[1], match[2]),
        pairs=[(row[0], row[1]) for row in rows],
        kinds=[row[2] if len(row) > 2 else "" for row in rows],
    )


def _scored(
    path: Path,
    rows: Sequence[Sequence[str]],
    column: int,
    *,
    first: int,
    languages: tuple[str, str] | None,
) -> ScoredWords:
    for number, row in enumerate(rows, start=first):
        if len(row) <= column or not _is_number(row[column]):
            raise ValueError(f"{path} line {number}: expected two words and a score")
    scores = np.array([float(row[column]) for row in rows])
    if len(set(scores.tolist())) < 2:
        raise ValueError(f"{path}: fewer than 2 different scores")
    if match := _LANGUAGES.match(path.name):
        languages = match[1], match[2] or match[1]
    if languages is None:
        raise ValueError(
            f"{path}: its name does not begin with the language of its words; give --lang"
        )
    return ScoredWords(
        path=path,
        languages=languages,
        first=[row[0] for row in rows],
        second=[row[1] for row in rows],
        scores=scores,
    )


def read_vocabulary(path: Path) -> list[str]:
    """Read the first word of each line, as of a list or a ``.vec`` file, whose header is left out.

    Raises:
        ValueError: there is none.
    """
    lines = [line.split(" ", 1) for line in read_lines(path) if line.strip()]
    header = bool(lines) and len(lines[0]) == 2 and all(map(str.isdecimal, lines[0]))
    words = list(dict.fromkeys(line[0] for line in lines[header:]))
    if not words:
        raise ValueError(f"{path}: no words")
    return words


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
