"""Errors of the user's become one line and status 2; defects keep their traceback."""

import argparse
import io
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


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_characters_that_a_terminal_lacks_are_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setattr("sys.stderr", stderr)

    def main() -> int:
        sys.stdout.write("für Žofie 中 \udce9\n")
        raise ValueError("für Žofie 中")

    assert run_command(main, "adit") == 2
    shown = {"ascii": r"f\xfcr \u017dofie \u4e2d", "latin-1": r"für \u017dofie \u4e2d"}
    text = shown.get(encoding, "für Žofie 中")
    stdout.flush()
    assert stdout.buffer.getvalue().decode(encoding) == f"{text} \\udce9\n"  # type: ignore[attr-defined]
    stderr.flush()
    assert stderr.buffer.getvalue().decode(encoding) == f"adit: error: {text}\n"  # type: ignore[attr-defined]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output() -> None:
    code = (
        "import sys; from miner.commandline import run_command; "
        "sys.exit(run_command(lambda: print('a') or 0, 'adit'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT, env=environment,
        )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.startswith("adit: error: standard output: No space left on device; free ")


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
        (OSError(28, "No space left on device"), "No space left on device; free space on the disk"),
        (OSError(5, "Input/output error"), "Input/output error"),
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
