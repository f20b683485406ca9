"""Text is cleaned before it is split, and ids of sentences point into the text as it was."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miner.storage.documents.cleaning import CleanText
from miner.storage.documents.records import Document
from miner.storage.documents.sentences import clean_sentence, document_sentences
from miner.storage.documents.split import looks_like_a_document

ARABIC = ["نزل المطر طوال الليل.", "نبح الكلب في الفناء.", "نام الأطفال في البيت."]
PERSIAN = ["باران می‌بارد.", "سگ در حیاط است؟", "بچه‌ها خوابیده‌اند."]
CZECH = ["Včera sněžilo.", "Řidiči měli potíže!", "Nikdo nevyšel z domu."]
HINDI = ["वर्षा हुई।", "क्या हुआ?", "क्‍या बात है।"]


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in document_sentences(Document(name="x", text=text))]


def check_places(text: str) -> None:
    """Sentences are where their ids say, one after the other."""
    last = 0
    for sentence, start, end, _ in document_sentences(Document(name="x", text=text)):
        assert last <= start < end <= len(text)
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        cleaned = clean_sentence(text[start:end].replace("\x07", " "))  # as the document is first
        parts = "".join(cleaned.split()).replace("-", "").replace("¬", "")
        assert parts == "".join(sentence.split()).replace("-", "")
        last = end


@pytest.mark.parametrize(
    "mark",
    [
        *"\u200f\u200e\u200b\u00ad\ufeff\u2060\u202c\u061c\u2066\u2067\u2068\u2069\u202a\u202e",
        *"\u034f\u2061\u2064\u206a\u206f\u180e\ufe0f\ufe00\u3164\u115f\U000e0041\U000e0101",
        *(
            "\u200c",
            "\u200d",
            "\u200f\u200c",
            "\u2069\u200f",
            "\u202c\ufeff\u202c",
            "\ufff9",
            "\ufffc",
            "\x07",
            "\x7f",
        ),
    ],
)
@pytest.mark.parametrize("sentences", [ARABIC, PERSIAN, CZECH, HINDI])
def test_marks_after_a_stop_are_as_none(mark: str, sentences: list[str]) -> None:
    for space in (" ", "\n", f" {mark}"):
        text = f"{mark}{space}".join(sentences) + mark
        assert texts(text) == sentences
        check_places(text)
    if mark not in "\x07\x7f":  # which become spaces
        inner = " ".join(f"({sentence}{mark}){mark}" for sentence in sentences)
        assert texts(inner) == [f"({sentence})" for sentence in sentences]


def test_marks_in_texts_without_spaces() -> None:
    assert texts("雨が降った。\u200b川の水が増えた！\ufe00次の日。") == [
        "雨が降った。",
        "川の水が増えた！",
        "次の日。",
    ]


def test_what_writing_needs_is_kept() -> None:
    for text in ("می‌خواهم کتاب‌ها را.", "क्‍या श्रीलंका ශ්‍රී ලංකා।", "I ❤️ you.", "👩‍🔬 works."):
        assert texts(text) == [text]


def test_text_in_nfd_is_split_as_in_nfc() -> None:
    text = "Je to např. tady. Čápi odletěli. Τι κάνεις; Καλά είμαι. 서울에 갔다. 비가 왔다."
    expected = texts(text)
    assert len(expected) == 6
    decomposed = unicodedata.normalize("NFD", text).replace(";", "\u037e")
    assert texts(decomposed) == expected
    document = Document(name="x", text=decomposed)
    for sentence, start, end, _ in document_sentences(document):
        assert unicodedata.normalize("NFC", decomposed[start:end]) == sentence


PIECES = st.sampled_from(
    "Kin|der |e\u0301|n.| |\n|\n\n|-\n|\u00ad\n|¬\n|\u200f|\u00ad|。|雨|\r\n|\x07"
    "|\u1112\u1161\u11ab|\ufe0f|A|und |well-known |“|.".split("|")
)


@given(st.lists(PIECES, max_size=40).map("".join), st.booleans())
@example("a.\u200f b\u0301", True)
@example("Kin\x07\ufe0fKin", False)
def test_places_lead_back(text: str, is_wrapped: bool) -> None:
    check_places(text.replace("-", "").replace("¬", ""))
    clean = CleanText.from_text(text, is_wrapped=is_wrapped)
    assert unicodedata.is_normalized("NFC", clean.text)
    last = 0
    for place in range(len(clean.text)):
        start, end = clean.origin(place, place + 1)
        assert last <= start < end <= len(text)
        assert clean.text[place] in unicodedata.normalize("NFC", text[start:end]) + " -"
        last = start


WRAPPED = """\
Am nächsten Morgen lag dichter Nebel über den Wiesen, und die {}
gingen langsam den schmalen Weg zum Dorf hinunter, weil sie es so
gewohnt waren, und niemand wusste genau, warum sie das so früh an
einem solchen Tag noch taten, an dem sonst keiner aus dem Haus ging."""


def joined(word: str, text: str = WRAPPED, before: str = "") -> str:
    (*_, last) = texts(before + text.format(word.replace("|", "\n")))
    words = last.split()
    return " ".join(words[words.index("die") + 1 : words.index("gingen")])


@pytest.mark.parametrize("hyphen", ["\u00ad", "¬", "\u00ad\u200b", "\u00ad "])
def test_soft_hyphens_at_line_ends_join_words(hyphen: str) -> None:
    assert joined(f"Kin{hyphen}|der") == "Kinder"
    assert texts(f"Ein Wort, das ge{hyphen}\n  trennt ist\nZweite Zeile") == [
        "Ein Wort, das getrennt ist",
        "Zweite Zeile",
    ]
    assert texts("5 ¬\nb") == ["5 ¬", "b"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("EU-|Kommission", "EU-Kommission"),
        ("US-|amerikanischen", "US-amerikanischen"),
        ("E-|mails", "E-mails"),
        ("60-|jährigen", "60-jährigen"),
        ("deutsch-|französischen", "deutsch-französischen"),
        ("Vor- und|Nachteile", "Vor- und Nachteile"),
        ("Vor-|und Nachteile", "Vor- und Nachteile"),
        ("Ost\u2010|see", "Ost\u2010see"),
        ("Kinder –|alle", "Kinder – alle"),
    ],
)
def test_hyphens_at_line_ends_of_text_that_does_not_hyphenate(word: str, expected: str) -> None:
    assert joined(word) == expected
    check_places(WRAPPED.format(word.replace("|", "\n")))


HYPHENATED = """\
Der Sturm hatte in der Nacht die Dächer von vielen Häusern beschä-
digt, und die Bewohner standen vor den Türen und sahen in den Him-
mel, aus dem noch immer Regen fiel, der durch die Straßen floss. Al-
le fürchteten, dass er noch einmal zurückkommen würde, und die Glo-
cken der Kirche läuteten, bis es endlich Abend wurde in dem Tal.

"""


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Kin-|der", "Kinder"),
        ("EU-|Kommission", "EU-Kommission"),
        ("Vor-|und Nachteile", "Vor- und Nachteile"),
        ("60-|jährigen", "60-jährigen"),
    ],
)
def test_hyphens_at_line_ends_of_text_that_hyphenates(word: str, expected: str) -> None:
    assert joined(word, before=HYPHENATED) == expected
    check_places(HYPHENATED + WRAPPED.format(word.replace("|", "\n")))


@pytest.mark.parametrize(
    ("elsewhere", "word", "expected"),
    [
        ("Viele Kinder waren da. ", "Kin-|der", "Kinder"),
        ("Ein gut-bürgerliches Haus. ", "gut-|bürgerliches", "gut-bürgerliches"),
    ],
)
def test_what_the_text_writes_elsewhere_decides(elsewhere: str, word: str, expected: str) -> None:
    assert joined(word, before=elsewhere) == expected
    assert joined(word, before=HYPHENATED + elsewhere) == expected


def test_hyphens_end_lines_that_are_not_wrapped() -> None:
    assert texts("Einkauf-\nliste\nBrot") == ["Einkauf-", "liste", "Brot"]


def test_marks_do_not_hide_that_a_text_is_wrapped(tmp_path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(" ".join(f"{one}\u200f" for one in ARABIC) + "\n", encoding="utf-8")
    assert looks_like_a_document(path)
    path.write_text("\n".join(f"{one}\u200f" for one in ARABIC * 9), encoding="utf-8")
    assert not looks_like_a_document(path)
