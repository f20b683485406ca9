"""The BUCC layout on disk: which pairs and splits there are, and what is wrong with them."""

from pathlib import Path

import pytest

from encoder import load_encoder
from eval.data.bucc import bucc_pairs, bucc_splits, load_bucc
from eval.tasks.mined_splits import mine_split
from tests.eval.conftest import write_split


def test_pairs_and_splits(bucc_dir: Path) -> None:
    (bucc_dir / "notes-en").mkdir()
    assert list(bucc_pairs(bucc_dir)) == ["de-en", "fr-en"]
    assert list(bucc_splits(bucc_dir, "de-en")) == ["sample", "training"]
    assert list(bucc_splits(bucc_dir, "fr-en")) == ["dev", "test"]


def test_the_pair_folder_itself_will_do(bucc_dir: Path) -> None:
    folder = bucc_dir / "de-en"
    assert list(bucc_pairs(folder)) == ["de-en"]
    assert list(bucc_splits(folder, "de-en")) == ["sample", "training"]
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


def test_a_language_may_have_a_script(tmp_path: Path) -> None:
    files = {"source": "d1\tja\n", "target": "e1\tyes\n", "gold": "d1\te1\n"}
    write_split(tmp_path / "de-Latn-en", "de-Latn-en", "s", **files)
    assert list(bucc_pairs(tmp_path)) == ["de-Latn-en"]
    mined = mine_split(load_bucc(tmp_path, "de-Latn-en", "s"), encoder=load_encoder("mini"))
    assert tuple(mined.mined.languages) == ("de-Latn", "en")


def test_a_split_without_gold_is_not_offered(bucc_dir: Path) -> None:
    write_split(bucc_dir / "de-en", "de-en", "test", source="1\ta\n", target="2\tb\n", gold=None)
    assert list(bucc_splits(bucc_dir, "de-en")) == ["sample", "training"]
    with pytest.raises(ValueError, match="for the split 'test'; choose one of sample"):
        load_bucc(bucc_dir, "de-en", "test")


def test_missing_split_and_pair_name_those_that_exist(bucc_dir: Path) -> None:
    with pytest.raises(
        ValueError, match=r"de-en lacks .* for the split 'dev'; choose one of sample, training$"
    ):
        load_bucc(bucc_dir, "de-en", "dev")
    with pytest.raises(
        ValueError, match=r"no language pair 'xx-en'; choose one of de-en, fr-en with --pair$"
    ):
        load_bucc(bucc_dir, "xx-en", "dev")


def test_missing_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no BUCC data; expected xx-en/xx-en.SPLIT.xx"):
        bucc_pairs(tmp_path)
    with pytest.raises(ValueError, match="nowhere: folder not found"):
        load_bucc(tmp_path / "nowhere", "de-en", "sample")


def test_gold_ids_must_be_in_the_texts(tmp_path: Path) -> None:
    write_split(tmp_path, "de-en", "s", source="1\ta\n", target="2\tb\n", gold="1\t3\n")
    with pytest.raises(ValueError, match=r"de-en.s.gold: the target id '3' is not .*such ids: 1"):
        load_bucc(tmp_path, "de-en", "s")
