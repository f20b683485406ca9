"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.documents.splitting import sentence_spans
from tests.growth import assert_linear

ENDS = "|"  # marks the boundaries in the texts below


def split_sentences(text, language=None):
    return [text[start:end] for start, end in sentence_spans(text, language)]


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("en", "It rains.| It does not.| Why?| Because!"),
        ("en", "Dr. Who met Mr. J. R. Smith of the U.S. Navy at 5 p.m. on the 3.| Then he left."),
        ("en", 'He said: "No."| She said "Yes!" and left.'),
        ("en", "It costs 3.50 euros, e.g. at example.com.| Really..."),
        ("en", "He was 25.| She was not."),
        ("de", "Am 1. Mai kam Dr. Müller im 19. Jahrhundert usw. zurück.| Das war 1848.| Ja."),
        ("de", "„Das ist gut.“| Er ging. „Warum?“, fragte sie.".replace("ging. ", "ging.| ")),
        ("fr", "« Nous partons. »| Elle a dit : « Non ! » avant midi.| Fin."),
        ("es", "¿Quién es?| ¡Es él!| No lo sé."),
        ("ru", "Он родился в 1990 г. в Москве.| «Да».| И т.д."),
        ("cs", "Bylo 5. května.| Např. Praha."),
        ("zh", "你好。|世界！|“真的吗？”|他说。"),
        ("ja", "「行きます。」と彼は言った。|そうですか。|はい。"),
        ("ja", "「行く?」と言った。"),
        ("hi", "यह एक वाक्य है।| यह दूसरा है।"),
        ("ar", "هل هذا صحيح؟| نعم."),
        (None, "Im Kap. 3. Artikel."),  # may be an ordinal
        (None, "Vergleiche Kap. 3.| Das ist alles."),
        ("de", "Sie gewannen 3:1.| Spieler jubelten.| Er ist am 5. Mai 20.| Das ist nicht alt."),
        ("de", "1. Die Lage.| 44 v. Chr. starb er."),
        ("de", "Note A.| Aus Washington, D.C.| Sie kam um 13 h.| Petra auch."),
        ("en", "1. What is new?| It left at 5 p.m.| However, George W. Bush of the U.S. Army did."),
        ("fr", "M. Le Pen roule à 20 km/h.| Quoi ? !| Non."),
        (
            "es",
            "El suroeste de EE. UU. Donald.| Con EE. UU. y sin EE. UU.| Tenemos I. A.| Ahora no.",
        ),
        ("pt", "Se a carapuça servir, vista-a.| Tom ri."),
        ("nl", "Ik hou van u.| 's Avonds is hij in de VS.| Rosa komt."),
        ("tr", "Bildiğim o.| Macera başlar."),
        ("ru", "Это я.| Кстати, в 2018 г.| Вы знаете, в 1990 г. Иванов жил."),
        ("zh", '他说。|"我来了。"|她走了。|“好。”|"你好！"|他说。'),
        ("zh", "“不错。“|他走了。|又来了? !|好。"),
        ("hi", "डॉ. शर्मा यू.एस. गए।|क्या यह ठीक है?| वह राम है.| सीता है."),
        ("ar", "لقد مرّ 36 عامًا.| وأفاد."),
        ("ko", "봐 줘.| 커피 한 잔."),
        ("ka", "ის წავიდა.| როგორ ხარ?"),
        ("hy", "Նա գնաց:| Ինչպե՞ս ես։| Լավ."),
        ("el", "Πού πας;| Πάω.| Ο κ. Παπαδόπουλος ήρθε; όχι."),
        ("am", "ሰላም ነው።| እንዴት ነህ?| ደህና።"),
        ("km", "ខ្ញុំទៅផ្សារ។|គាត់នៅផ្ទះ។"),
        ("my", "ဈေးသွားတယ်။| သူ ရှိတယ်။"),
        ("bo", "བཀྲ་ཤིས།| ང་ཡིན།"),
        ("th", "วันนี้อากาศดี ผมไปตลาด"),  # nothing marks an end
    ],
)
def test_boundaries(language: str | None, marked: str) -> None:
    sentences = [part.strip() for part in marked.split(ENDS)]
    assert split_sentences(marked.replace(ENDS, ""), language) == sentences


@given(st.text(alphabet='ab A.!?"“”»。」1 \n', max_size=60))
def test_spans_hold_everything_but_spaces_in_order(text: str) -> None:
    spans = list(sentence_spans(text))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    ends = [0, *(end for _, end in spans)]
    assert all(a < b and a >= last for (a, b), last in zip(spans, ends, strict=False))
    assert all(text[a:b] == text[a:b].strip() for a, b in spans)


@pytest.mark.parametrize("piece", ["a. ", "1. ", "A. B. ", '。"', "? ", "; ", "e. « ", "EE. "])
def test_time_is_linear(piece: str) -> None:
    assert_linear(lambda size: split_sentences(piece * (size // len(piece))), 2_000, 16_000)
