"""Languages as data name them: codes of ISO 639-3 (Tatoeba's files) and 639-1, and encoders."""

from collections.abc import Collection, Sequence

from langcodes import Language

from encoder import Encoder
from encoder.coverage import individual
from miner.language_codes import base_language, parse_language

# The member of each macrolanguage that Tatoeba has.
_CODES = "fa pes lv lvs ms zsm no nob sw swh tl tgl zh cmn".split()
_MEMBERS = dict(zip(_CODES[::2], _CODES[1::2], strict=True))
_MACROLANGUAGES = {member: code for code, member in _MEMBERS.items()}


def iso_639_3(code: str) -> str:
    """Return the ISO 639-3 code of a language, or the code itself if it is unknown."""
    base = base_language(code)
    try:
        return _MEMBERS.get(base) or Language.get(base).to_alpha3()
    except LookupError:
        return base


def iso_639_1(code: str) -> str:
    """Return the ISO 639-1 code of a language if it has one, or else the code itself."""
    base = base_language(code)
    return _MACROLANGUAGES.get(base, base)


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
