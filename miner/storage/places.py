"""Where files lie: local paths, or URIs of other file systems, and what is asked of either."""

import os
import re
import shutil
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from miner.storage.remote import RemotePath

Place: TypeAlias = Path | RemotePath
AnyPath: TypeAlias = str | os.PathLike[str] | RemotePath

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def place(text: str) -> Place:
    """Return a local path, or what a URI names; ``file://`` URIs are local paths."""
    if not _URI.match(text):
        return Path(text)
    if text.lower().startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    return RemotePath.from_uri(text)


def file_state(path: Place) -> tuple[int, ...]:
    """Return what is likely to tell a file from what it was before, without reading it."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def same_file(one: Place, other: Place) -> bool:
    """Return whether two places that there are are one."""
    if isinstance(one, RemotePath) or isinstance(other, RemotePath):
        return one == other
    return one.samefile(other)


def lies_in(path: Place, folder: Place) -> bool:
    """Return whether a path is below a folder, or is it."""
    if isinstance(path, RemotePath):
        return isinstance(folder, RemotePath) and path.lies_in(folder)
    if isinstance(folder, RemotePath):
        return False
    return path.resolve().is_relative_to(folder.resolve())


def remove_tree(folder: Place) -> None:
    """Remove a folder and all in it, if it is there."""
    if isinstance(folder, RemotePath):
        folder.remove_tree()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def tree_files(folder: Place) -> list[tuple[Place, int]]:
    """Return the files in a folder and all below, with their sizes; none if there is none."""
    if isinstance(folder, RemotePath):
        return [*folder.files(recursive=True)]
    return [(path, path.stat().st_size) for path in folder.rglob("*") if path.is_file()]
