"""LASER's published encoders, fetched into a folder: resumed where they broke off, and checked.

Their publisher gives no checksums. So the SHA-256 of what was first fetched is kept in the folder's
``SHA256SUMS`` (as the program sha256sum reads and writes it), and holds from then on; a file of
checksums from elsewhere can be put there first.
"""

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from encoder.laser.languages import files_of

PUBLISHER = "https://dl.fbaipublicfiles.com/nllb/laser"
CHECKSUMS = "SHA256SUMS"
BLOCK_BYTES = 1 << 20
TIMEOUT_SECONDS = 60


def fetch_laser(
    language: str, folder: Path, *, publisher: str = PUBLISHER, offline: bool = False
) -> Path:
    """Return a language's checkpoint in ``folder``; fetch it with its subwords if missing.

    Args:
        language: see ``encoder.laser.languages.files_of``.
        folder: where; it is made if need be.
        publisher: the address that the files' names are put behind.
        offline: take what is there, and fetch nothing.

    Raises:
        ValueError: there is no such encoder, a file cannot be had, or it is not what it was.
    """
    names = files_of(language)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing and offline:
        raise ValueError(
            f"{folder}: lacks {', '.join(missing)}; fetch them without --offline, or copy them "
            f"there from {publisher}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        target = folder / name
        if name not in missing:
            _check(target, target)
            continue
        part = _fetch(f"{publisher.rstrip('/')}/{name}", target)
        try:
            _check(part, target)
        except ValueError:
            part.unlink()
            raise
        os.replace(part, target)
    return folder / names[0]


def _fetch(address: str, target: Path) -> Path:
    """Fetch an address into a file beside the target; keep what is there of it."""
    try:
        head = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(head, timeout=TIMEOUT_SECONDS) as answer:
            size = int(answer.headers["Content-Length"])
            version = hashlib.sha256(str(answer.headers["ETag"]).encode()).hexdigest()[:8]
        # Parts of another version at the address are never completed with parts of this one.
        part = target.with_name(f"{target.name}.{version}.part")
        there = part.stat().st_size if part.exists() else 0
        if there < size:
            rest = urllib.request.Request(address, headers={"Range": f"bytes={there}-"})
            with urllib.request.urlopen(rest, timeout=TIMEOUT_SECONDS) as answer:
                with part.open("ab" if answer.status == 206 else "wb") as stream:
                    while block := answer.read(BLOCK_BYTES):
                        stream.write(block)
    except (urllib.error.URLError, TimeoutError, ConnectionError, TypeError) as error:
        raise ValueError(f"{address}: cannot be fetched ({error}); run again to go on") from error
    if (there := part.stat().st_size) != size:
        raise ValueError(
            f"{address}: broke off after {there:,} of {size:,} bytes; run again to go on"
        )
    return part


def _check(path: Path, target: Path) -> None:
    """Compare a file with the checksum under its target's name, or enter it where there is none."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    sums = target.with_name(CHECKSUMS)
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    known = {line[64:].lstrip(" *"): line[:64] for line in lines}.get(target.name)
    if known is None:
        with sums.open("a", encoding="utf-8") as stream:
            stream.write(f"{found}  {target.name}\n")
    elif known != found:
        raise ValueError(
            f"{target}: its SHA-256 is {found}, and {sums} has {known}; "
            "delete the file and fetch it again, or the line if the publisher has changed it"
        )
