"""Paths of other file systems: taken apart, joined, and what is done with the files there."""

import pickle
from io import BufferedReader
from pathlib import Path

import pytest

from miner.storage.atomic import atomic_file, check_writable
from miner.storage.corpus.filesets import CorpusReader, corpus_files
from miner.storage.places import (
    PlaceError,
    RemotePath,
    _RemoteFile,
    lies_in,
    place,
    remove_tree,
    same_file,
    tree_files,
)
from tests.s3 import S3


@pytest.mark.parametrize("text", ["corpus.txt", "/data/a b.txt", "a:b", "c://x", "s3:/x/y"])
def test_paths_are_paths(text: str) -> None:
    assert place(text) == Path(text)


@pytest.mark.parametrize(
    ("uri", "path"), [("file:///tmp/a%20b", "/tmp/a b"), ("FILE:///x?y=1", "/x")]
)
def test_uris_of_local_files_are_paths(uri: str, path: str) -> None:
    assert place(uri) == Path(path)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://bucket/a/b.txt", "s3://bucket/a/b.txt"),
        ("s3://bucket/a//b/?region=x", "s3://bucket/a/b"),
        ("s3://key:secret@bucket/a%20b?scheme=http", "s3://bucket/a b"),
        ("hdfs://host:8020/data", "hdfs://host:8020/data"),
        ("gs://anonymous@bucket", "gs://bucket"),
    ],
)
def test_other_uris_are_shown_without_what_is_secret(uri: str, shown: str) -> None:
    path = place(uri)
    assert isinstance(path, RemotePath)
    assert str(path) == shown
    assert repr(path) == f"RemotePath({shown!r})"


def test_names_and_folders() -> None:
    path = place("s3://key:secret@bucket/work/out.tsv?region=x")
    assert isinstance(path, RemotePath)
    assert (path.name, path.suffix, str(path.parent)) == ("out.tsv", ".tsv", "s3://bucket/work")
    assert str(path.parent.parent / "a/b") == "s3://bucket/a/b"
    assert path.parent / "out.tsv" == path == pickle.loads(pickle.dumps(path))
    assert hash(path.parent / "out.tsv") == hash(path)
    assert path != place("s3://bucket/work/out.tsv?region=x")
    assert lies_in(path, path.parent)
    assert not lies_in(path, path.parent / "pairs")
    assert not lies_in(path, Path("/work"))
    assert not lies_in(Path("/work/x"), path)
    assert same_file(path, path.parent / "out.tsv")
    assert not same_file(path, Path("out.tsv"))


MOCK = "mock://files/"  # of Arrow's own for tests: folders are real there, and files are renamed


@pytest.fixture(params=["s3", "mock"])
def folder(request: pytest.FixtureRequest, s3: S3, tmp_path: Path) -> RemotePath:
    found = place(s3.uri("it") if request.param == "s3" else f"{MOCK}{tmp_path.name}")
    assert isinstance(found, RemotePath)
    return found


def test_a_file_is_written_whole_and_read(folder: RemotePath, tmp_path: Path) -> None:
    path = folder / "a b/ü%20.txt"
    assert not path.exists()
    with atomic_file(path) as temporary:
        temporary.write_text("first", encoding="utf-8")
        assert not path.exists()
        assert temporary.suffix == ".txt"
    assert path.read_text() == "first"
    assert path.stat().st_size == 5
    assert path.is_file()
    assert not path.is_dir()
    assert path.parent.is_dir()
    with path.open() as stream:
        stream.seek(2)
        assert stream.read() == b"rst"
    with pytest.raises(RuntimeError), atomic_file(path) as temporary:
        temporary.write_bytes(b"second")
        raise RuntimeError
    assert path.read_bytes() == b"first"
    assert [*path.parent.iterdir()] == [path]
    assert tree_files(folder) == [(path, 5)]
    assert not any((tmp_path / "cache").iterdir())


def test_what_is_not_there(folder: RemotePath) -> None:
    for read in (folder.read_bytes, folder.open, folder.unlink):
        with pytest.raises(FileNotFoundError) as caught:
            read()
        assert caught.value.filename == str(folder)
    folder.unlink(missing_ok=True)
    remove_tree(folder)
    assert tree_files(folder) == [] == [*folder.iterdir()]


def test_a_folder_is_removed(folder: RemotePath) -> None:
    for name in ("x/1", "x/y/2", "z"):
        with atomic_file(folder / name) as path:
            path.write_bytes(b"x")
    assert sorted((folder / "x").iterdir(), key=str) == [folder / "x/1", folder / "x/y"]
    remove_tree(folder / "x")
    assert tree_files(folder) == [(folder / "z", 1)]


def test_whether_a_file_could_be_written(folder: RemotePath, s3: S3) -> None:
    check_writable(folder / "x")
    assert tree_files(folder) == []
    missing = place(s3.uri("out.tsv", bucket="nothing"))
    with pytest.raises(OSError, match=r"cannot be written: .*bucket does not exist"):
        check_writable(missing)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("nosuch://x/y", "nosuch://x/y: Unrecognized filesystem type in URI"),
        ("s3://bucket/x?nonsense=1&region=x", "Unexpected query parameter in S3 URI: 'nonsense'"),
        ("hdfs://host:1/x", "hdfs://host:1/x: "),
    ],
)
def test_what_arrow_cannot_reach_is_told_in_one_line(uri: str, expected: str) -> None:
    path = place(uri)
    with pytest.raises(PlaceError) as caught:
        path.exists()
    assert expected in str(caught.value)
    assert str(caught.value).endswith("; check the URI, its options and the credentials")
    assert "\n" not in str(caught.value)


class Broken:
    """Arrow's file, of a server that goes away."""

    def size(self) -> int:
        return 100

    def tell(self) -> int:
        return 0

    def readinto(self, buffer: memoryview) -> int:
        raise OSError("AWS Error NETWORK_CONNECTION\nand more")

    def close(self) -> None:
        pass


def test_a_file_that_cannot_be_reached_is_no_bad_record(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several files a damaged one is left out; one behind a network that fails must not be."""
    for name in ("c/1.txt", "c/deep/2.txt"):
        s3.put(name, b"a sentence\n")
    files = corpus_files(s3.path("c"))
    assert [name for name, _ in files] == ["1.txt", "deep/2.txt"]
    really_open = RemotePath.open

    def open_broken(path: RemotePath) -> object:
        if path.name == "2.txt":
            return BufferedReader(_RemoteFile(path, Broken()))
        return really_open(path)

    monkeypatch.setattr(RemotePath, "open", open_broken)
    with pytest.raises(
        PlaceError, match=r"c/deep/2\.txt: AWS Error NETWORK_CONNECTION; check the URI"
    ):
        list(CorpusReader(files))
