"""Indexes on disk: the same index comes back, and what cannot be read is refused by name."""

import errno

import faiss
import numpy as np
import pytest

from miner.storage.artefacts import ArtefactError, produce
from miner.storage.vectors.indexes import read_index, save_index

BASE = np.random.default_rng(0).standard_normal((300, 32)).astype(np.float32)
KINDS = ["Flat", "IVF4,Flat", "HNSW8", "PCA16,IVF4,SQ8", "IVF4,PQ8x4fs", "IVF4,Flat,RFlat"]


def save(folder, index):
    def write(draft):
        save_index(draft, "i.faiss", index)
        return {}

    return produce(folder, key="k", write=write).file("i.faiss")


@pytest.mark.parametrize("factory", KINDS)
@pytest.mark.parametrize("mapped", [False, True])
def test_what_was_saved_is_read(tmp_path, factory, mapped):
    index = faiss.index_factory(32, factory, faiss.METRIC_INNER_PRODUCT)
    index.train(BASE)
    index.add(BASE)
    found = read_index(save(tmp_path, index), mapped=mapped)
    for ours, theirs in zip(found.search(BASE, 5), index.search(BASE, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_index_that_is_loaded_takes_more_vectors(tmp_path):
    index = read_index(save(tmp_path, faiss.IndexFlatIP(32)), mapped=False)
    index.add(BASE)
    assert index.ntotal == 300


@pytest.mark.parametrize("mapped", [False, True])
def test_what_is_no_index(tmp_path, mapped):
    path = tmp_path / "i.faiss"
    path.write_bytes(b"IwXX" + bytes(100))
    with pytest.raises(ArtefactError, match=r"i\.faiss: cannot be read by FAISS \d+\..*; delete"):
        read_index(path, mapped=mapped)


def test_a_full_disk_says_so(tmp_path, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    index = faiss.IndexFlatIP(32)
    monkeypatch.setattr("pathlib.Path.open", lambda *_: Full())
    with pytest.raises(OSError, match=r"i\.faiss: cannot be written: No space left on device"):
        save(tmp_path, index)
