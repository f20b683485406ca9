"""Compiled functions where Numba has a place for its cache, and where it has none."""

import errno
import os
import subprocess
import sys

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


KEPT = """
import sys
from miner.compiling import compiled
from tests.miner.test_compiling import double
assert compiled()(double)(4) == 8
print("numba.np.arraymath" in sys.modules)
"""


def test_what_is_kept_is_loaded_alone(tmp_path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def loads_all_of_numba() -> bool:
        command = [sys.executable, "-c", KEPT]
        output = subprocess.check_output(command, env=environment, text=True)
        return output == "True\n"

    assert loads_all_of_numba()  # to compile
    assert not loads_all_of_numba()
