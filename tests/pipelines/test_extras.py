"""What an extra installs and is not there is named in one line, before any work is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from miner.extras import EXTRAS
from miner.instructions import CHOSEN
from pipelines.cli.mine import mine_corpus

# The extra that each command needs, and its arguments; corpora are a.txt and b.txt.
MINE = ["a.txt", "b.txt", "-o", "out.tsv"]
CASES = {
    "faiss": ("pipelines.cli.mine:mine_corpus", [*MINE, "--index", "IVF4,Flat"]),
    "beam": ("pipelines.cli.mine:mine_corpus", [*MINE, "--workers", "2"]),
    "laser": ("pipelines.cli.mine:mine_corpus", [*MINE, "--encoder", "laser:laser2.pt"]),
    "st": ("pipelines.cli.mine:embed_corpus", ["a.txt", "-o", "a.npy", "--encoder", "st:LaBSE"]),
    "torch": ("pipelines.cli.train:train_encoder", ["data", "-o", "encoder"]),
    "torch, bfloat16": (
        "pipelines.cli.mine:mine_corpus",
        [*MINE, "--search-precision", "bfloat16"],
    ),
}
SAMPLE = Path(str(files("eval"))) / "assets" / "sample" / "de-en"
BASE = ["news.de", "news.en", "--align", "-q"]  # of the sample's first lines
INT8 = [*BASE, "-o", "int8.jsonl", "--search-precision", "int8"]
CODE = """
import contextlib, importlib, io, json, sys
modules, cases = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(modules))
lines = {}
for extra, (command, arguments) in cases.items():
    module, _, function = command.partition(":")
    with contextlib.redirect_stderr(io.StringIO()) as err:
        status = getattr(importlib.import_module(module), function)(arguments)
    lines[extra] = (status, err.getvalue())
print(json.dumps(lines))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpora."""
    folder = tmp_path_factory.mktemp("base")
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("".join(f"{name} {row}\n" for row in range(9)), "utf-8")
    for language in ("de", "en"):
        lines = (SAMPLE / f"de-en.training.{language}").read_text("utf-8").splitlines()[:300]
        (folder / f"news.{language}").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, tuple[int, str]]:
    """Status and stderr of each case, in one interpreter that has the base alone."""
    given = [path.name for path in folder.iterdir()]
    root = Path(__file__).parents[2]
    cases = {"base": ("pipelines.cli.mine:mine_corpus", [*BASE, "-o", "base.jsonl"]), **CASES}
    cases["int8"] = ("pipelines.cli.mine:mine_corpus", INT8)
    command = [sys.executable, "-c", CODE, json.dumps([list(EXTRAS), cases])]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    written = ["base.jsonl", *(["int8.jsonl"] if CHOSEN else [])]
    assert {path.name for path in folder.iterdir()} == {*given, *written}
    found: dict[str, tuple[int, str]] = json.loads(done.stdout)
    found["mined"] = (0, (folder / "base.jsonl").read_text(encoding="utf-8"))
    if CHOSEN:
        assert (folder / "int8.jsonl").read_text(encoding="utf-8") == found["mined"][1]
    return found


@pytest.mark.usefixtures("best")
def test_the_base_mines_what_everything_does(
    outcomes: dict[str, tuple[int, str]],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tuple(outcomes["base"]) == (0, "")
    monkeypatch.chdir(folder)
    assert mine_corpus([*BASE, "-o", str(tmp_path / "all.jsonl")]) == 0
    assert (tmp_path / "all.jsonl").read_text(encoding="utf-8") == outcomes["mined"][1]


def test_int8_needs_torch_only_where_it_cannot_be_compiled(
    outcomes: dict[str, tuple[int, str]],
) -> None:
    status, err = outcomes["int8"]
    assert status == (0 if CHOSEN else 2)
    assert CHOSEN or "pip install 'bitext-adit[torch]'" in err


@pytest.mark.parametrize("case", CASES)
def test_the_extra_is_named(case: str, outcomes: dict[str, tuple[int, str]]) -> None:
    status, err = outcomes[case]
    extra = case.partition(",")[0]
    assert status == 2
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert f"pip install 'bitext-adit[{extra}]'" in err
