"""The functions of a benchmark, for tests of them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = str(Path(__file__).parents[1] / "benchmarks")


def benchmark(name: str) -> ModuleType:
    """Import a script of benchmarks/, which may import others there."""
    sys.path.insert(0, FOLDER)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(FOLDER)
