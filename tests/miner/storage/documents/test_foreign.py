"""Text in another language than its corpus: rejected where it is sure, and nothing else is."""

from __future__ import annotations

import pytest

from miner.languages import known_label
from miner.storage.corpus.records import Rejection
from miner.storage.documents.foreign import foreign_sentences
from miner.storage.documents.records import Document
from miner.storage.documents.sentences import sentence_tables

GERMAN = "Das Paket wird bei der nächsten Aktualisierung entfernt, wenn es niemand mehr braucht."
ENGLISH = "The package will be removed by the next upgrade when nobody needs it any longer."
FRENCH = "Le paquet sera supprimé à la prochaine mise à jour, quand plus personne n'en aura besoin."
NORWEGIAN = "Pakken blir fjernet ved neste oppdatering når ingen lenger har bruk for den."
CROATIAN = "Paket će biti uklonjen pri sljedećoj nadogradnji kad više nikome ne bude potreban."


def kept(paragraphs: list[str], language: str) -> list[str]:
    label = known_label(language)
    assert label
    table = sentence_tables([(0, Document(name="a", text="\n\n".join(paragraphs)))], only=label)
    rows = [row for part in table for row in part.to_pylist()]
    assert {row["why"] for row in rows} <= {None, Rejection.FOREIGN}
    return [row["text"] for row in rows if row["why"] is None]


@pytest.mark.parametrize(
    ("paragraphs", "language", "expected"),
    [
        ([GERMAN, ENGLISH, GERMAN], "de", [GERMAN, GERMAN]),
        ([GERMAN, FRENCH, ENGLISH], "de", [GERMAN]),
        ([FRENCH, ENGLISH], "fr", [FRENCH]),
        # the whole document, with its headings
        (["Overview", ENGLISH, "Removal", ENGLISH], "de", []),
        # what is short or doubtful stays: names, numbers, headings, code in text
        (
            [GERMAN, "Overview", "Johann Sebastian Bach", "1,234.50", "Debian GNU/Linux 11", "OK"],
            "de",
            [GERMAN, "Overview", "Johann Sebastian Bach", "1,234.50", "Debian GNU/Linux 11", "OK"],
        ),
        (
            [GERMAN, "Mozilla Public License Version 2.0, GNU General Public License"],
            "de",
            [GERMAN, "Mozilla Public License Version 2.0, GNU General Public License"],
        ),
        # a sentence of the language in a paragraph of another
        ([GERMAN, f"{ENGLISH} {ENGLISH} {GERMAN} {ENGLISH}"], "de", [GERMAN, GERMAN]),
        # related languages
        ([NORWEGIAN, NORWEGIAN], "da", [NORWEGIAN, NORWEGIAN]),
        ([NORWEGIAN], "nb", [NORWEGIAN]),
        ([CROATIAN], "bs", [CROATIAN]),
        ([CROATIAN], "sr", [CROATIAN]),
        # scripts
        (["これは日本語の段落です。次の更新で削除されます。", ENGLISH], "ja", None),
        (["Пакет будет удалён при следующем обновлении системы.", ENGLISH], "ru", None),
    ],
)
def test_paragraphs(paragraphs: list[str], language: str, expected: list[str] | None) -> None:
    found = kept(paragraphs, language)
    if expected is None:
        assert found
        assert not any(ENGLISH in text for text in found)
    else:
        assert found == expected


def test_languages_that_are_not_known() -> None:
    assert known_label("nb") == "no"
    assert known_label("gsw") is None
    assert known_label("xx") is None


def test_no_sentences() -> None:
    assert foreign_sentences([], [], "de") == []
