"""What LASER does to a line of text before it is split into subwords."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from encoder.laser.moses import (
    PerlTokenizer,
    PunctuationNormalizer,
    remove_non_printing,
)

Step = Callable[[str], str]

# The codes that LASER takes for another one.
SAME_AS = {"cmn": "zh", "wuu": "zh", "yue": "zh", "jpn": "ja"}


def normalizing(language: str | None) -> Step:
    """Steps for LASER2 and LASER3: characters and punctuation made regular, lower case.

    ``language`` is an ISO 639 code as the Moses scripts take it; None does what ``en`` does.
    """
    punctuation = PunctuationNormalizer(_code(language))
    return lambda line: punctuation(remove_non_printing(line)).lower()


def tokenizing(language: str | None) -> Step:
    """Steps for LASER1: regular characters and punctuation, words between spaces, lower case.

    Raises:
        ValueError: Chinese, Japanese or Greek, and the package that these need is not installed.
    """
    code = _code(language)
    punctuation, words = PunctuationNormalizer(code), PerlTokenizer(code)
    special: Step = {"zh": _chinese, "ja": _japanese, "el": _greek}.get(code, lambda: str)()
    return lambda line: special(words(punctuation(remove_non_printing(line)))).lower()


def _code(language: str | None) -> str:
    return SAME_AS.get(language or "en", language or "en")


def _chinese() -> Step:
    jieba = _package("jieba", "Chinese")
    jieba.setLogLevel("ERROR")
    return lambda line: " ".join(jieba.cut(line))


def _japanese() -> Step:
    tagger = _package("MeCab", "Japanese").Tagger(
        f"{_package('ipadic', 'Japanese').MECAB_ARGS} -O wakati"
    )
    return lambda line: str(tagger.parse(line)).removesuffix("\n")


def _greek() -> Step:
    translit = _package("transliterate", "Greek").translit
    return lambda line: str(translit(line, "el", reversed=True))


def _package(name: str, language: str) -> Any:  # noqa: ANN401  # a module without types
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(
            f"LASER1 splits {language} into words with {name}, which is not installed: "
            "pip install 'bitext-adit[laser1]'"
        ) from None
