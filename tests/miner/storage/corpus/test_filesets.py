"""A folder as a corpus: which of its files are read, and what is said of the others."""

import os
from pathlib import Path

import pytest

from miner.storage.corpus.filesets import corpus_files, describe_folder, folder_files
from miner.storage.corpus.records import CorpusError
from miner.storage.documents.split import open_side


def names(folder: Path) -> list[str]:
    return [name for name, _ in folder_files(folder)[0]]


def write(folder: Path, *files: str) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "b.txt", "a.txt", "readme.de", "README.md", "LICENSE", ".DS_Store")
    write(tmp_path, "old/c.txt", "old/README.md", ".git/HEAD")
    return tmp_path


def test_what_is_read_and_what_is_left_out(folder: Path) -> None:
    files, others = folder_files(folder)
    assert [name for name, _ in files] == ["a.txt", "b.txt", "old/c.txt", "readme.de"]
    assert others == [".DS_Store", ".git/", "LICENSE", "README.md", "old/README.md"]
    assert sorted(corpus_files(folder)) == files
    line = describe_folder(folder)
    assert "4 files (a.txt, b.txt, old/c.txt, readme.de)" in line
    assert "5 entries (.DS_Store, .git/, LICENSE, README.md, old/README.md)" in line


@pytest.mark.parametrize(
    "beside", [(), ("zh/index.txt",), ("zh/README.md",), ("zh/.hidden/x.txt", "zh/api/x.txt")]
)
def test_folders_are_read_at_any_depth_whatever_is_beside_them(
    tmp_path: Path, beside: tuple[str, ...]
) -> None:
    write(tmp_path, "zh/guide/a.txt", "zh/guide/deep/er/b.txt", *beside)
    found = names(tmp_path / "zh")
    assert {"guide/a.txt", "guide/deep/er/b.txt"} <= {*found}
    reader = open_side(tmp_path / "zh", "auto")
    texts = [text for records in reader for text in records.texts]
    assert texts == [f"text of zh/{name}" for name in sorted(found)]
    assert reader.names == sorted(found)


def test_the_order_is_that_of_names_not_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *(f"{one}/{other}.txt" for one in "bäaB" for other in ("10", "9", "é")))
    found = names(tmp_path)
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(sorted(listed(self), reverse=True)))
    assert names(tmp_path) == found
    assert found[:2] == ["B/10.txt", "B/9.txt"]
    assert found[-1] == "ä/é.txt"


def test_links_are_followed_and_do_not_lead_back(tmp_path: Path) -> None:
    write(tmp_path, "corpus/a/x.txt", "elsewhere/y.txt")
    corpus = tmp_path / "corpus"
    (corpus / "a" / "back").symlink_to(corpus)
    (corpus / "itself").symlink_to(corpus / "itself")
    (corpus / "other").symlink_to(tmp_path / "elsewhere")
    (corpus / "one.txt").symlink_to(tmp_path / "elsewhere" / "y.txt")
    os.mkfifo(corpus / "pipe.txt")
    files, others = folder_files(corpus)
    assert [name for name, _ in files] == ["a/x.txt", "one.txt", "other/y.txt"]
    assert others == ["a/back/", "itself", "pipe.txt"]


def test_names_that_are_no_text_can_be_written(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("x\n", encoding="utf-8")
    assert names(tmp_path) == ["caf\\udce9.txt"]


@pytest.mark.parametrize(("method", "name"), [("iterdir", "a"), ("is_dir", "x.txt")])
def test_a_folder_that_may_not_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, name: str
) -> None:
    write(tmp_path, "a/x.txt")
    allowed = getattr(Path, method)

    def refused(path: Path) -> object:  # chmod does not keep root out
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path)

    monkeypatch.setattr(Path, method, refused)
    with pytest.raises(CorpusError, match="a: cannot be listed; check its permissions"):
        names(tmp_path)


def test_many_files_are_not_all_named(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"{number:04}.txt").touch()
    line = describe_folder(tmp_path)
    assert (
        line
        == f"{tmp_path}: reads 1,200 files (0000.txt, 0001.txt, 0002.txt, 0003.txt, 0004.txt, ...)"
        " as sentences"
    )


@pytest.mark.parametrize("others", [(), ("README.md", "guide/.hidden")])
def test_a_folder_without_a_corpus(tmp_path: Path, others: tuple[str, ...]) -> None:
    write(tmp_path, *others)
    (tmp_path / "empty").mkdir()
    for refuse in (corpus_files, describe_folder):
        with pytest.raises(CorpusError) as error:
            refuse(tmp_path)
        only = f", only 2 entries ({', '.join(others)})" if others else ""
        expected = f"{tmp_path}: folder contains no corpus files{only}; put text, "
        assert str(error.value).startswith(expected)
