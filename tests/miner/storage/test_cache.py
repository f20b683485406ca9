"""Remote files on this machine: fetched once, never taken for others, and removed for room."""

import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from miner.storage import cache
from miner.storage.places import RemotePath
from tests.s3 import S3


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were copied."""
    names: list[str] = []
    really_copy = cache._copy

    def copy(remote: RemotePath, local: Path) -> str:
        names.append(remote.name)
        return really_copy(remote, local)

    monkeypatch.setattr(cache, "_copy", copy)
    return names


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def test_a_file_is_fetched_once(s3: S3, fetched: list[str]) -> None:
    s3.put("a", b"content")
    path = cache.fetch(s3.path("a"), digest(b"content"))
    assert path is not None
    assert path.read_bytes() == b"content"
    found: list[Path | None] = []

    def fetch() -> None:
        found.append(cache.fetch(s3.path("b"), digest(b"other")))

    s3.put("b", b"other")
    threads = [threading.Thread(target=fetch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*found}) == 1
    assert cache.fetch(s3.path("a"), digest(b"content")) == path
    assert fetched == ["a", "b"]


def test_other_content_is_not_taken_for_it(s3: S3) -> None:
    s3.put("a", b"damaged")
    assert cache.fetch(s3.path("a"), digest(b"content")) is None
    with pytest.raises(FileNotFoundError):
        cache.fetch(s3.path("none"), digest(b"content"))
    s3.put("a", b"content")
    assert cache.fetch(s3.path("a"), digest(b"content")) is not None


def test_what_was_written_here_is_not_fetched(s3: S3, fetched: list[str]) -> None:
    with cache.temporary_file(".npy") as path:
        path.write_bytes(b"mine")
        cache.store(path, digest(b"mine"))
        cache.store(path, digest(b"mine"))
    kept = cache.fetch(s3.path("never sent"), digest(b"mine"))
    assert kept is not None
    assert kept.read_bytes() == b"mine"
    assert fetched == []
    assert not path.exists()


def test_what_was_used_least_recently_makes_room(
    s3: S3, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: (1000, 0, 1000))  # not this disk's
    contents = {name: name.encode() * 100 for name in "abcd"}
    paths = {}
    for name, content in contents.items():
        s3.put(name, content)
    for hours, name in enumerate("abc"):
        paths[name] = cache.fetch(s3.path(name), digest(contents[name]))
        os.utime(paths[name], (hours, 3600 * hours))
    cache.fetch(s3.path("a"), digest(contents["a"]))  # used now, and so not removed

    def usage(folder: Path) -> tuple[int, int, int]:
        return 1000, 0, 450 - sum(path.stat().st_size for path in folder.iterdir())

    monkeypatch.setattr("shutil.disk_usage", usage)  # 150 are free, and 100 have to be
    paths["d"] = cache.fetch(s3.path("d"), digest(contents["d"]))
    assert {name for name, path in paths.items() if path.exists()} == {"a", "c", "d"}
    monkeypatch.setattr("shutil.disk_usage", lambda folder: (1000, 0, 0))
    cache.fetch(s3.path("b"), digest(contents["b"]))
    assert {name for name, path in paths.items() if path.exists()} == {"a", "b", "d"}


def test_the_folder_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADIT_CACHE", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = cache.cache_folder()
    assert folder == tmp_path / f"adit-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("os.getuid", lambda: 12345)
    monkeypatch.setenv("ADIT_CACHE", str(folder))
    with pytest.raises(PermissionError, match="belongs to another user; set ADIT_CACHE"):
        cache.cache_folder()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_folder_that_others_can_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("ADIT_CACHE", str(folder))
    with pytest.raises(PermissionError, match="chmod 700"):
        cache.cache_folder()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", ["link to a folder", "link to nothing", "file"])
def test_what_was_planted_under_the_folder_s_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.delenv("ADIT_CACHE", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    planted = tmp_path / f"adit-{os.getuid()}"
    if kind == "file":
        planted.touch()
    else:
        planted.symlink_to(own if kind == "link to a folder" else tmp_path / "nothing")
    with pytest.raises(PermissionError, match="is a link, or not a folder"):
        cache.cache_folder()
    assert list(own.iterdir()) == []
    assert not (tmp_path / "nothing").exists()
