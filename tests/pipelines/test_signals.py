"""A run in a process of its own that is told to stop, and what it shows on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.pipelines.worlds import World, make_world, snapshot

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120

# Stops in the middle of a stage, says so, and waits for what comes.
WAITING = """
import sys, time
import pipelines.stages.export, pipelines.stages.searching.search
from pipelines.cli.mine import mine_corpus

def wait(*_, **__):
    print("here", flush=True)
    time.sleep(100)

where = sys.argv.pop(1)
if where == "search":
    pipelines.stages.searching.search._search = wait
else:
    really_write = pipelines.stages.export.write_pairs
    def write_pairs(path, batches, **options):
        def half():
            yield next(batches)
            wait()
        really_write(path, half(), **options)
    pipelines.stages.export.write_pairs = write_pairs
sys.exit(mine_corpus(sys.argv[1:]))
"""


def start(code: str, *arguments: str, **options: int) -> subprocess.Popen[str]:
    """Start Python as a terminal does: tests may be a background job, which ignores Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict]:
    """Runs that were stopped in the middle, side by side: by place, the world and the process."""
    runs = {}
    for where in ("search", "export"):
        world = make_world(tmp_path_factory.mktemp(where))
        world.path("out.jsonl").write_bytes(b"an older result")
        before = snapshot(world.folder)
        arguments = [*world.inputs(), "-o", str(world.path("out.jsonl")), "-q"]
        process = start(WAITING, where, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        runs[where] = world, before, process
    yield runs
    for _, _, process in runs.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("where", "number"), [("search", signal.SIGINT), ("export", signal.SIGTERM)]
)
def test_signals_end_a_run_in_one_line_and_leave_nothing(
    interrupted: dict, where: str, number: signal.Signals
) -> None:
    world, before, process = interrupted[where]
    assert process.stdout.readline() == "here\n"
    # It is in the middle: there is a work folder, and in the export a file half written.
    meanwhile = snapshot(world.folder).keys() - before.keys()
    assert any(name.startswith(".out.jsonl-") for name in meanwhile)
    assert any(name.startswith(".adit-") for name in meanwhile) == (where == "export")
    process.send_signal(number)
    out, error = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (2, "")
    told = f"interrupted; {world.path('out.jsonl')} was not written"
    assert error == f"mine-corpus: error: {told} (use --work-dir to make a run resumable)\n"
    assert snapshot(world.folder) == before


def end_of_workers(world: World, end: Callable[[subprocess.Popen[str]], None]) -> str:
    """What a run of two worker processes tells that is ended a second after it began."""
    work, out = world.path("work"), str(world.path("out.tsv"))
    arguments = [*world.inputs(), "-o", out, "-q", "--workers", "2", "--work-dir", str(work)]
    process = start(MINE, *arguments, stderr=subprocess.PIPE, start_new_session=True)
    try:
        while not (work / "progress" / "begun.json").exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        end(process)
        error = process.communicate(timeout=PATIENCE_SECONDS)[1]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 2
    return error


@pytest.mark.parametrize(
    "end",
    [
        lambda process: process.send_signal(signal.SIGTERM),
        lambda process: os.killpg(process.pid, signal.SIGINT),  # as a terminal does
    ],
    ids=["the run alone", "its workers, too"],
)
def test_signals_end_worker_processes(
    world: World, end: Callable[[subprocess.Popen[str]], None]
) -> None:
    told = f"{world.path('out.tsv')} was not written"
    again = f"rerun the same command to resume from {world.path('work')}"
    error = end_of_workers(world, end)
    assert error == f"mine-corpus: error: interrupted; {told}; {again}\n"


MINE = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus(sys.argv[1:]))"


def on_terminal(world: World, size: tuple[int, int]) -> str:
    """What a run shows whose stderr is a terminal of that many lines and columns."""
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, size)
    process = start(MINE, *world.inputs(), "-o", str(world.path("tty.tsv")), stderr=end)
    os.close(end)
    shown = b""
    with suppress(OSError):  # Linux's way to say that nobody holds the other end any more
        while piece := os.read(terminal, 4096):
            shown += piece
    os.close(terminal)
    assert process.wait(PATIENCE_SECONDS) == 0
    return shown.decode()


@pytest.mark.parametrize("size", [(24, 120), (0, 0)])  # some terminals do not tell theirs
def test_bars_on_a_terminal(world: World, size: tuple[int, int]) -> None:
    shown = on_terminal(world, size)
    assert "search    : 100%|" in shown
    assert "2.00k/2.00k" in shown  # 40 x 50 similarities
    assert "source: 40 sentences read" in shown


def test_plain_lines_elsewhere(world: World) -> None:
    logged = start(MINE, *world.inputs(), "-o", str(world.path("log.tsv")), stderr=subprocess.PIPE)
    lines = logged.communicate(timeout=PATIENCE_SECONDS)[1].splitlines()
    shown = [line for line in lines if not line.startswith("signature: ")]
    assert not any("|" in line or "\r" in line for line in shown)
    ends = [line for line in lines if line[2:3] == ":" and " in " in line]  # not those in between
    stages = [line.split()[1].rstrip(":") for line in ends]
    assert stages == "read read encode encode search select export".split()
    (source,) = (line for line in lines if line.startswith("source: "))
    assert source.startswith("source: 40 sentences read, 0 rejected, 0 duplicates, 40 searched")
    assert any(line.startswith("time: start ") for line in lines)
