"""Which of LASER's published encoders is for a language, and of which files it consists."""

import json
from importlib.resources import files

SHARED = "laser2"  # LASER2, and the name of the subwords that most of LASER3's encoders use, too

_TABLES = json.loads(files("encoder").joinpath("assets", "languages.json").read_text())
# Languages as the names of the files have them: FLORES-200 codes, ISO 639-3 and a script.
LASER3: list[str] = _TABLES["laser3"]
LASER2: list[str] = _TABLES["laser2"]
OWN_SUBWORDS: list[str] = _TABLES["own_subwords"]
# ISO 639-1, and ISO 639-3's macrolanguages: the language that the files are named after.
INDIVIDUAL: dict[str, str] = _TABLES["individual"]


def files_of(language: str) -> list[str]:
    """Return the checkpoint and the subwords of a language's encoder: LASER3's, else LASER2.

    ``language`` is an ISO 639-1 or 639-3 code, with a script (``kas_Deva``) where there are two. A
    ValueError says that LASER has no encoder for it, or one for each of its scripts.
    """
    code, _, script = language.partition("_")
    wanted = f"{INDIVIDUAL.get(code, code)}_{script}"  # without a script, what names begin with
    found, shared = (
        [name for name in names if name.startswith(wanted) and (not script or name == wanted)]
        for names in (LASER3, LASER2)
    )
    if len(found) > 1:
        raise ValueError(f"language {language!r} has encoders {' and '.join(found)}; name one")
    if found:
        stem = f"laser3-{found[0]}.v1"
        subwords = stem if found[0] in OWN_SUBWORDS else SHARED
        return [f"{stem}.pt", f"{subwords}.spm", f"{subwords}.cvocab"]
    if shared:
        return [f"{SHARED}.pt", f"{SHARED}.spm"]
    raise ValueError(
        f"LASER has no encoder for the language {language!r}; give an ISO 639 code (de, swh), or "
        "a FLORES one (wol_Latn)"
    )
