"""Text files of data sets, as UTF-8 lines, names and digests."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from miner.storage.streams import check_directory, read_lines

Item = TypeVar("Item")


def read_aligned(*paths: Path) -> list[list[str]]:
    """Read files whose lines i belong together, as a list of lines per file.

    Raises:
        ValueError: A file is missing, is not UTF-8 or has no lines, or numbers of lines differ.
    """
    texts = [read_lines(path) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if not lines:
            raise ValueError(f"{path}: empty; expected one sentence per line")
        if len(lines) != len(texts[0]):
            raise ValueError(
                f"{path}: the number of lines is {len(lines)}, but {len(texts[0])} in {paths[0]}; "
                "pass files whose lines i belong together"
            )
    return texts


def fingerprint(*paths: Path) -> str:
    """Return joined files' SHA-256, its first 8 hex digits, or raise OSError."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def files_matching(directory: Path, pattern: str) -> dict[Path, re.Match[str]]:
    """Return the entries of a folder whose whole name matches a pattern.

    Files and folders are sorted by name, and have the match of the regular expression ``pattern``.
    ValueError says that ``directory`` is not a folder.
    """
    check_directory(directory)
    matches = {path: re.fullmatch(pattern, path.name) for path in sorted(directory.iterdir())}
    return {path: match for path, match in matches.items() if match}


def choose(choices: Mapping[str, Item], name: str, problem: str, option: str = "") -> Item:
    """Return the item called ``name`` among ``choices``.

    Raises:
        ValueError: It is missing. ``problem``, such as ``FOLDER: no pair``, begins the message, and
            ``option``, in which the name can be passed, ends it.
    """
    if name not in choices:
        by = f" with {option}" if option else ""
        raise ValueError(f"{problem} {name!r}; choose one of {', '.join(choices)}{by}")
    return choices[name]
