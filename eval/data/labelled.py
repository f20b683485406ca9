"""Sentences, or pairs of them, with labels: what classifiers on frozen vectors are trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.data.textfiles import read_lines

TRAIN, DEV, TEST = PARTS = ("tr", "va", "te")


@dataclass(frozen=True, kw_only=True)
class Examples:
    """N examples: ``labels``, the sentences of one side or two, and the ``parts`` they belong to.

    ``parts`` is empty where the examples are not split. ``files`` is where they come from.
    """

    labels: Sequence[str]
    sides: tuple[Sequence[str], ...]
    parts: Sequence[str] = ()
    files: Sequence[Path] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, name: str) -> NDArray[np.bool_]:
        """Return which examples are of a part: bool (N,)."""
        return np.array([part == name for part in self.parts], dtype=bool)

    def classes(self) -> tuple[list[str], NDArray[np.int64]]:
        """Return the different labels, sorted, and the number of each example's: int64 (N,)."""
        names, numbers = np.unique(np.array(self.labels, dtype=np.str_), return_inverse=True)
        return names.tolist(), numbers.astype(np.int64)

    def scores(self) -> NDArray[np.float64]:
        """Return the labels as numbers: float64 (N,); a ValueError says that one is none."""
        try:
            found = np.array([float(label) for label in self.labels])
        except ValueError as error:
            raise ValueError(f"{self.files[0]}: a score is not a number: {error}") from error
        if not np.isfinite(found).all():
            raise ValueError(f"{self.files[0]}: a score is not a number: nan or infinite")
        return found


def read_examples(path: Path, *, sides: int = 1) -> Examples:
    """Read ``[tr|va|te TAB] LABEL TAB sentence`` lines, with ``sides`` sentences each.

    All or none name their part; a ValueError names another line, or says that there is none.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    split = bool(rows) and len(rows[0]) == sides + 2
    columns = sides + 1 + split
    shown = " TAB ".join(["tr|va|te"] * split + ["LABEL"] + ["sentence"] * sides)
    for number, row in enumerate(rows, start=1):
        if len(row) != columns or (split and row[0] not in PARTS):
            line = "\t".join(row)[:60]
            raise ValueError(f"{path} line {number}: expected {shown}, not {line!r}")
    if not rows:
        raise ValueError(f"{path}: empty; expected {shown} lines")
    return _examples(path, rows, split, range(split + 1, columns), 0 if split else None)


def read_columns(
    path: Path, *, label: int, sides: Sequence[int], part: int | None = None, skip: int = 0
) -> Examples:
    """Read columns between tabs, after ``skip`` lines: the label, the sentences, and the part.

    A ValueError names a line of too few columns or another part, or says that there is none.
    """
    rows = [line.split("\t") for line in read_lines(path)][skip:]
    needed = 1 + max(label, *sides, part or 0)
    for number, row in enumerate(rows, start=skip + 1):
        where = f"{path} line {number}"
        if len(row) < needed:
            raise ValueError(f"{where}: {len(row)} columns between tabs; expected {needed}")
        if part is not None and row[part] not in PARTS:
            raise ValueError(f"{where}: part {row[part][:40]!r}; expected {', '.join(PARTS)}")
    if not rows:
        raise ValueError(f"{path}: no examples")
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
    """Read columns of the files of parts that are there, see ``read_columns``, and join them."""
    read = partial(read_columns, label=label, sides=sides, skip=skip)
    return joined({part: read(path) for part, path in files.items() if path.is_file()})


def joined(parts: Mapping[str, Examples]) -> Examples:
    """Put the examples of parts one after the other."""
    sides = zip(*(one.sides for one in parts.values()), strict=True)
    return Examples(
        labels=[label for one in parts.values() for label in one.labels],
        sides=tuple([sentence for side in both for sentence in side] for both in sides),
        parts=[name for name, one in parts.items() for _ in one.labels],
        files=[path for one in parts.values() for path in one.files],
    )


def first_file(directories: Sequence[Path], name: str) -> Path | None:
    """Return the first file of a name that is in any of the folders, as it is or with ``.xz``."""
    paths = (folder / each for folder in directories for each in (name, f"{name}.xz"))
    return next((path for path in paths if path.is_file()), None)
