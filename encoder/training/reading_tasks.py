"""Text of one language for training tasks beside the objective: ordered text, labelled pairs.

Ordered text is ``.txt``, a sentence or turn a line, an empty line between documents or dialogues.
Labelled pairs are ``.tsv``: ``LABEL TAB premise TAB hypothesis``, or columns ``gold_label``,
``sentence1`` and ``sentence2`` that a header names. Both may be compressed (``.xz``).
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from encoder.training import reading
from encoder.training.options import INFERENCE_LABELS, ObjectiveOptions
from encoder.training.reading import ParallelText, read_lines

_OF_LANGUAGE = re.compile(r"(?:.*\.)?([a-z]{2,3})\.txt(?:\.xz)?")
# In the files of SNLI and MultiNLI, and of MultiNLI for XNLI, which spells one label otherwise.
_HEADERS = (("gold_label", "sentence1", "sentence2"), ("label", "premise", "hypo"))
_SPELT = {"contradictory": "contradiction"}


def read_successors(name: str, files: Sequence[Path]) -> ParallelText:
    """Read each line of a document with the one after it; each second line once.

    Raises:
        ValueError: there is no ordered text, or a file is damaged.
    """
    pairs: dict[str, str] = {}  # templates answer much, so that an answer stands once
    for path in files:
        lines = read_lines(path)
        for before, after in pairwise(lines):
            if before.strip() and after.strip() and before != after:
                pairs.setdefault(after, before)
    if not pairs:
        raise ValueError(f"{files[0].parent}: no two lines follow one another")
    sides = list(pairs.values()), list(pairs)
    return ParallelText(name=name, source=sides[0], target=sides[1], corpus=[name] * len(pairs))


def find_text(folder: Path, objective: type[ObjectiveOptions]) -> dict[str, tuple[Path, ...]]:
    """Find what an objective learns from, by language pair.

    Where there is no parallel text and it can do without, by language (``NAME.XX.txt``).

    Raises:
        ValueError: there is none.
    """
    if objective.labelled:
        return {objective.name: files_of(folder, ".tsv")}
    paths = sorted(folder.glob("*"))
    named = {path: match[1] for path in paths if (match := _OF_LANGUAGE.fullmatch(path.name))}
    parallel = any(path.name.endswith((reading.TSV, reading.PARQUET)) for path in paths)
    if parallel or not (named and objective.alone):
        return reading.find_parallel_text(folder)
    return {
        language: tuple(path for path, name in named.items() if name == language)
        for language in sorted(set(named.values()))
    }


def read_text(name: str, files: Sequence[Path], exclude: frozenset[str]) -> ParallelText:
    """Read what ``find_text`` found under a name.

    Raises:
        ValueError: a file is damaged or malformed, or nothing is left.
    """
    if reading.PAIR.fullmatch(name):
        return reading.read_parallel_text(files, exclude=exclude)
    is_text = _OF_LANGUAGE.fullmatch(files[0].name)
    return (read_sentences if is_text else read_labelled)(name, files)


def read_sentences(name: str, files: Sequence[Path]) -> ParallelText:
    """Read each line as a pair with itself, repeated ones once.

    Raises:
        ValueError: there is no text, or a file is damaged.
    """
    found = dict.fromkeys(line for path in files for line in read_lines(path) if line.strip())
    if not found:
        raise ValueError(f"{files[0].parent}: there are no sentences")
    return ParallelText(name=name, source=[*found], target=[*found], corpus=[name] * len(found))


def read_labelled(name: str, files: Sequence[Path]) -> ParallelText:
    """Read labelled pairs; the label of each stands where parallel text has its corpus.

    Raises:
        ValueError: a label is missing, or a line is malformed.
    """
    rows = [row for path in files for row in read_inference(path)]
    labels, first, second = ([row[column] for row in rows] for column in range(3))
    if set(labels) != set(INFERENCE_LABELS):
        raise ValueError(
            f"{files[0].parent}: pairs have the labels {sorted(set(labels))}; all three are needed"
        )
    return ParallelText(name=name, source=first, target=second, corpus=labels)


def read_inference(path: Path) -> list[tuple[str, str, str]]:
    """Read label, premise and hypothesis: columns that a header names, or else the first three.

    Raises:
        ValueError: a line has too few columns or another label.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    for names in _HEADERS:
        if rows and set(names) <= set(rows[0]):
            columns = [rows[0].index(name) for name in names]
            return labelled(path, columns, list(enumerate(rows[1:], start=2)))
    return labelled(path, range(3), list(enumerate(rows, start=1)))


def labelled(
    path: Path, columns: Sequence[int], rows: Sequence[tuple[int, Sequence[str]]]
) -> list[tuple[str, str, str]]:
    """Return label, premise and hypothesis of numbered lines; see ``read_inference``.

    Pairs without a label that their judges agreed on (``-``) are left out.
    """
    kept = []
    for number, row in rows:
        if len(row) <= max(columns):
            raise ValueError(
                f"{path}:{number}: {len(row)} columns; expected a label and two sentences"
            )
        label, first, second = (row[column] for column in columns)
        label = _SPELT.get(label, label)
        if label not in (*INFERENCE_LABELS, "-"):
            expected = ", ".join(INFERENCE_LABELS)
            raise ValueError(f"{path}:{number}: label {label[:40]!r}; expected {expected}")
        if label != "-":
            kept.append((label, first, second))
    return kept


def files_of(folder: Path, suffix: str) -> tuple[Path, ...]:
    """Return the files of a folder that end so, compressed ones among them.

    Raises:
        ValueError: there is none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    ends = suffix, f"{suffix}.xz"
    found = [path for path in sorted(folder.iterdir()) if path.name.endswith(ends)]
    if not found:
        raise ValueError(f"{folder}: no {suffix} or {suffix}.xz file")
    return tuple(found)
