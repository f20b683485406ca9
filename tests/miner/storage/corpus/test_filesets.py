"""A folder as a corpus: which of its files are read, and what is said of the others."""

from pathlib import Path

import pytest

from miner.storage.corpus.filesets import corpus_files, describe_folder, folder_files
from miner.storage.corpus.records import CorpusError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "readme.de", "README.md", "LICENSE", ".DS_Store"):
        (tmp_path / name).write_text(f"text of {name}\n", encoding="utf-8")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "c.txt").write_text("not read\n", encoding="utf-8")
    return tmp_path


def test_what_is_read_and_what_is_left_out(folder: Path) -> None:
    taken, left_out = folder_files(folder)
    assert [path.name for path in taken] == ["a.txt", "b.txt", "readme.de"]
    assert [path.name for path in left_out] == [".DS_Store", "LICENSE", "README.md", "old"]
    assert sorted(corpus_files(folder)) == taken
    line = describe_folder(folder)
    assert "3 (a.txt, b.txt, readme.de)" in line
    assert "4 (.DS_Store, LICENSE, README.md, old/)" in line


def test_many_files_are_not_all_named(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"{number:04}.txt").touch()
    line = describe_folder(tmp_path)
    assert (
        line == f"{tmp_path}: reads 1,200 (0000.txt, 0001.txt, 0002.txt, 0003.txt, 0004.txt, ...)"
        " as sentences"
    )


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    with pytest.raises(CorpusError, match="no file of a corpus"):
        corpus_files(tmp_path)
