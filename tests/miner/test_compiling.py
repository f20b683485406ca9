"""Compiled functions where Numba has a place for its cache, and where it has none."""

import errno

import pytest
from numba.core.caching import CacheImpl

from miner.compiling import compiled


def double(number):
    return 2 * number


def test_no_place_for_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert compiled()(double)(4) == 8


def test_code_is_kept(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    assert compiled(fastmath=True)(double)(4) == 8
    assert list(tmp_path.rglob("*.nbc"))


def test_a_full_disk(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    assert compiled()(double)(4) == 8
