"""Language codes of evaluation data, of ISO 639-3 or ISO 639-1."""

from collections.abc import Collection, Sequence

from langcodes import Language

from encoder import Encoder
from encoder.coverage import language_key
from miner.language_codes import base_language, parse_language

# The member of each macrolanguage that Tatoeba has.
_MEMBERS = dict(fa="pes", lv="lvs", ms="zsm", no="nob", sw="swh", tl="tgl", zh="cmn")
_MACROLANGUAGES = {member: code for code, member in _MEMBERS.items()}


def iso_639_3(code: str) -> str:
    """Return the ISO 639-3 code of a language.

    For some macrolanguages, such as ``zh``, it is the member that Tatoeba has, ``cmn``. A script or
    region is ignored. An unknown code is returned without them, in lower case.
    """
    base = base_language(code)
    try:
        return _MEMBERS.get(base) or Language.get(base).to_alpha3()
    except (LookupError, ValueError):
        return base


def iso_639_1(code: str) -> str:
    """Return a language's ISO 639-1 code, or else its ISO 639-3 code.

    Some members, such as ``cmn``, have their macrolanguage's code, ``zh``. A script or region is
    ignored. An unknown code is returned without them, in lower case.
    """
    base = base_language(code)
    return _MACROLANGUAGES.get(base, base)


def name_of(code: str, names: Collection[str]) -> str:
    """Return the name among ``names`` that means the language of ``code``.

    A code without a script or region also matches the only name of its language. If no name or
    several names match, the result is ``code``.
    """
    if code in names:
        return code
    same_tag = [name for name in names if _tag(name) == _tag(code)]
    same_language = [name for name in names if language_key(name) == language_key(code)]
    matches = same_tag or (same_language if _tag(code) == base_language(code) else [])
    return matches[0] if len(matches) == 1 else code


def _tag(name: str) -> str:
    try:
        return parse_language(name)
    except ValueError:
        return name


def encoders_of_languages(encoder: Encoder, languages: Sequence[str]) -> list[Encoder]:
    """Return the encoder of each language, in order, all in one space.

    Joined encoders have the parts of ``for_languages``. Errors of ``for_language`` are raised.
    """
    codes = list(map(iso_639_1, languages))
    joint_encoder = encoder.for_languages(codes)
    return [joint_encoder.for_language(code) for code in codes]
