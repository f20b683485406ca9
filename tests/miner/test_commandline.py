"""Errors of the user's become one line and status 2; defects keep their traceback."""

import argparse
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from miner.commandline import command, product_version, run_command

ROOT = Path(__file__).resolve().parents[2]


def raising(error: BaseException):
    def main() -> int:
        raise error

    return main


def test_the_status_of_main_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: 0, "adit") == 0
    assert run_command(lambda: 3, "adit") == 3
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("k is 0; expected 1 or more"), "k is 0; expected 1 or more"),
        (ValueError("two\nlines"), "two lines"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "'utf-8' codec can't decode byte"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "a.txt: No such file or dir"),
        (PermissionError(13, "Permission denied", b"a.txt"), "a.txt: Permission denied"),
        (OSError("the disk is full"), "the disk is full"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (KeyboardInterrupt(), "interrupted"),
        (MemoryError(), "out of memory"),
        (MemoryError("Unable to allocate 9 TiB"), "out of memory: Unable to allocate 9 TiB"),
    ],
)
def test_errors_of_the_users(
    capsys: pytest.CaptureFixture[str], error: BaseException, line: str
) -> None:
    assert run_command(raising(error), "adit") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"adit: error: {line}")
    assert err.count("\n") == 1


def test_a_command_is_described_by_its_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("count", type=int)

    @command(add_arguments, "adit add")
    def add(args: argparse.Namespace) -> int:
        """Add one.

        No more.
        """
        return int(args.count) + 1

    assert add(["3"]) == 4
    with pytest.raises(SystemExit):
        add(["--help"], "adit sum")
    shown = capsys.readouterr().out
    assert shown.startswith("usage: adit sum ") and "Add one. No more." in shown
    assert "--version" in shown


@pytest.mark.parametrize("error", [TypeError("x"), KeyError("x"), AssertionError(), SystemExit(2)])
def test_defects_propagate(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_command(raising(error), "adit")


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_that_goes_away_is_no_error(lines: int) -> None:
    """One line is still in the buffer when the pipe is found broken; many overflow it."""
    code = f"""
import sys
from miner.commandline import run_command

def main():
    sys.stdin.read()
    for _ in range({lines}):
        sys.stdout.write("a line\\n")
    return 0

sys.exit(run_command(main, "adit"))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(b"")
    assert err == b""
    assert process.returncode == 141


def test_product_version(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    read = product_version.__wrapped__
    monkeypatch.setattr("importlib.metadata.version", lambda name: asked.append(name) or "1.2.3")
    assert read() == "1.2.3"
    assert asked == ["bitext-adit"]
    monkeypatch.setattr("importlib.metadata.version", raising_for_any_name)
    assert read() == "unknown"


def raising_for_any_name(name: str) -> str:
    raise PackageNotFoundError(name)
