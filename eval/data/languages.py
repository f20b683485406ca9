"""Languages as data name them: codes of ISO 639-3 (Tatoeba's files) and 639-1, and encoders."""

import re
from collections.abc import Sequence
from importlib.resources import files

from encoder import Encoder

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
    """Return the code that encoders know, without a script or region: ``deu_Latn`` is ``de``."""
    return iso_639_1(re.split("[_-]", name)[0])


def own_encoders(encoder: Encoder, languages: Sequence[str]) -> list[Encoder]:
    """Return the encoder of each language, all in one space: nothing but the language decides."""
    codes = [code_of(language) for language in languages]
    both = encoder.for_languages(codes)
    return [both.for_language(code) for code in codes]
