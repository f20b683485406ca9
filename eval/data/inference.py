"""Natural language inference: XNLI's files, and pairs to train on.

XNLI's languages are read from ``dev.xx.tsv`` and ``test.xx.tsv`` (label, premise, hypothesis) or,
as published, from ``xnli.dev.tsv`` and ``xnli.test.tsv``, which hold all languages and have a
header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.data.labelled import Examples
from eval.data.textfiles import read_lines

LABELS = ("entailment", "neutral", "contradiction")
_SPELT = {"contradictory": "contradiction"}  # MultiNLI as XNLI distributes it
# Names of the columns, in the files of XNLI, of SNLI and MultiNLI, and of MultiNLI for XNLI.
_COLUMNS = (("gold_label", "sentence1", "sentence2"), ("label", "premise", "hypo"))


def read_inference(path: Path) -> Examples:
    """Read pairs: ``LABEL TAB premise TAB hypothesis``, or columns that a header names.

    Pairs without a label that their judges agreed on (``-``) are left out.

    Raises:
        ValueError: a line has too few columns or another label, or there is no pair.
    """
    columns, first, rows = _table(path)
    return _examples(path, columns, list(enumerate(rows, start=first)))


def load_xnli(directory: Path) -> tuple[str, dict[str, Examples]]:
    """Load the test part of each language or, where there is none, the development part.

    Returns:
        The part, ``test`` or ``dev``, and its pairs by language; row i of one language is row i of
        all others.

    Raises:
        ValueError: there is none, or languages have different numbers of pairs or other labels.
    """
    for part in ("test", "dev"):
        found = _part(directory, part)
        if found:
            _check(directory, found)
            return part, found
    raise ValueError(
        f"{directory}: no XNLI; expected dev.xx.tsv or test.xx.tsv for each language, or "
        "xnli.test.tsv"
    )


def load_development(directory: Path, language: str) -> Examples | None:
    """Load the development part of a language, if it is there."""
    return _part(directory, "dev").get(language)


def _part(directory: Path, part: str) -> dict[str, Examples]:
    for name in (f"xnli.{part}.tsv", f"xnli.{part}.tsv.xz"):
        if (directory / name).is_file():
            return _all_languages(directory / name)
    layout = re.compile(rf"{part}\.([\w-]+)\.tsv(?:\.xz)?")
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    matches = ((path, layout.fullmatch(path.name)) for path in sorted(directory.iterdir()))
    return {match[1]: read_inference(path) for path, match in matches if match}


def _all_languages(path: Path) -> dict[str, Examples]:
    header, *rows = [line.split("\t") for line in read_lines(path)]
    try:
        language = header.index("language")
        label, first, second = (header.index(name) for name in _COLUMNS[0])
    except ValueError as error:
        raise ValueError(f"{path}: the header lacks a column ({error})") from error
    by_language: dict[str, list[tuple[int, Sequence[str]]]] = {}
    for number, row in enumerate(rows, start=2):
        if len(row) < len(header):
            raise ValueError(f"{path} line {number}: {len(row)} columns; expected {len(header)}")
        by_language.setdefault(row[language], []).append((number, row))
    columns = label, first, second
    return {name: _examples(path, columns, each) for name, each in by_language.items()}


def _table(path: Path) -> tuple[tuple[int, int, int], int, list[list[str]]]:
    """Return the columns of label, premise and hypothesis, the first line, and the rows."""
    rows = [line.split("\t") for line in read_lines(path)]
    for names in _COLUMNS:
        if rows and set(names) <= set(rows[0]):
            label, first, second = (rows[0].index(name) for name in names)
            return (label, first, second), 2, rows[1:]
    return (0, 1, 2), 1, rows


def _examples(
    path: Path, columns: tuple[int, int, int], rows: Sequence[tuple[int, Sequence[str]]]
) -> Examples:
    kept = []
    for number, row in rows:
        if len(row) <= max(columns):
            raise ValueError(
                f"{path} line {number}: {len(row)} columns; expected a label and two sentences"
            )
        label, first, second = (row[column] for column in columns)
        label = _SPELT.get(label, label)
        if label == "-":
            continue
        if label not in LABELS:
            raise ValueError(
                f"{path} line {number}: label {label[:40]!r}; expected {', '.join(LABELS)}"
            )
        kept.append((label, first, second))
    if not kept:
        raise ValueError(f"{path}: no pairs")
    labels, first_side, second_side = zip(*kept, strict=True)
    return Examples(labels=labels, sides=(first_side, second_side), files=[path])


def _check(directory: Path, found: Mapping[str, Examples]) -> None:
    first = next(iter(found))
    for language, one in found.items():
        if list(one.labels) != list(found[first].labels):
            raise ValueError(
                f"{directory}: pairs of {language} and {first} differ in number or labels; row i "
                "of one language must be row i of all others"
            )
