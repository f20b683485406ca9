import errno
import os
import stat

import pytest

from miner.storage import atomic
from miner.storage.atomic import OutputError, atomic_file, check_writable, naming_errors


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "out.npy"
    path.write_text("old")
    return path


def test_replaces_when_the_block_succeeds(old):
    with atomic_file(old) as temporary:
        assert temporary.parent == old.parent
        assert temporary.suffix == ".npy"
        assert temporary.read_bytes() == b""
        temporary.write_text("new")
        assert old.read_text() == "old"
    assert old.read_text() == "new"
    assert names(old.parent) == ["out.npy"]


@pytest.mark.parametrize("error", [RuntimeError, ValueError, KeyboardInterrupt, SystemExit])
def test_any_failure_leaves_what_was_there(old, error):
    with pytest.raises(error), atomic_file(old) as temporary:
        temporary.write_text("half")
        raise error
    assert old.read_text() == "old"
    assert names(old.parent) == ["out.npy"]


def test_a_closed_generator_leaves_nothing(tmp_path):
    manager = atomic_file(tmp_path / "out")
    manager.__enter__()
    assert len(names(tmp_path)) == 1
    manager.gen.close()
    assert names(tmp_path) == []


def test_the_file_has_the_permissions_of_any_new_file(tmp_path):
    plain, atomically = tmp_path / "plain", tmp_path / "atomic"
    before = os.umask(0o027)
    try:
        plain.touch()
        with atomic_file(atomically):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(atomically.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode) == 0o640


def test_a_link_is_followed(old):
    folder = old.parent / "links"
    folder.mkdir()
    link = folder / "link.npy"
    link.symlink_to(old)
    with atomic_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert old.read_text() == "new"


def test_the_data_is_on_the_disk_before_the_name(old, monkeypatch):
    calls = []
    replace, flush = os.replace, atomic._flush_to_disk
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("replace"), replace(*a)))
    monkeypatch.setattr(
        atomic, "_flush_to_disk", lambda path: (calls.append(path.name), flush(path))
    )
    with atomic_file(old) as temporary:
        pass
    assert calls == [temporary.name, "replace", old.parent.name]


def test_a_full_disk_is_one_line_that_names_the_output(old):
    with pytest.raises(OutputError) as caught, atomic_file(old) as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (
        str(caught.value)
        == f"{old}: cannot be written: No space left on device; free space on its disk"
    )
    assert old.read_text() == "old"
    assert names(old.parent) == ["out.npy"]


def test_a_full_disk_met_on_flushing(old, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"), atomic_file(old):
        pass
    assert old.read_text() == "old"
    assert names(old.parent) == ["out.npy"]


def test_a_folder_that_cannot_be_flushed_is_no_failure(old, monkeypatch):
    flush = atomic._flush_to_disk

    def refuse_folders(path):
        if path.is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(path)

    monkeypatch.setattr(atomic, "_flush_to_disk", refuse_folders)
    with atomic_file(old) as temporary:
        temporary.write_text("new")
    assert old.read_text() == "new"


def test_an_input_that_fails_meanwhile_is_named(old, tmp_path):
    with pytest.raises(OutputError) as caught, atomic_file(old):
        (tmp_path / "input").read_bytes()
    message = str(caught.value)
    assert message.startswith(f"{old}: cannot be written: ")
    assert str(tmp_path / "input") in message


def test_an_error_that_is_already_a_message_stays(old):
    class ShardError(OSError):
        pass

    with pytest.raises(ShardError, match=r"^shard 3 is damaged$"), atomic_file(old):
        raise ShardError("shard 3 is damaged")


def test_missing_folder(tmp_path):
    path = tmp_path / "none" / "out"
    with pytest.raises(OutputError) as caught, atomic_file(path):
        pass
    assert (
        str(caught.value) == f"{path}: cannot be written: No such file or directory; check its path"
    )
    with pytest.raises(OutputError, match=r"folder not found: .*none; create it first"):
        check_writable(path)
    assert names(tmp_path) == []


def test_folders_and_devices_are_refused(tmp_path):
    for path, reason in ((tmp_path, "is a folder"), (os.devnull, "is a device or a pipe")):
        with pytest.raises(OutputError, match=reason):
            check_writable(path)
        with pytest.raises(OutputError, match=reason), atomic_file(path):
            pass
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_check_leaves_nothing_behind(tmp_path, old):
    check_writable(old)
    check_writable(tmp_path / "new.npy")
    assert names(tmp_path) == ["out.npy"]
    assert old.read_text() == "old"


def test_check_of_a_folder_that_refuses(tmp_path, monkeypatch):
    def refuse(path, *_args):
        raise PermissionError(errno.EACCES, "Permission denied; check its permissions", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OutputError) as caught:
        check_writable(tmp_path / "out.tsv")
    assert (
        str(caught.value)
        == f"{tmp_path / 'out.tsv'}: cannot be written: Permission denied; check its permissions"
    )


def test_errors_without_a_name_get_one() -> None:
    with pytest.raises(
        OutputError,
        match=r"^here: cannot be written: No space left on device; free space on its disk$",
    ):
        with naming_errors("here"):
            raise OSError(errno.ENOSPC, "what a library says")
    for error in (
        FileNotFoundError(2, "no", "a.txt"),
        OutputError("b: said"),
        BrokenPipeError(32, "x"),
    ):
        with pytest.raises(type(error)) as caught, naming_errors("here"):
            raise error
        assert caught.value is error
