"""LASER's changes to a line of text before it is split into subwords.

They are those of the Moses project's Perl scripts, by sacremoses, whose character classes and
languages of a rule differ in places and are set right here. tests/golden/moses has the scripts'
output for twelve languages.
"""

from collections.abc import Callable

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from miner.language_codes import base_language

Step = Callable[[str], str]

_NON_PRINTING = regex.compile(r"\p{C}")
# sacremoses has the rule on quotation marks and commas for these alone; Perl, for all but two.
_ITS_OWN_QUOTES = ("en", "de", "es", "fr")
_NO_QUOTES = ("cs", "cz")
_SPLIT_LEFT = ("fr", "it", "ga", "ca")  # l' amour
_GLOTTALS = ("so", "tdt")
# The codes that LASER takes for another one.
SAME_AS = {"cmn": "zh", "wuu": "zh", "yue": "zh", "jpn": "ja"}


def remove_non_printing(line: str) -> str:
    """Do ``remove-non-printing-char.perl``: spaces for characters of the Unicode classes C*."""
    return _NON_PRINTING.sub(" ", line)


def normalize_punctuation(language: str) -> Step:
    """Return ``normalize-punctuation.perl -l LANGUAGE``."""
    ours = MosesPunctNormalizer(language, perl_parity=True)
    rules = ours.substitutions
    if language not in (*_ITS_OWN_QUOTES, *_NO_QUOTES):
        rules = [*rules[:-1], *ours.DE_ES_FR_QUOTATION_FOLLOWED_BY_COMMA, rules[-1]]
    compiled = [(regex.compile(pattern), replacement) for pattern, replacement in rules]

    def normalize(line: str) -> str:
        line += "\n"  # Perl keeps it, and one rule asks for a character after a quotation mark
        for pattern, replacement in compiled:
            line = pattern.sub(replacement, line)
        return line.removesuffix("\n")

    return normalize


class PerlTokenizer(MosesTokenizer):
    """``tokenizer.perl -no-escape -l LANGUAGE``: sacremoses' with Perl's character classes."""

    COMMA_SEPARATE_1 = regex.compile(r"(\P{N}),"), r"\1 , "
    COMMA_SEPARATE_2 = regex.compile(r",(\P{N})"), r" , \1"
    COMMA_SEPARATE_3 = regex.compile(r"(\p{N}),$"), r"\1 ,"
    ENGLISH_SPECIFIC_APOSTROPHE = [  # noqa: RUF012  # as sacremoses has them
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
        # A character that may stand inside a word, but only before a lower-case letter.
        inner = {"fi": ":", "sv": ":", "ca": "·"}.get(language, "")
        alone = rf"|{inner}(?=$|\P{{Ll}})" if inner else ""
        pattern = rf"([^\p{{Alnum}}\s.'`,\-{inner}]{alone})"
        self.PAD_NOT_ISALNUM = (regex.compile(pattern), r" \1 ")
        if language in _SPLIT_LEFT:
            self.lang = "fr"  # the apostrophe's rules alone depend on it from here on
        elif language in _GLOTTALS:
            self.lang, self.FR_IT_SPECIFIC_APOSTROPHE = "fr", self.FR_IT_SPECIFIC_APOSTROPHE[:3]

    def islower(self, text: str) -> bool:
        """Return whether a character is lower case, as Perl knows it."""
        return bool(self._LOWER.match(text))

    def isanyalpha(self, text: str) -> bool:
        """Return whether there is a letter, as Perl knows it."""
        return bool(self._ALPHA.search(text))

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        """Split full stops from words; from the last one always, as it ends a sentence."""
        return super().handles_nonbreaking_prefixes(self._LAST_STOP.sub(r"\1 .", text))

    def __call__(self, line: str) -> str:
        """Return the tokens of the line, between single spaces."""
        return str(self.tokenize(line, return_str=True, escape=False))


def normalizing(language: str | None) -> Step:
    """Return steps for LASER2 and LASER3: characters and punctuation made regular, lower case.

    ``language`` is an ISO 639 code as the Moses scripts take it; None does what ``en`` does.
    """
    normalize = normalize_punctuation(_code(language))
    return lambda line: normalize(remove_non_printing(line)).lower()


def tokenizing(language: str | None) -> Step:
    """Return steps for LASER1: regular characters and punctuation, split words, lower case.

    A ModuleNotFoundError says which package Chinese, Japanese or Greek need.
    """
    code = _code(language)
    normalize, words = normalize_punctuation(code), PerlTokenizer(code)
    special: Step = {"zh": _chinese, "ja": _japanese, "el": _greek}.get(code, lambda: str)()
    return lambda line: special(words(normalize(remove_non_printing(line)))).lower()


def _code(language: str | None) -> str:
    code = base_language(language or "en")
    return SAME_AS.get(code, code)


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
