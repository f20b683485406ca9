import json

import numpy as np
import pytest

from miner.storage.artefacts import (
    SEAL,
    ArtefactError,
    content_key,
    file_digest,
    produce,
    write_array,
)


class Stage:
    """Writes files of numbers and counts how often it had to."""

    def __init__(self, folder, files=("a.npy", "b.npy")):
        self.folder, self.files, self.runs = folder, files, 0

    def __call__(self, key="key", start=0):
        def write(draft):
            self.runs += 1
            for number, name in enumerate(self.files, start):
                with draft.file(name) as path:
                    np.save(path, np.arange(number, number + 10))
            return {"rows": 10}

        return produce(self.folder, key=key, write=write)


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path / "work" / "stage")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_sealed(stage):
    artefact = stage()
    assert artefact.folder == stage.folder
    assert artefact.facts == {"rows": 10}
    assert artefact.files == {name: file_digest(stage.folder / name) for name in stage.files}
    assert np.load(artefact.file("b.npy")).tolist() == list(range(1, 11))
    assert names(stage.folder) == ["a.npy", "b.npy", SEAL]


def test_sealed_work_is_not_done_again(stage):
    first = stage()
    before = {path: path.stat().st_mtime_ns for path in stage.folder.iterdir()}
    assert stage() == first
    assert stage.runs == 1
    assert {path: path.stat().st_mtime_ns for path in stage.folder.iterdir()} == before


def test_another_key_writes_again(stage):
    stage("one")
    second = stage("two", start=5)
    assert stage.runs == 2
    assert np.load(second.file("a.npy"))[0] == 5
    assert stage("two") == second
    assert stage("one").files != second.files
    assert stage.runs == 3


def test_files_of_an_earlier_key_are_no_part_of_the_new_one(stage):
    stage("one")
    stage.files = ("a.npy",)
    assert set(stage("two").files) == {"a.npy"}
    (stage.folder / "b.npy").write_bytes(b"left over, and of no account")
    assert set(stage("two").files) == {"a.npy"}
    assert stage.runs == 2


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("inside", [True, False])
def test_an_interrupted_write_is_not_sealed(stage, error, inside):
    stage("old")

    def interrupted(draft):
        with draft.file("a.npy") as path:
            path.write_bytes(b"new")
            if inside:
                raise error
        raise error

    with pytest.raises(error):
        produce(stage.folder, key="new", write=interrupted)
    # What was sealed before is whole, and nothing is there for the new key.
    assert names(stage.folder) == ["a.npy", "b.npy", SEAL]
    assert np.load(stage("old").file("a.npy")).shape == (10,)
    assert stage.runs == 1
    assert np.load(stage("new", start=5).file("a.npy"))[0] == 5
    assert stage.runs == 2


def test_facts_that_cannot_be_kept_seal_nothing(stage):
    with pytest.raises(TypeError):
        produce(stage.folder, key="key", write=lambda draft: {"rows": object()})
    assert names(stage.folder) == []


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def exchange(path):
    path.write_bytes(path.with_name("b.npy").read_bytes())


@pytest.mark.parametrize("damage", [flip_a_bit, truncate, exchange])
def test_a_damaged_file_is_refused_by_name(stage, damage):
    stage()
    damage(stage.folder / "a.npy")
    with pytest.raises(ArtefactError) as caught:
        stage()
    assert str(caught.value) == (
        f"{stage.folder / 'a.npy'}: was changed since it was written; "
        f"delete the folder {stage.folder} to rebuild it"
    )
    assert stage.runs == 1


def test_a_missing_file_is_refused_by_name(stage):
    stage()
    (stage.folder / "b.npy").unlink()
    with pytest.raises(ArtefactError) as caught:
        stage()
    assert str(caught.value) == (
        f"{stage.folder / 'b.npy'}: file not found; delete the folder {stage.folder} to rebuild it"
    )
    assert stage.runs == 1


def test_the_seal_of_other_files_is_refused(stage, tmp_path):
    """The same key elsewhere, say from a copy of the folder made by another version."""
    stage()
    other = Stage(tmp_path / "other")
    other(start=7)
    (other.folder / SEAL).rename(stage.folder / SEAL)
    with pytest.raises(ArtefactError, match=r"a\.npy: was changed since it was written"):
        stage()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"3",
        b"[]",
        b'"seal"',
        b'["key", "files", "facts"]',
        b"\xff\xfe",
        b'{"key": "key"}',
        b'{"key": "key", "files": [], "facts": {}}',
        b'{"key": "key", "files": {}, "facts": 1}',
        b'{"key": "key", "files": {}, "facts": {}, "more": 1}',
    ],
)
def test_what_is_no_seal_is_refused(stage, content):
    stage()
    (stage.folder / SEAL).write_bytes(content)
    with pytest.raises(ArtefactError) as caught:
        stage()
    assert str(caught.value) == (
        f"{stage.folder / SEAL}: is damaged; delete the folder {stage.folder} to rebuild it"
    )
    assert stage.runs == 1


def test_a_folder_that_is_a_file_is_an_error_of_the_system(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match="taken"):
        Stage(tmp_path / "taken")()


def test_the_seal_can_be_read_by_anything(stage):
    stage("the key")
    seal = json.loads((stage.folder / SEAL).read_text(encoding="utf-8"))
    assert seal["key"] == "the key"
    assert set(seal["files"]) == set(stage.files)


def test_keys_tell_what_decides_apart():
    key = content_key("search", k=4, rows=["a", "b"])
    assert key == content_key("search", rows=["a", "b"], k=4)
    assert len(key) == 64
    others = [
        content_key("merge", k=4, rows=["a", "b"]),
        content_key("search", k=5, rows=["a", "b"]),
        content_key("search", k="4", rows=["a", "b"]),
        content_key("search", k=4, rows=["b", "a"]),
        content_key("search", k=4, rows=["a,b"]),
        content_key("search", k=4),
    ]
    assert len({key, *others}) == 7


def test_a_key_of_what_is_not_json_is_a_defect():
    with pytest.raises(TypeError):
        content_key("search", k=object())


def test_two_workers_at_one_artefact_take_what_is_sealed_first(stage):
    """As where an engine starts an element again that it believes lost: neither harms the other."""
    other = Stage(stage.folder)

    def write(draft):
        with draft.file("a.npy") as path:
            np.save(path, np.zeros(3))
        sealed.append(other(start=7))
        with draft.file("b.npy") as path:
            np.save(path, np.zeros(4))
        return {"rows": 1}

    sealed = []
    found = produce(stage.folder, key="key", write=write)
    assert [found] == sealed
    assert other() == found and other.runs == 1
    assert names(stage.folder) == ["a.npy", "b.npy", SEAL]


def test_a_worker_whose_inputs_another_one_has_removed_takes_what_that_one_sealed(stage):
    def write(draft):
        stage()
        raise FileNotFoundError(2, "No such file or directory", "batches/00000")

    found = produce(stage.folder, key="key", write=write)
    assert found == stage() and stage.runs == 1


def test_each_worker_has_scratch_of_its_own_which_goes_with_its_block(stage):
    def write(draft):
        with draft.scratch() as mine, draft.scratch() as theirs:
            (mine / "x").write_text("mine")
            (theirs / "x").write_text("theirs")
            assert (mine / "x").read_text() == "mine"
        return {}

    produce(stage.folder, key="key", write=write)
    assert names(stage.folder) == [SEAL]


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_is_written_as_numpy_writes_rows(tmp_path, order):
    values = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int16, order=order)
    write_array(tmp_path / "ours.npy", values)
    np.save(tmp_path / "theirs.npy", np.ascontiguousarray(values))
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
