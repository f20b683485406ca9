"""LASER's published encoders: which is for a language, and its files, fetched into a folder.

Their publisher gives no checksums. So the SHA-256 of what was first fetched is kept in the folder's
``SHA256SUMS`` (as the program sha256sum reads and writes it), and holds from then on; a file of
checksums from elsewhere can be put there first.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from miner.language_codes import base_language

PUBLISHER = "https://dl.fbaipublicfiles.com/nllb/laser"
CHECKSUMS = "SHA256SUMS"
TIMEOUT_SECONDS = 60

SHARED = "laser2"  # LASER2, and the name of the subwords that most of LASER3's encoders use, too

_TABLES = json.loads((Path(__file__).parents[1] / "assets" / "languages.json").read_text())
# Languages as the names of the files have them: FLORES-200 codes, ISO 639-3 and a script.
LASER3: list[str] = _TABLES["laser3"]
LASER2: list[str] = _TABLES["laser2"]
OWN_SUBWORDS: list[str] = _TABLES["own_subwords"]
# ISO 639-1, and ISO 639-3's macrolanguages: the language that the files are named after.
INDIVIDUAL: dict[str, str] = _TABLES["individual"]


def files_of(language: str) -> list[str]:
    """Return the checkpoint and the subwords of a language's encoder: LASER3's, else LASER2.

    ``language`` is a code, with a script (``kas_Deva``, ``ks-Deva``) where there are two. A
    ValueError says that LASER has no encoder for it, or one for each of its scripts.
    """
    code, script = _code_and_script(language)
    wanted = f"{INDIVIDUAL.get(code, code)}_{script}"  # without a script, what names begin with
    found, shared = (
        [name for name in names if name.startswith(wanted) and (not script or name == wanted)]
        for names in (LASER3, LASER2)
    )
    if len(found) > 1:
        raise ValueError(
            f"language {language!r} has several encoders; use one of {' and '.join(found)}"
        )
    if found:
        stem = f"laser3-{found[0]}.v1"
        subwords = stem if found[0] in OWN_SUBWORDS else SHARED
        return [f"{stem}.pt", f"{subwords}.spm", f"{subwords}.cvocab"]
    if shared:
        return [f"{SHARED}.pt", f"{SHARED}.spm"]
    raise ValueError(
        f"LASER has no encoder for the language {language!r}; pass an ISO 639 code (de, swh) or "
        "a FLORES code (wol_Latn)"
    )


def _code_and_script(language: str) -> tuple[str, str]:
    parts = language.replace("_", "-").split("-")
    scripts = [part for part in parts[1:] if len(part) == 4 and part.isalpha()]
    return base_language(language), "".join(scripts[:1])


def fetch_laser(language: str, folder: Path, *, publisher: str, offline: bool = False) -> Path:
    """Return a language's (``files_of``) checkpoint in ``folder``, which is made if need be.

    What is missing is fetched, with its subwords: resumed where it broke off, and checked; nothing
    if ``offline``. ``publisher`` is the address that names are put behind. A ValueError says that a
    file cannot be had, or is not what it was.
    """
    names = files_of(language)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing and offline:
        raise ValueError(
            f"{folder}: lacks {', '.join(missing)}; omit --offline to fetch them, or copy them "
            f"from {publisher}"
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
    import urllib.error
    import urllib.request

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
                    shutil.copyfileobj(answer, stream)
    except (urllib.error.URLError, TimeoutError, ConnectionError, TypeError) as error:
        raise ValueError(f"{address}: cannot be fetched ({error}); rerun to resume") from error
    if (there := part.stat().st_size) != size:
        raise ValueError(
            f"{address}: download stopped after {there:,} of {size:,} bytes; rerun to resume"
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
            "delete the file and fetch it again, or the line if the publisher changed the file"
        )
