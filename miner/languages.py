"""Detects the language of a corpus from a sample of its sentences."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

SAMPLED = 200  # sentences
FEW = 20  # sentences, of which some are too short to be recognised one by one
MIN_SHARE = 0.5  # of the sample that a language must have to be the corpus's

# ISO 639-1, and those of ISO 639-3 and 639-2 that have a code there, an encoder of LASER's or a set
# in Tatoeba's (not "run", which has "rn" and is what people call a folder).
CODES = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht "
    "hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky "
    "la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny "
    "oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr "
    "ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi "
    "yo za zh zu "
    "aar abk ace acm acq aeb afr aka alb als amh ang apc ara arb arg arm arq ars ary arz asm "
    "ast ava ave awa aym ayr azb aze azj bak bam ban baq bel bem ben ber bho bis bjn bod bos "
    "bre bug bul bur cat cbk ceb ces cha che chi chu chv cjk ckb cmn cor cos cre crh csb cym "
    "cze dan deu dik din diq div dsb dtp dut dyu dzo ell eng epo est eus ewe fao fas fij fin "
    "fon fra fre fry ful fur fuv gaz geo ger gla gle glg glv gre grn gsw guj hat hau hbs heb "
    "her hin hmo hne hrv hsb hun hye ibo ice ido iii iku ile ilo ina ind ipk isl ita jav jpn "
    "kab kac kal kam kan kas kat kau kaz kbp kea khk khm kik kin kir kmb kmr knc kom kon kor "
    "kua kur lao lat lav lfn lij lim lin lit lmo ltg ltz lua lub lug luo lus lvs mac mag mah "
    "mai mal mao mar max may mhr min mkd mlg mlt mni mon mos mri msa mya nau nav nbl nde ndo "
    "nds nep nld nno nob nor nov npi nso nus nya oci oji ori orm orv ory oss pag pam pan pap "
    "pbt per pes pli plt pms pol por prs pus que quy roh ron rum rus sag san sat scn shn sin "
    "slk slo slv sme smo sna snd som sot spa sqi srd srp ssw sun swa swe swg swh szl tah tam "
    "taq tat tel tgk tgl tha tib tir ton tpi tsn tso tuk tum tur twi tzl tzm uig ukr umb urd "
    "uzb uzn vec ven vie vol war wel wln wol wuu xho ydd yid yor yue zha zho zsm zul".split()
)


def language_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each language (ISO 639-1) in an even sample, the largest first.

    Fewer than ``FEW`` texts are taken as one, whose language comes with its probability.
    """
    step = max(1, len(texts) // SAMPLED)
    sample = texts[::step][:SAMPLED]
    if not sample:
        return {}
    if len(sample) < FEW:
        code, probability = identifier().classify(" ".join(sample))
        return {str(code): float(probability)}
    votes = Counter(map(language_of, sample))
    return {code: count / len(sample) for code, count in votes.most_common()}


def language_of(text: str) -> str:
    """Return the language that a text is most likely in (ISO 639-1)."""
    return str(identifier().classify(text)[0])


def main_language(shares: Mapping[str, float]) -> str | None:
    """Return the language that most sentences are in, if there is one."""
    return next((code for code, share in shares.items() if share >= MIN_SHARE), None)


def seen_language(texts: Sequence[str]) -> str | None:
    """Return the language that texts are in by a sample of them; None if it is not recognised."""
    return main_language(language_shares(texts))


_loading = threading.Lock()


def identifier() -> Any:  # noqa: ANN401 - the library has no types
    """Return py3langid's identifier; the first call loads it for all threads (half a second)."""
    with _loading:
        return _loaded()


@cache
def _loaded() -> Any:  # noqa: ANN401
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
