"""Files of data sets, by name and by content."""

import hashlib
import re
from pathlib import Path


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
