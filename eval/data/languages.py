"""Codes of languages: ISO 639-3, which Tatoeba's files are named by, and ISO 639-1."""

from __future__ import annotations

import re

# Where the longer code is of one member of a macrolanguage, it is the one that Tatoeba has.
_CODES = """
af afr am amh ar ara az aze be bel bg bul bn ben br bre bs bos ca cat ch cha cs ces cy cym da dan
de deu el ell en eng eo epo es spa et est eu eus fa pes fi fin fo fao fr fra fy fry ga gle gd gla
gl glg he heb hi hin hr hrv hu hun hy hye ia ina id ind ie ile io ido is isl it ita ja jpn jv jav
ka kat kk kaz km khm ko kor ku kur kw cor la lat lt lit lv lvs mk mkd ml mal mn mon mr mar ms zsm
nl nld nn nno no nob nb nob oc oci pl pol pt por ro ron ru rus sk slk sl slv sq sqi sr srp sv swe
sw swh ta tam te tel th tha tk tuk tl tgl tr tur tt tat ug uig uk ukr ur urd uz uzb vi vie xh xho
yi yid zh cmn
""".split()
_ISO_639_3 = dict(zip(_CODES[::2], _CODES[1::2], strict=True))
_ISO_639_1 = {longer: shorter for shorter, longer in _ISO_639_3.items()}


def iso_639_3(code: str) -> str:
    """Return the ISO 639-3 code of a language given by that or by its ISO 639-1 code."""
    return _ISO_639_3.get(code, code)


def iso_639_1(code: str) -> str:
    """Return the ISO 639-1 code of a language where it has one, else the code itself."""
    return _ISO_639_1.get(code, code)


def code_of(name: str) -> str:
    """Return the code of a language that data name with a script or region: ``deu_Latn``, ``de``.

    It is that of ISO 639-1 where there is one, which encoders know.
    """
    return iso_639_1(re.split("[_-]", name)[0])
