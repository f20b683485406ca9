"""Natural language inference: XNLI's files, and pairs to train on.

XNLI's languages are read from ``dev.xx.tsv`` and ``test.xx.tsv`` (label, premise, hypothesis) or,
as published, from ``xnli.dev.tsv`` and ``xnli.test.tsv``, which hold all languages and have a
header.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from encoder.training.reading_tasks import labelled, read_inference
from eval.data.labelled import Examples
from eval.data.textfiles import read_lines


def read_pairs(path: Path) -> Examples:
    """Read labelled pairs, see ``encoder.training.reading_tasks.read_inference``.

    Raises:
        ValueError: a line has too few columns or another label, or there is no pair.
    """
    return _examples(path, read_inference(path))


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
    return {match[1]: read_pairs(path) for path, match in matches if match}


def _all_languages(path: Path) -> dict[str, Examples]:
    header, *rows = [line.split("\t") for line in read_lines(path)]
    try:
        language = header.index("language")
        columns = [header.index(name) for name in ("gold_label", "sentence1", "sentence2")]
    except ValueError as error:
        raise ValueError(f"{path}: the header lacks a column ({error})") from error
    by_language: dict[str, list[tuple[int, Sequence[str]]]] = {}
    for number, row in enumerate(rows, start=2):
        if len(row) < len(header):
            raise ValueError(f"{path} line {number}: {len(row)} columns; expected {len(header)}")
        by_language.setdefault(row[language], []).append((number, row))
    return {
        name: _examples(path, labelled(path, columns, each)) for name, each in by_language.items()
    }


def _examples(path: Path, rows: Sequence[tuple[str, str, str]]) -> Examples:
    if not rows:
        raise ValueError(f"{path}: no pairs")
    labels, *sides = zip(*rows, strict=True)
    return Examples(labels=labels, sides=(sides[0], sides[1]), files=[path])


def _check(directory: Path, found: Mapping[str, Examples]) -> None:
    first = next(iter(found))
    for language, one in found.items():
        if list(one.labels) != list(found[first].labels):
            raise ValueError(
                f"{directory}: pairs of {language} and {first} differ in number or labels; row i "
                "of one language must be row i of all others"
            )
