"""Text of one language for training tasks beside the objective: ordered text, labelled pairs.

Ordered text is ``.txt``, a sentence or turn a line, an empty line between documents or dialogues.
Labelled pairs are ``.tsv``: ``LABEL TAB premise TAB hypothesis``, or columns ``gold_label``,
``sentence1`` and ``sentence2`` that a header names. Both may be compressed (``.xz``).
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from encoder.training.options import INFERENCE_LABELS
from encoder.training.reading import ParallelText

_HEADER = ("gold_label", "sentence1", "sentence2")


def read_successors(name: str, folder: Path) -> ParallelText:
    """Read each line of a document with the one after it; each second line once.

    Raises:
        ValueError: there is no ordered text in ``folder``, or a file is damaged.
    """
    pairs: dict[str, str] = {}  # templates answer much, so that an answer stands once
    for path in _files(folder, ".txt"):
        lines = _lines(path)
        for before, after in pairwise(lines):
            if before.strip() and after.strip() and before != after:
                pairs.setdefault(after, before)
    if not pairs:
        raise ValueError(f"{folder}: no two lines follow one another")
    sides = list(pairs.values()), list(pairs)
    return ParallelText(name=name, source=sides[0], target=sides[1], corpus=[name] * len(pairs))


def read_sentences(name: str, folder: Path) -> ParallelText:
    """Read each line as a pair with itself, repeated ones once.

    Raises:
        ValueError: there is no text in ``folder``, or a file is damaged.
    """
    found = dict.fromkeys(
        line for path in _files(folder, ".txt") for line in _lines(path) if line.strip()
    )
    if not found:
        raise ValueError(f"{folder}: there are no sentences")
    return ParallelText(name=name, source=[*found], target=[*found], corpus=[name] * len(found))


def read_labelled(name: str, folder: Path) -> ParallelText:
    """Read labelled pairs; the label of each stands where parallel text has its corpus.

    Raises:
        ValueError: there are none in ``folder``, or a line is malformed.
    """
    rows: list[tuple[str, str, str]] = []
    for path in _files(folder, ".tsv"):
        lines = [line.split("\t") for line in _lines(path)]
        header = bool(lines) and set(_HEADER) <= set(lines[0])
        columns = [lines[0].index(column) for column in _HEADER] if header else [0, 1, 2]
        for number, line in enumerate(lines[header:], start=1 + header):
            rows.append(_row(path, number, line, columns))
    labels, first, second = (
        (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 3
    )
    if set(labels) != set(INFERENCE_LABELS):
        raise ValueError(
            f"{folder}: pairs have the labels {sorted(set(labels))}; all three are needed"
        )
    return ParallelText(name=name, source=first, target=second, corpus=labels)


def _row(
    path: Path, number: int, line: Sequence[str], columns: Sequence[int]
) -> tuple[str, str, str]:
    if len(line) <= max(columns):
        raise ValueError(
            f"{path}:{number}: {len(line)} columns; expected a label and two sentences"
        )
    label, first, second = (line[column] for column in columns)
    if label not in INFERENCE_LABELS:
        expected = ", ".join(INFERENCE_LABELS)
        raise ValueError(f"{path}:{number}: label {label[:40]!r}; expected {expected}")
    return label, first, second


def _files(folder: Path, suffix: str) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    found = [
        path for path in sorted(folder.iterdir()) if path.name.endswith((suffix, f"{suffix}.xz"))
    ]
    if not found:
        raise ValueError(f"{folder}: no {suffix} or {suffix}.xz file")
    return found


def _lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        return [line.removesuffix("\r") for line in content.decode().removesuffix("\n").split("\n")]
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not UTF-8 text, or cut short ({error})") from error
