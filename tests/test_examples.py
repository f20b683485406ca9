"""The Python of the documentation and the examples are run."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def python_blocks(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_python_of_a_page(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is run from top to bottom, and finds the pairs that a reader would."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in python_blocks(ROOT / page):
        exec(compile(block, page, "exec"), names)
    found = {tuple(line.split("\t")[1:]) for line in capsys.readouterr().out.splitlines()}
    assert ("Der Hund schläft.", "The dog is asleep.") in found
    assert ("Es regnet.", "It is raining.") in found


def run_example(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", [name, *arguments])
    runpy.run_path(str(ROOT / "examples" / name))


def test_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    vectors = np.eye(4, dtype=np.float32)
    np.save("x.npy", vectors)
    np.save("y.npy", vectors[::-1])
    run_example(monkeypatch, "mine_vectors.py", "x.npy", "y.npy")
    rows = {tuple(line.split("\t")[1:]) for line in capsys.readouterr().out.splitlines()}
    assert rows == {("0", "3"), ("1", "2"), ("2", "1"), ("3", "0")}

    Path("x.en").write_text("It is raining.\nThe dog is asleep.\nI like tea.\n", "utf-8")
    run_example(monkeypatch, "search_translations.py", "x.en", "Der Hund schläft.")
    query, best, *_ = capsys.readouterr().out.splitlines()
    assert query == "Der Hund schläft."
    assert best.endswith("The dog is asleep.")


def test_every_example_is_run() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in text for path in (ROOT / "examples").glob("*.py"))
