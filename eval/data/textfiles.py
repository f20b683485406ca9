"""Readers of UTF-8 text files, whose lines end in LF only."""

import hashlib
import re
from pathlib import Path

from encoder.training.reading import split_lines
from miner.storage.places import Place
from miner.storage.streams import read_chunks


def read_lines(path: Place) -> list[str]:
    """Read the lines of a file, which may be compressed.

    Raises:
        ValueError: The file cannot be read, or is not UTF-8.
    """
    return split_lines(b"".join(read_chunks(path)), str(path))


def fingerprint(*paths: Path) -> str:
    """Return the first 8 hex digits of the files' joint SHA-256."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def files_matching(directory: Path, pattern: str) -> dict[Path, re.Match[str]]:
    """Find the files in a folder whose whole name matches a regex, sorted.

    Raises:
        ValueError: ``directory`` is not a folder.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory}: not a directory")
    matches = {path: re.fullmatch(pattern, path.name) for path in sorted(directory.iterdir())}
    return {path: match for path, match in matches.items() if match}
