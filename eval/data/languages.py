"""Codes of languages: ISO 639-3, which Tatoeba's files are named by, and ISO 639-1."""

import re
from importlib.resources import files

# Where the longer code is of one member of a macrolanguage, it is the one that Tatoeba has.
_TABLE = files("eval").joinpath("assets", "iso-639.tsv").read_text(encoding="utf-8")
_ISO_639_3 = dict(line.split("\t") for line in _TABLE.splitlines())
_ISO_639_1 = {longer: shorter for shorter, longer in _ISO_639_3.items()}


def iso_639_3(code: str) -> str:
    """Return the ISO 639-3 code of a language given by that or by its ISO 639-1 code."""
    return _ISO_639_3.get(code, code)


def iso_639_1(code: str) -> str:
    """Return the ISO 639-1 code of a language where it has one, else the code itself."""
    return _ISO_639_1.get(code, code)


def code_of(name: str) -> str:
    """Return the code of a language that data name with a script or region: ``deu_Latn``, ``de``.

    It is that of ISO 639-1 where there is one, which encoders know.
    """
    return iso_639_1(re.split("[_-]", name)[0])
