"""Text files: UTF-8, split at LF only, so that line numbers agree with other programs'."""

import hashlib
import lzma
from pathlib import Path

from miner.storage.atomic import atomic_file
from miner.storage.places import Place


def read_lines(path: Place) -> list[str]:
    r"""Read the lines of a UTF-8 file, without a byte order mark, line ends or a CR before them.

    A file whose name ends in ``.xz`` is decompressed.

    Only ``\n`` ends a line: U+2028, U+0085 and their like occur inside sentences. An end of line
    at the end of the file opens no further line.

    Raises:
        ValueError: the file is not UTF-8, or ``.xz`` and no such file or cut short.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    if path.name.endswith(".xz"):
        try:
            data = lzma.decompress(data)
        except lzma.LZMAError as error:
            raise ValueError(f"{path}: not compressed with xz, or cut short ({error})") from error
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path} line {line}: not UTF-8 ({error.reason})") from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def fingerprint(*paths: Path) -> str:
    """Return the first 8 digits of what ``cat PATHS | sha256sum`` prints."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def write_text(path: Place, text: str) -> None:
    """Write ``text`` in UTF-8, whole or not at all.

    Raises:
        OutputError: ``path`` cannot be written.
    """
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
