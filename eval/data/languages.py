"""Languages as data name them: codes of ISO 639-3 (Tatoeba's files) and 639-1, and encoders."""

from collections.abc import Collection, Sequence
from importlib.resources import files

from encoder import Encoder
from encoder.coverage import individual
from miner.language_codes import base_language, parse_language

# Where the longer code is of one member of a macrolanguage, it is the one that Tatoeba has.
_TABLE = files("eval").joinpath("assets", "iso-639.tsv").read_text(encoding="utf-8")
_ISO_639_3 = dict(line.split("\t") for line in _TABLE.splitlines())
_ISO_639_1 = {longer: shorter for shorter, longer in _ISO_639_3.items()}


def iso_639_3(code: str) -> str:
    """Return the ISO 639-3 code of a language given by any of its codes."""
    base = base_language(code)
    return _ISO_639_3.get(code) or _ISO_639_3.get(base, base)


def iso_639_1(code: str) -> str:
    """Return the ISO 639-1 code of a language where it has one, else the code itself."""
    return _ISO_639_1.get(code, code)


def name_of(code: str, names: Collection[str]) -> str | None:
    """Return the one of ``names`` that means the same as a code, or None.

    A code without a script or region also stands for the only name of its language.
    """
    if code in names:
        return code
    same = [name for name in names if _tag(name) == _tag(code)]
    alone = [name for name in names if individual(name) == individual(code)]
    matches = same or (alone if _tag(code) == base_language(code) else [])
    return matches[0] if len(matches) == 1 else None


def _tag(name: str) -> str:
    try:
        return parse_language(name)
    except ValueError:
        return name


def code_of(name: str) -> str:
    """Return the code that encoders know, without a script or region: ``deu_Latn`` is ``de``."""
    return iso_639_1(base_language(name))


def own_encoders(encoder: Encoder, languages: Sequence[str]) -> list[Encoder]:
    """Return the encoder of each language, all in one space: nothing but the language decides."""
    codes = [code_of(language) for language in languages]
    both = encoder.for_languages(codes)
    return [both.for_language(code) for code in codes]
