"""Parse codes of languages, as users and files write them."""

import argparse
import re
from contextlib import suppress
from functools import cache

# Codes that CLDR, whose aliases langcodes follows, replaces by other codes.
_KEPT = {"tl": "tl", "tgl": "tl", "prs": "prs"}
_WIDER = {"fil": "tl", "nb": "no"}  # Filipino is a standard of Tagalog
_NO_LANGUAGE = {"und", "mul", "mis", "zxx"}  # undetermined, several, uncoded, none


@cache
def parse_language(text: str) -> str:
    """Parse the code of a language into its BCP 47 tag.

    Letters may be of any case, and ``_`` stands for ``-``. A code of ISO 639-2 or 639-3 becomes the
    language's code with two letters, if it has one. A deprecated code becomes the present one, and
    a language's default script is removed.

    >>> [parse_language(text) for text in ("UK", "ukr_UA", "ger", "iw", "zh_hant", "uk-Cyrl")]
    ['uk', 'uk-UA', 'de', 'he', 'zh-Hant', 'uk']

    Raises:
        ValueError: The text is not a known code of one language. The message may suggest one.
    """
    from langcodes import Language, standardize_tag
    from langcodes.tag_parser import LanguageTagError

    code = text.strip().replace("_", "-")
    first, _, rest = code.partition("-")
    try:
        tag = standardize_tag(code)
        if kept := _KEPT.get(first.lower()):
            tag = kept + standardize_tag(f"und-{rest}").removeprefix("und") if rest else kept
        language = Language.get(tag, normalize=False)
        base, is_valid = language.language, language.is_valid() and not language.extlangs
        if is_valid and base not in _NO_LANGUAGE | {None}:
            return tag
    except LanguageTagError:
        pass
    if (meant := _meant(text)) is not None:
        raise ValueError(f"{text!r} is not a language code; use {meant}")
    raise ValueError(
        f"{text!r} is not a known language code; use one of ISO 639 or BCP 47, such as uk or pt-BR "
        "(qaa to qtz stand for languages without a code)"
    )


def parse_option(text: str) -> str:
    """Parse a language's code into its BCP 47 tag, for options of argparse.

    Raises:
        ArgumentTypeError: The text is not a known code.
    """
    try:
        return parse_language(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@cache
def base_language(code: str) -> str:
    """Return the language of a code without script, region or variant.

    It has two letters if ISO 639-1 has the language. For an unknown code, it is the first part in
    lower case, or the whole code if that begins with ``x-``. No code raises an error.

    >>> [base_language(code) for code in ("pt-BR", "zh_Hant", "eng", "xx")]
    ['pt', 'zh', 'en', 'xx']
    """
    try:
        tag = parse_language(code)
    except ValueError:
        tag = code.replace("_", "-").lower()
    return tag if tag.startswith("x-") else tag.partition("-")[0]


@cache
def macrolanguage(code: str) -> str:
    """Return the macrolanguage that contains a language, or its base language.

    >>> [macrolanguage(code) for code in ("cmn", "nb", "arb", "yue", "fil", "prs", "de-AT", "xx")]
    ['zh', 'no', 'ar', 'yue', 'tl', 'prs', 'de', 'xx']
    """
    from langcodes import standardize_tag

    base = base_language(code)
    known = _WIDER.get(base, base)
    if known not in _KEPT.values():
        with suppress(ValueError):  # of no code
            return base_language(standardize_tag(known, macro=True))
    return known


def _meant(text: str) -> str | None:
    """Return the code that a name, a locale or a country stands for, or None."""
    from langcodes import Language

    locale = re.split(r"[.@]", text)[0]
    if locale != text and locale.isascii():
        with suppress(ValueError):
            return parse_language(locale)
        return None
    if (named := _codes_by_name().get(" ".join(text.casefold().split()))) is not None:
        return named
    if len(text) == 2 and text.isascii() and text.isalpha():
        likely = Language.get(f"und-{text}").maximize().language
        return likely if likely not in (None, "und", "en") else None
    return None


@cache
def _codes_by_name() -> dict[str, str]:
    from langcodes.registry_parser import parse_registry

    codes: dict[str, str] = {}
    for entry in parse_registry():  # type: ignore[no-untyped-call]
        if entry["Type"] == "language" and "Deprecated" not in entry:
            for name in entry["Description"]:
                bare = re.sub(r"\s*\(.*?\)", "", name).casefold()
                codes.setdefault(bare, entry["Subtag"])  # two letters come first
                codes.setdefault(bare.removeprefix("modern "), entry["Subtag"])
    return codes
