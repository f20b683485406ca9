"""Sentences with a topic in many languages: SIB-200 and MLDoc, as published or in one file each.

Layouts, of a folder: ``xxx_Yyyy.tsv`` (``tr|va|te TAB id TAB category TAB text``); SIB-200's own,
``xxx_Yyyy/train.tsv``, ``dev.tsv`` and ``test.tsv`` with the header ``index_id category text``;
MLDoc's, ``english.train.1000``, ``english.dev`` and ``english.test`` (``LABEL TAB text``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from eval.data.labelled import PARTS, Examples, joined, read_columns

MLDOC = {
    "english": "en",
    "german": "de",
    "spanish": "es",
    "french": "fr",
    "italian": "it",
    "japanese": "ja",
    "russian": "ru",
    "chinese": "zh",
}
_FLAT = re.compile(r"(\w{3}_\w{4})\.tsv(?:\.xz)?")
_SIB_PARTS = dict(zip(PARTS, ("train", "dev", "test"), strict=True))
MLDOC_TRAIN = ("train.1000", "train.10000", "train.5000", "train.2000")


def load_topics(directory: Path) -> dict[str, Examples]:
    """Load each language's sentences with topics and parts, by the names that the files have.

    Raises:
        ValueError: there is none, or a file is malformed.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    found: dict[str, Examples] = {}
    for path in sorted(directory.iterdir()):
        if match := _FLAT.fullmatch(path.name):
            found[match[1]] = read_columns(path, part=0, label=2, sides=(3,))
        elif path.is_dir() and (path / "train.tsv").is_file():
            there = {part: path / f"{name}.tsv" for part, name in _SIB_PARTS.items()}
            found[path.name] = _joined(there, label=1, side=2, skip=1)
    for name, code in MLDOC.items():
        train = [p for p in MLDOC_TRAIN if (directory / f"{name}.{p}").is_file()]
        if train:
            files = zip(PARTS, (train[0], "dev", "test"), strict=True)
            there = {part: directory / f"{name}.{file}" for part, file in files}
            found[code] = _joined(there, label=0, side=1)
    if not found:
        raise ValueError(
            f"{directory}: no topics; expected xxx_Yyyy.tsv, xxx_Yyyy/train.tsv or "
            "english.train.1000 and the like"
        )
    return found


def _joined(files: Mapping[str, Path], *, label: int, side: int, skip: int = 0) -> Examples:
    """Read the parts that there are."""
    there = {part: path for part, path in files.items() if path.is_file()}
    return joined(
        {
            part: read_columns(path, label=label, sides=(side,), skip=skip)
            for part, path in there.items()
        }
    )
