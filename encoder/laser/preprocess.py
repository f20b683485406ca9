"""LASER's changes to a line of text before it is split into subwords.

They follow Moses's Perl scripts. sacremoses implements these, and the differences in its character
classes and in the languages of a rule are corrected here. tests/golden/moses has their output.
"""

from collections.abc import Callable

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from miner.language_codes import base_language

Step = Callable[[str], str]

_NON_PRINTING = regex.compile(r"\p{C}")
# Languages of sacremoses's rule on quotation marks and commas. Perl's has all except for two.
_SACREMOSES_QUOTES = ("en", "de", "es", "fr")
_NO_QUOTES = ("cs", "cz")
_SPLIT_LEFT = ("fr", "it", "ga", "ca")  # l' amour
_GLOTTAL_LANGUAGES = ("so", "tdt")
# From an ISO 639 code to the one that LASER replaces it by.
LASER_CODES = {"cmn": "zh", "wuu": "zh", "yue": "zh", "jpn": "ja"}


def remove_non_printing(line: str) -> str:
    """Replace each character of Unicode's category C by a space."""
    return _NON_PRINTING.sub(" ", line)


def normalize_punctuation(language: str) -> Step:
    """Return ``normalize-punctuation.perl`` as a function, by ISO 639-1 code."""
    normalizer = MosesPunctNormalizer(language, perl_parity=True)
    rules = normalizer.substitutions
    if language not in (*_SACREMOSES_QUOTES, *_NO_QUOTES):
        rules = [*rules[:-1], *normalizer.DE_ES_FR_QUOTATION_FOLLOWED_BY_COMMA, rules[-1]]
    rules_compiled = [(regex.compile(pattern), replacement) for pattern, replacement in rules]

    def normalize(line: str) -> str:
        line += "\n"  # as in Perl, because one rule needs a character after a quotation mark
        for pattern, replacement in rules_compiled:
            line = pattern.sub(replacement, line)
        return line.removesuffix("\n")

    return normalize


class PerlTokenizer(MosesTokenizer):
    """A tokeniser that, if called, works as ``tokenizer.perl -no-escape``.

    Its language is the shortest ISO 639 code. The inherited ``tokenize`` escapes by default.
    """

    COMMA_SEPARATE_1 = regex.compile(r"(\P{N}),"), r"\1 , "
    COMMA_SEPARATE_2 = regex.compile(r",(\P{N})"), r" , \1"
    COMMA_SEPARATE_3 = regex.compile(r"(\p{N}),$"), r"\1 ,"
    ENGLISH_SPECIFIC_APOSTROPHE = [  # noqa: RUF012  # as in sacremoses
        (regex.compile(r"(\P{Alpha})'(\P{Alpha})"), r"\1 ' \2"),
        (regex.compile(r"([^\p{Alpha}\p{N}])'(\p{Alpha})"), r"\1 ' \2"),
        (regex.compile(r"(\p{Alpha})'(\P{Alpha})"), r"\1 ' \2"),
        (regex.compile(r"(\p{Alpha})'(\p{Alpha})"), r"\1 '\2"),
        (regex.compile(r"(\p{N})'(s)"), r"\1 '\2"),
    ]
    FR_IT_SPECIFIC_APOSTROPHE = [  # noqa: RUF012
        (regex.compile(r"(\P{Alpha})'(\P{Alpha})"), r"\1 ' \2"),
        (regex.compile(r"(\P{Alpha})'(\p{Alpha})"), r"\1 ' \2"),
        (regex.compile(r"(\p{Alpha})'(\P{Alpha})"), r"\1 ' \2"),
        (regex.compile(r"(\p{Alpha})'(\p{Alpha})"), r"\1' \2"),
    ]
    _LOWER, _ALPHA = regex.compile(r"\p{Lower}"), regex.compile(r"\p{Alpha}")
    _LAST_STOP = regex.compile(r"(\S)\.\s*$")

    def __init__(self, language: str) -> None:
        super().__init__(language)
        # A character that is part of a word if a lower-case letter follows.
        inner = {"fi": ":", "sv": ":", "ca": "·"}.get(language, "")
        separate_inner = rf"|{inner}(?=$|\P{{Ll}})" if inner else ""
        pattern = rf"([^\p{{Alnum}}\s.'`,\-{inner}]{separate_inner})"
        self.PAD_NOT_ISALNUM = (regex.compile(pattern), r" \1 ")
        if language in _SPLIT_LEFT:
            self.lang = "fr"  # from here on, only the rules of the apostrophe depend on it
        elif language in _GLOTTAL_LANGUAGES:
            self.lang, self.FR_IT_SPECIFIC_APOSTROPHE = "fr", self.FR_IT_SPECIFIC_APOSTROPHE[:3]

    def islower(self, text: str) -> bool:
        """Return whether the text's first character is lower case for Perl."""
        return bool(self._LOWER.match(text))

    def isanyalpha(self, text: str) -> bool:
        """Return whether the text has a character that is a letter for Perl."""
        return bool(self._ALPHA.search(text))

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        """Put a space before full stops at the ends of words.

        A stop after an abbreviation or before lower case stays, except at the line's end.
        """
        return super().handles_nonbreaking_prefixes(self._LAST_STOP.sub(r"\1 .", text))

    def __call__(self, line: str) -> str:
        """Return the tokens of the line, between single spaces."""
        return str(self.tokenize(line, return_str=True, escape=False))


def make_normalizer(language: str | None) -> Step:
    """Return the function that preprocesses lines for LASER2 and LASER3.

    ``language`` is an ISO 639 code, or None for English. The function replaces unprintable
    characters by spaces, normalises punctuation, and lowers case.
    """
    normalize = normalize_punctuation(_code(language))
    return lambda line: normalize(remove_non_printing(line)).lower()


def make_tokenizer(language: str | None) -> Step:
    """Return the function that preprocesses lines for LASER1.

    The function works as that of ``make_normalizer``, and also separates words. For Greek, it
    romanises. ModuleNotFoundError names the missing package for Chinese, Japanese or Greek.
    """
    code = _code(language)
    normalize, words = normalize_punctuation(code), PerlTokenizer(code)
    special: Step = {"zh": _chinese, "ja": _japanese, "el": _greek}.get(code, lambda: str)()
    return lambda line: special(words(normalize(remove_non_printing(line)))).lower()


def _code(language: str | None) -> str:
    code = base_language(language or "en")
    return LASER_CODES.get(code, code)


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
