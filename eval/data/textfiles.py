"""Text files: UTF-8, split at LF only, so that line numbers agree with other programs'."""

import hashlib
from pathlib import Path

from encoder.training.reading import lines_of
from miner.storage.places import Place


def read_lines(path: Place) -> list[str]:
    """Read the lines of a file, as ``encoder.training.reading.lines_of``.

    Raises:
        ValueError: the file is not UTF-8, or ``.xz`` and no such file or cut short.
        OSError: it cannot be read.
    """
    return lines_of(path.read_bytes(), str(path))


def fingerprint(*paths: Path) -> str:
    """Return the first 8 digits of what ``cat PATHS | sha256sum`` prints."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
