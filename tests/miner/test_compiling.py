"""Compiled functions where Numba has a place for its cache, and where it has none."""

import ast
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import CacheImpl

from miner.compiling import compiled

ROOT = Path(__file__).resolve().parents[2]


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


def functions(decorator: str) -> dict[str, ast.FunctionDef]:
    """The functions of the product that have a Numba decorator of this name, by module and name."""
    return {
        f"{path.stem}.{node.name}": node
        for room in ("miner", "encoder")
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(decorator in ast.unparse(each) for each in node.decorator_list)
    }


WHOLE, PARTS = functions("compile"), functions("_part")
COMPILED = {**WHOLE, **PARTS}


@pytest.mark.parametrize("name", COMPILED)
def test_no_linear_algebra(name: str) -> None:
    """For it Numba needs SciPy, which the base does not install."""
    for node in ast.walk(COMPILED[name]):
        assert not isinstance(node, ast.MatMult)
        assert not (isinstance(node, ast.Attribute) and node.attr in ("dot", "vdot", "linalg"))


@pytest.mark.parametrize("name", COMPILED)
def test_what_compiled_functions_call_is_part_of_them(name: str) -> None:
    whole = {function.name for function in WHOLE.values()} - {each.name for each in PARTS.values()}
    for node in ast.walk(COMPILED[name]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in whole
