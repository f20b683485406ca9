"""LASER's published encoders by language, and the download of their files.

LASER's publisher gives no checksums. So ``SHA256SUMS`` in the folder, in sha256sum's format, gets
the SHA-256 of the first download, and later files must match it. You can put a file there first.
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

SHARED = "laser2"  # the file name of LASER2, whose subwords most LASER3 encoders also use

_TABLES = json.loads((Path(__file__).parents[1] / "assets" / "languages.json").read_text())
# Languages as in the names of the files: FLORES-200 codes, an ISO 639-3 code and a script.
LASER3: list[str] = _TABLES["laser3"]
LASER2: list[str] = _TABLES["laser2"]
OWN_SUBWORDS: list[str] = _TABLES["own_subwords"]
# From ISO 639-1 codes and ISO 639-3's macrolanguages to the language in the files' names.
INDIVIDUAL: dict[str, str] = _TABLES["individual"]


def files_of(language: str) -> list[str]:
    """Return the file names of the LASER encoder of a language.

    ``language`` is an ISO 639 code, with a script (``kas_Deva``, ``ks-Deva``) if LASER has several.
    The checkpoint's name is first. The files are of LASER3 if it has the language, else of LASER2.

    Raises:
        ValueError: LASER has no encoder for the language, or one for each of several scripts.
    """
    code, tags = base_language(language), language.replace("_", "-").split("-")[1:]
    script = next((tag for tag in tags if len(tag) == 4 and tag.isalpha()), "")
    prefix = f"{INDIVIDUAL.get(code, code)}_{script}"  # without a script, any script matches
    laser3_names, laser2_names = (
        [name for name in names if name.startswith(prefix)] for names in (LASER3, LASER2)
    )
    if len(laser3_names) > 1:
        raise ValueError(
            f"language {language!r}: LASER has several encoders; pass one of "
            f"{', '.join(laser3_names)}"
        )
    if laser3_names:
        stem = f"laser3-{laser3_names[0]}.v1"
        subwords = stem if laser3_names[0] in OWN_SUBWORDS else SHARED
        return [f"{stem}.pt", f"{subwords}.spm", f"{subwords}.cvocab"]
    if laser2_names:
        return [f"{SHARED}.pt", f"{SHARED}.spm"]
    raise ValueError(
        f"language {language!r}: LASER has no encoder; pass the ISO 639 code of another language, "
        "such as de, or use --encoder best"
    )


def fetch_laser(language: str, folder: Path, *, publisher: str, offline: bool = False) -> Path:
    """Download the missing files of a language's encoder into ``folder``.

    Interrupted downloads are resumed, and each file is compared with its checksum. ``publisher`` is
    the address that precedes ``/`` and a file's name. The folder is made if it is missing, and a
    checksum that ``SHA256SUMS`` lacks is added there. The result is the path of the checkpoint.

    Raises:
        ValueError: ``files_of`` fails, or a file cannot be fetched, is missing while ``offline``,
            or has another checksum.
        OSError: A file cannot be written.
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
            _check_or_store_sum(target, target)
            continue
        part = _download_part(f"{publisher.rstrip('/')}/{name}", target)
        try:
            _check_or_store_sum(part, target)
        except ValueError:
            part.unlink()
            raise
        os.replace(part, target)
    return folder / names[0]


def _download_part(address: str, target: Path) -> Path:
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    try:
        head = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(head, timeout=TIMEOUT_SECONDS) as answer:
            if (length := answer.headers["Content-Length"]) is None:
                raise HTTPException("the server states no length")
            size = int(length)
            version = hashlib.sha256(str(answer.headers["ETag"]).encode()).hexdigest()[:8]
        # Parts of another version at the address are never completed with parts of this one.
        part = target.with_name(f"{target.name}.{version}.part")
        received = part.stat().st_size if part.exists() else 0
        if received < size:
            rest = urllib.request.Request(address, headers={"Range": f"bytes={received}-"})
            with urllib.request.urlopen(rest, timeout=TIMEOUT_SECONDS) as answer:
                with part.open("ab" if answer.status == 206 else "wb") as stream:
                    shutil.copyfileobj(answer, stream)
    except (
        *(urllib.error.URLError, HTTPException, TimeoutError, ConnectionError),
        ValueError,  # without a scheme
    ) as error:
        cause = getattr(getattr(error, "reason", None), "strerror", None) or error
        raise ValueError(
            f"{address}: cannot be fetched ({cause}); check --url and the network, and rerun to "
            "resume"
        ) from error
    if (received := part.stat().st_size) < size:
        raise ValueError(
            f"{address}: download stopped after {received:,} of {size:,} bytes; rerun to resume"
        )
    if received > size:
        part.unlink()
        raise ValueError(
            f"{address}: received {received:,} bytes of a file of {size:,}, and deleted them; "
            "rerun to fetch it again"
        )
    return part


def _check_or_store_sum(path: Path, target: Path) -> None:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    sums = target.with_name(CHECKSUMS)
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    known = {line[64:].lstrip(" *"): line[:64] for line in lines}.get(target.name)
    if known is None:
        with sums.open("a", encoding="utf-8") as stream:
            stream.write(f"{digest}  {target.name}\n")
    elif known != digest:
        raise ValueError(
            f"{target}: its SHA-256 is {digest}, but {sums} has {known}; delete the file, if it is "
            f"there, and fetch it again, or delete its line in {sums} if the publisher changed it"
        )
