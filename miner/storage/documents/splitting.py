"""Paragraphs to sentences, by punctuation and what stands around it.

Of the libraries that were measured none found the boundaries of news in twelve languages as well as
these rules do (docs/documents.md): most know one script, or take what lies between two quotation
marks, which often are not a pair, for one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Every mark that touches a full stop closes something; the languages differ in which.
_CLOSERS = "\"'“”„‘’«»‹›)\\]」』》〉）］】"
_OPENERS = "\"'“”„‟‘‚‛«»‹›(\\[「『《〈（［【¿¡*•—–-"

_STOPS = ".!?…‽؟۔।॥։።။។༎"

# Chinese and Japanese put no space after a sentence, and always other marks before and behind.
_WIDE = "。！？｡．"
_WIDE_CLOSERS = "\"'”’)」』》〉）］】"
_WIDE_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Hiragana, Katakana, Han

# Quantifiers are possessive, and marks in a row are met once: the time is linear in any text.
_END = re.compile(
    rf"""
    (?P<stop>
        (?<![{_STOPS}]) [{_STOPS}]++ (?:[{_CLOSERS}{_WIDE}]|\s»(?=\s|$))*+ (?=\s)
      | [{_WIDE}] [{_STOPS}{_WIDE}]*+ [{_WIDE_CLOSERS}]*+
      | (?<=[{_WIDE_LETTER}{_WIDE_CLOSERS}]) [!?]++ [{_WIDE_CLOSERS}]*+
        (?=[{_WIDE_LETTER}「『“])
    )
    (?=[\s{_OPENERS}]*+ (?P<next>.?))
    """,
    re.VERBOSE,
)
_CONTINUES = tuple(",;:，、；：")
# What precedes a full stop: letters with dots within, or a number, at the end of the text so far.
_WORD = re.compile(r"(?:(?<!\w)(?:[^\W\d_]+[.'’])*[^\W\d_]+|\d[\d.,]*)$")
_LOOK_BACK = 24  # characters; no abbreviation is longer

# A number and a full stop is an ordinal: "am 1. Mai". So are Roman numerals.
_ORDINAL_LANGUAGES = frozenset(
    "cs da de et eu fi fo hr hu is lb lt lv nb nn no pl sk sl sr sq tr bs hsb dsb az kk".split()
)
_ORDINAL = re.compile(r"\d{1,2}|[IVX]+")

# Words whose full stop ends no sentence where a name, a noun or a number may follow.
_ABBREVIATIONS = frozenset(
    """
    adm approx ave bros brig capt cf cmdr co col corp cpl dept dr drs esp gen gov hon inc jr lt
    ltd maj messrs mlle mm mme mr mrs ms mt mtro pres prof rep reps rev sen sens sgt sr st ste
    ster vs viz allg anm bes bsp bzgl bzw ca dgl dipl dt ebd eigtl etc evtl ggf hg hl hrsg ing
    inkl insb jh jhd kath lic med mio mrd o.ä phil rer röm sog str tel u.a usw v.a verh vgl z.b
    zzgl zt ztr av boul éd env mgr pl tél tome admón atte avda bco cía dcha depto dña dra dras
    excmo fdo gral ilmo izq lda ldo máx mín pto sra sras srta srs srto ud uds vda avv dott
    dott.ssa ecc geom prof.ssa rag sig sigg sig.ra sig.na sigra exma exmo fl ltda bv dhr evt hr
    jl jhr jkvr mevr mw nl o.a tav vnl zgn zog akad atd bc čp čís doc hod judr kč kpt mj mld
    mudr např nám npor obr odd odst př příp r resp rtm sb sv tj tis tzn tzv ul vyd zkr dyr godz
    inż jw lek mec mln np nt prok pt płk ryc sp św tyg tys tzw ub ur wg wlk woj ww zob адм вв гл
    гос др ед кв корп лит млн млрд муж напр обл оз пер пл пр просп проф св см соч ст стр сущ тов
    трлн тт тыс ул устар bkz cad doç dz gör krş mah müh ör örn öğr sok vb vd yd yrd yy kl m.fl
    m.m bl.a t.ex dvs osv jfr s.k s.a.s obs
    """.split()
)
# The same where a number follows, and words of their own, or likely ends, elsewhere.
_BEFORE_NUMBERS = frozenset(
    """
    no nos op pp p vol vols fig figs art kap tab rys ryc pág págs núm nr nº abb abs abschn bd
    bde chap pag pagg séc ch sec рис ст г
    """.split()
)


def sentence_spans(text: str, language: str | None = None) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a paragraph begin and end, without the space around them.

    Args:
        text: the paragraph; line ends within it count as spaces.
        language: ISO 639-1; decides whether a number and a full stop may be an ordinal. Where it
            is not known they may.
    """
    start = 0
    for match in _END.finditer(text):
        if _is_end(text, match, language):
            yield from _stripped(text, start, match.end("stop"))
            start = match.end("stop")
    yield from _stripped(text, start, len(text))


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Return the sentences of a paragraph; see ``sentence_spans``."""
    return [text[start:end] for start, end in sentence_spans(text, language)]


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    first = start + len(part) - len(part.lstrip())
    last = start + len(part.rstrip())
    if first < last:
        yield first, last


def _is_end(text: str, match: re.Match[str], language: str | None) -> bool:
    following = match["next"]
    if following.islower() or following in _CONTINUES:
        return False
    if match["stop"][-1] in _WIDE_CLOSERS and following == "と":  # Japanese: "...", he said
        return False
    if match["stop"][0] != "." or match["stop"].startswith(".."):
        return True
    before = _WORD.search(text, max(0, match.start() - _LOOK_BACK), match.start())
    return before is None or not _is_abbreviated(before[0], following, language)


def _is_abbreviated(word: str, following: str, language: str | None) -> bool:
    if _ORDINAL.fullmatch(word) and (language is None or language in _ORDINAL_LANGUAGES):
        return True
    if all(len(part) == 1 and part.isalpha() for part in word.split(".")):
        return True
    lowered = word.lower()
    return lowered in _ABBREVIATIONS or (following.isdigit() and lowered in _BEFORE_NUMBERS)
