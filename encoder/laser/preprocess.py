"""LASER's changes to a line of text before it is split into subwords."""

from collections.abc import Callable

from encoder.laser.moses import (
    PerlTokenizer,
    PunctuationNormalizer,
    remove_non_printing,
)

Step = Callable[[str], str]

# The codes that LASER takes for another one.
SAME_AS = {"cmn": "zh", "wuu": "zh", "yue": "zh", "jpn": "ja"}


def normalizing(language: str | None) -> Step:
    """Return steps for LASER2 and LASER3: characters and punctuation made regular, lower case.

    ``language`` is an ISO 639 code as the Moses scripts take it; None does what ``en`` does.
    """
    punctuation = PunctuationNormalizer(_code(language))
    return lambda line: punctuation(remove_non_printing(line)).lower()


def tokenizing(language: str | None) -> Step:
    """Return steps for LASER1: regular characters and punctuation, split words, lower case.

    Raises:
        ModuleNotFoundError: Chinese, Japanese or Greek need a package that is not installed.
    """
    code = _code(language)
    punctuation, words = PunctuationNormalizer(code), PerlTokenizer(code)
    special: Step = {"zh": _chinese, "ja": _japanese, "el": _greek}.get(code, lambda: str)()
    return lambda line: special(words(punctuation(remove_non_printing(line)))).lower()


def _code(language: str | None) -> str:
    return SAME_AS.get(language or "en", language or "en")


def _chinese() -> Step:
    import jieba

    jieba.setLogLevel("ERROR")
    return lambda line: " ".join(jieba.cut(line))


def _japanese() -> Step:
    import ipadic
    import MeCab

    tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -O wakati")
    return lambda line: str(tagger.parse(line)).removesuffix("\n")


def _greek() -> Step:
    from transliterate import translit

    return lambda line: str(translit(line, "el", reversed=True))
