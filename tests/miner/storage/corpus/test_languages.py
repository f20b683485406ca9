"""Corpora by language: the names of files, and the pairs that a list names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from miner.language_codes import base_language
from miner.storage.artefacts import Draft
from miner.storage.corpus.filesets import language_pairs, languages_of, split_languages
from miner.storage.corpus.records import CorpusError


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("de", "de"),
        ("de.txt", "de"),
        ("de.txt.gz", "de"),
        ("de.news.txt", "de"),
        ("news.de", "de"),
        ("news.de.zst", "de"),
        ("new.de", "de"),
        ("pt-BR.jsonl.gz", "pt-BR"),
        ("zh_Hant", "zh_Hant"),
        ("ceb.txt", "ceb"),
        ("tatoeba.deu-eng.deu", "deu"),
        ("part-1.parquet", None),
        ("out", None),
        ("run", None),
        ("notes.txt", None),
        (".de", None),
        ("LICENSE", None),
        ("DE.txt", "DE"),
        ("pt_br.txt", "pt_br"),
        ("sr-Latn-RS.txt", "sr-Latn-RS"),
        ("de-news.txt", None),
        ("en-old.txt", None),
    ],
)
def test_the_language_in_a_name(tmp_path: Path, name: str, language: str | None) -> None:
    (tmp_path / name).touch()
    found, left_out = languages_of(tmp_path)
    assert found == ({} if language is None else {language: tmp_path / name})
    assert left_out == ([tmp_path / name] if language is None else [])


def test_folders_are_corpora(tmp_path: Path) -> None:
    for name in ("de", "news.en", "txt"):
        (tmp_path / name).mkdir()
    found, left_out = languages_of(tmp_path)
    assert found == {"de": tmp_path / "de", "en": tmp_path / "news.en"}
    assert left_out == [tmp_path / "txt"]


def test_a_name_of_two_languages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "de.en").touch()
    with pytest.raises(
        CorpusError, match=r"de\.en: name has the codes of two languages, de and en; keep one"
    ):
        languages_of(tmp_path)


def test_pairs() -> None:
    languages = ["pt-BR", "en", "de"]
    assert language_pairs(languages, "all") == [("de", "en"), ("de", "pt-BR"), ("en", "pt-BR")]
    assert language_pairs(languages, "pt-BR-en,en-de") == [("pt-BR", "en"), ("en", "de")]
    assert base_language("pt-BR") == "pt"
    for wrong in ("de", "de-fr", "", "de-en,", "en-de,de-en"):
        with pytest.raises(ValueError, match="--pairs"):
            language_pairs(languages, wrong)


def test_columns_of_parquet_that_are_no_records_are_refused(tmp_path: Path) -> None:
    table = pa.table({"id": [b"1"], "text": ["Ein Satz."], "language": ["de"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"column 'id' is binary, expected string or integer"):
        split_languages(tmp_path / "a.parquet", Draft(tmp_path))
