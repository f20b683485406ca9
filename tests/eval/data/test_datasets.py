"""The layouts on disk: which pairs, splits and languages there are, and what is wrong with them."""

from pathlib import Path

import pytest

from eval.data.datasets import (
    ISO_639_3,
    bucc_pairs,
    bucc_splits,
    load_bucc,
    load_tatoeba,
    tatoeba_languages,
)
from tests.eval.conftest import write_split


def test_pairs_and_splits(bucc_dir: Path) -> None:
    (bucc_dir / "notes-en").mkdir()
    assert bucc_pairs(bucc_dir) == ["de-en", "fr-en"]
    assert bucc_splits(bucc_dir, "de-en") == ["sample", "training"]
    assert bucc_splits(bucc_dir, "fr-en") == ["dev", "test"]


def test_the_pair_folder_itself_will_do(bucc_dir: Path) -> None:
    folder = bucc_dir / "de-en"
    assert bucc_pairs(folder) == ["de-en"]
    assert bucc_splits(folder, "de-en") == ["sample", "training"]
    here, there = (load_bucc(root, "de-en", "sample") for root in (folder, bucc_dir))
    assert (here.gold, here.source, here.target) == (there.gold, there.source, there.target)


def test_load(tmp_path: Path) -> None:
    write_split(
        tmp_path / "de-en", "de-en", "s", source="d1\tja\nd2\tzwei\n", target="e1\tyes\n",
        gold="d1\te1\n",
    )  # fmt: skip
    data = load_bucc(tmp_path, "de-en", "s")
    assert (data.pair, data.split, data.gold) == ("de-en", "s", frozenset({("d1", "e1")}))
    assert (data.source.ids, data.source.texts) == (["d1", "d2"], ["ja", "zwei"])
    assert (data.target.ids, data.target.texts) == (["e1"], ["yes"])
    assert data.files.gold == tmp_path / "de-en" / "de-en.s.gold"


def test_a_split_without_gold_is_not_offered(bucc_dir: Path) -> None:
    write_split(bucc_dir / "de-en", "de-en", "test", source="1\ta\n", target="2\tb\n", gold=None)
    assert bucc_splits(bucc_dir, "de-en") == ["sample", "training"]
    with pytest.raises(ValueError, match="no split 'test' with both texts and gold; it has sample"):
        load_bucc(bucc_dir, "de-en", "test")


def test_missing_split_and_pair_name_those_that_exist(bucc_dir: Path) -> None:
    with pytest.raises(ValueError, match=r"de-en has no split 'dev' .* it has sample, training$"):
        load_bucc(bucc_dir, "de-en", "dev")
    with pytest.raises(ValueError, match=r"no pair 'xx-en'; it has de-en, fr-en$"):
        load_bucc(bucc_dir, "xx-en", "dev")


def test_missing_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no BUCC data; expected xx-en/xx-en.SPLIT.xx"):
        bucc_pairs(tmp_path)
    with pytest.raises(ValueError, match="nowhere: not a directory"):
        load_bucc(tmp_path / "nowhere", "de-en", "sample")
    with pytest.raises(ValueError, match=r"no Tatoeba data; expected tatoeba.xxx-eng.xxx"):
        tatoeba_languages(tmp_path)
    with pytest.raises(ValueError, match="nowhere: not a directory"):
        load_tatoeba(tmp_path / "nowhere", "de")


def test_gold_ids_must_be_in_the_texts(tmp_path: Path) -> None:
    write_split(tmp_path, "de-en", "s", source="1\ta\n", target="2\tb\n", gold="1\t3\n")
    with pytest.raises(ValueError, match=r"de-en.s.gold: 1 of its target ids .* first '3'"):
        load_bucc(tmp_path, "de-en", "s")


@pytest.fixture
def tatoeba_dir(tmp_path: Path) -> Path:
    for code, foreign, english in (
        ("cmn", "一\u2028\n二\n", "one\ntwo\n"),
        ("deu", "\ufeffeins\r\nzwei\r\n", "one\ntwo"),
        ("ber", "yan\n", "one\ntwo\n"),
        ("nds", "", ""),
    ):
        stem = tmp_path / f"tatoeba.{code}-eng"
        stem.with_name(f"{stem.name}.{code}").write_bytes(foreign.encode())
        stem.with_name(f"{stem.name}.eng").write_bytes(english.encode())
    return tmp_path


def test_tatoeba(tatoeba_dir: Path) -> None:
    assert tatoeba_languages(tatoeba_dir) == ["ber", "cmn", "deu", "nds"]
    assert load_tatoeba(tatoeba_dir, "deu") == (["eins", "zwei"], ["one", "two"])
    assert load_tatoeba(tatoeba_dir, "de") == load_tatoeba(tatoeba_dir, "deu")
    assert load_tatoeba(tatoeba_dir, "zh") == (["一\u2028", "二"], ["one", "two"])


def test_two_letter_codes() -> None:
    assert sorted(ISO_639_3) == "cs de en es fr it ja nl pt ru tr zh".split()


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("ber", "tatoeba.ber-eng.ber has 1 lines but its English side has 2"),
        ("nds", "tatoeba.nds-eng.nds: empty"),
        ("fr", "no language 'fr'; it has ber, cmn, deu, nds"),
    ],
)
def test_bad_tatoeba(tatoeba_dir: Path, language: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_tatoeba(tatoeba_dir, language)
