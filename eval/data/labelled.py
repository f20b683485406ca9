"""Labelled sentences and sentence pairs, for classifiers of vectors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from miner.arrays import FloatArray, IntArray, Mask
from miner.commandline import parse_number
from miner.storage.streams import read_lines

TRAIN, DEV, TEST = PARTS = ("tr", "va", "te")


@dataclass(frozen=True, kw_only=True)
class Examples:
    """N labelled sentences or sentence pairs.

    ``sides`` has one list of N sentences, or two for pairs, maybe none if N is 0. ``parts`` has the
    part of each example, such as ``tr``, or is empty. ``files`` were read.
    """

    labels: Sequence[str]
    sides: tuple[Sequence[str], ...]
    parts: Sequence[str] = ()
    files: Sequence[Path] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, name: str) -> Mask:
        """Return which examples are in part ``name``, bool (N,), (0,) if no parts."""
        return np.array([part == name for part in self.parts], dtype=bool)

    def classes(self) -> tuple[list[str], IntArray]:
        """Return sorted distinct labels, and each example's index, int64 (N,)."""
        names, numbers = np.unique(np.array(self.labels, dtype=np.str_), return_inverse=True)
        return names.tolist(), numbers.astype(np.int64)

    def scores(self, lowest: float = -math.inf, highest: float = math.inf) -> FloatArray:
        """Return the labels as numbers, float64 (N,).

        Raises:
            ValueError: A label is not a finite number from ``lowest`` to ``highest``.
        """
        scores = np.array([*map(parse_number, self.labels)], dtype=np.float64)
        for row, label in enumerate(self.labels):
            if not (np.isfinite(scores[row]) and lowest <= scores[row] <= highest):
                files = ", ".join(map(str, self.files))
                bounds = "" if math.isinf(highest) else f" from {lowest} to {highest}"
                raise ValueError(
                    f"{files}: the score {label[:40]!r} of example {row + 1} is not a finite "
                    f"number{bounds}; correct it"
                )
        return scores


def read_examples(path: Path, *, sides: int = 1) -> Examples:
    """Read ``[tr|va|te TAB] LABEL TAB sentence`` lines.

    ``sides`` is the number of sentences per line, each after a tab. All lines name a part, or none.

    Raises:
        ValueError: A line is malformed or blank, or the file is empty or cannot be read.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    split = bool(rows) and len(rows[0]) == sides + 2
    columns = sides + 1 + split
    expected_format = " TAB ".join(["tr|va|te"] * split + ["LABEL"] + ["sentence"] * sides)
    for number, row in enumerate(rows, start=1):
        if len(row) != columns or (split and row[0] not in PARTS):
            line = "\t".join(row)[:60]
            raise ValueError(f"{path} line {number}: expected {expected_format}, not {line!r}")
    if not rows:
        raise ValueError(f"{path}: empty; expected {expected_format} lines")
    return _examples(path, rows, split, range(split + 1, columns), 0 if split else None)


def read_columns(
    path: Path, *, label: int, sides: Sequence[int], part: int | None = None, skip: int = 0
) -> Examples:
    """Read labelled sentences from tab-separated columns.

    The first ``skip`` lines are skipped. ``label``, ``sides`` and ``part`` are the columns, from 0,
    of labels, of sentences, and of parts (``tr``, ``va`` or ``te``); None if there are no parts.

    Raises:
        ValueError: A line lacks columns, a part is unknown, no line is left, or reading fails.
    """
    rows = [line.split("\t") for line in read_lines(path)][skip:]
    fewest = 1 + max(label, *sides, part or 0)
    for number, row in enumerate(rows, start=skip + 1):
        where = f"{path} line {number}"
        if len(row) < fewest:
            raise ValueError(f"{where}: number of columns {len(row)}; expected {fewest} or more")
        if part is not None and row[part] not in PARTS:
            raise ValueError(f"{where}: part {row[part][:40]!r}; expected {', '.join(PARTS)}")
    if not rows:
        raise ValueError(f"{path}: no examples; expected one per line")
    return _examples(path, rows, label, sides, part)


def _examples(
    path: Path, rows: Sequence[list[str]], label: int, sides: Sequence[int], part: int | None
) -> Examples:
    return Examples(
        labels=[row[label] for row in rows],
        sides=tuple([row[side] for row in rows] for side in sides),
        parts=() if part is None else [row[part] for row in rows],
        files=[path],
    )


def read_parts(
    files: Mapping[str, Path], *, label: int, sides: Sequence[int], skip: int = 0
) -> Examples:
    """Read labelled sentences from a file per part.

    ``files`` are by part, such as ``tr``, and skipped if missing. If all are missing, the result
    has no examples and no sides. Other arguments and errors are as in ``read_columns``.
    """
    read = partial(read_columns, label=label, sides=sides, skip=skip)
    return concat({part: read(path) for part, path in files.items() if path.is_file()})


def concat(parts: Mapping[str, Examples]) -> Examples:
    """Concatenate examples, whose keys replace their parts.

    Numbers of sides must be equal, else ValueError is raised. No examples give no sides.
    """
    sides = zip(*(examples.sides for examples in parts.values()), strict=True)
    return Examples(
        labels=[label for examples in parts.values() for label in examples.labels],
        sides=tuple([sentence for part in side for sentence in part] for side in sides),
        parts=[name for name, examples in parts.items() for _ in examples.labels],
        files=[path for examples in parts.values() for path in examples.files],
    )


def first_file(directories: Sequence[Path], name: str) -> Path | None:
    """Return the path of ``name`` or ``name.xz`` in the first folder with it."""
    paths = (folder / file for folder in directories for file in (name, f"{name}.xz"))
    return next((path for path in paths if path.is_file()), None)
