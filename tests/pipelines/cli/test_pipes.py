"""Commands in a pipe: standard input and output, named pipes, and what they cannot do."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipelines.cli.align_documents import align_documents
from pipelines.cli.documents import split_command
from pipelines.cli.mine import embed_corpus, mine_corpus, rate_corpus
from tests.pipelines.worlds import World, one_line

Pipe = Callable[..., bytes]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Pipe:
    """Call a command, which must succeed, with some bytes as its standard input; its output."""

    def call(command: Callable[[list[str]], int], *arguments: str, given: bytes = b"") -> bytes:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert command([*arguments, *(["-q"] if command is not align_documents else [])]) == 0
        return capfdbinary.readouterr().out

    return call


def inputs(world: World, source: str) -> list[str]:
    """The world's arguments with another source."""
    return [source, *world.inputs()[1:]]


def test_the_output_is_that_of_files(world: World, pipe: Pipe) -> None:
    expected = world.mine("out.tsv").read_bytes()
    given = world.path("src.txt").read_bytes()
    before = sorted(world.folder.iterdir())
    for output in (["-o", "-"], []):  # standard output is no terminal
        assert pipe(mine_corpus, *inputs(world, "-"), *output, given=given) == expected
    assert pipe(mine_corpus, *inputs(world, "-"), given=gzip.compress(given)) == expected
    assert sorted(world.folder.iterdir()) == before


def test_another_format(world: World, pipe: Pipe) -> None:
    expected = world.mine("out.jsonl").read_bytes()
    assert pipe(mine_corpus, *world.inputs(), "--format", "jsonl") == expected


def test_a_named_pipe(world: World, pipe: Pipe) -> None:
    expected = world.mine("out.tsv").read_bytes()
    named = world.path("named")
    os.mkfifo(named)
    writer = threading.Thread(target=lambda: named.write_bytes(world.path("src.txt").read_bytes()))
    writer.start()
    assert pipe(mine_corpus, *inputs(world, str(named))) == expected
    writer.join()


def test_a_work_folder_goes_on_with_the_same_input(world: World, pipe: Pipe) -> None:
    given, work = world.path("src.txt").read_bytes(), world.path("work")
    arguments = [*inputs(world, "-"), "--work-dir", str(work)]
    first = pipe(mine_corpus, *arguments, given=given)
    seal = (work / "sentences" / "source" / "seal.json").stat().st_mtime_ns
    assert pipe(mine_corpus, *arguments, given=given) == first
    assert (work / "sentences" / "source" / "seal.json").stat().st_mtime_ns == seal


def test_the_other_commands(tmp_path: Path, pipe: Pipe) -> None:
    text = "The rain fell.\nThe bread was old.\n"
    (tmp_path / "a.txt").write_text(text)
    file = str(tmp_path / "a.txt")
    vectors = np.load(io.BytesIO(pipe(embed_corpus, "-", given=text.encode())))
    assert vectors.shape[0] == 2
    rated = pipe(rate_corpus, "-", file, "--keep-identical", given=text.encode())
    assert rated.count(b"\n") == 2
    aligned = pipe(align_documents, file, file)
    assert aligned.count(b":") == 2 * aligned.count(b"\n") > 0
    assert pipe(align_documents, "-", file, "-o", "-", given=text.encode()) == aligned
    sentences = pipe(split_command, file).splitlines()
    assert [json.loads(line)["text"] for line in sentences] == text.splitlines()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["-", "-", "-o", "-"],
            "standard input can provide only one corpus; pass a file for the other",
        ),
        (["-", "b.txt", "--runner", "FlinkRunner"], "--runner cannot use pipes"),
        (["a.txt", "b.txt", "--format", "%"], "--format % writes several files"),
        (["a.txt", "b.txt", "--format", "dataset"], "--format dataset writes several files"),
        (["a.txt", "b.txt", "--format", "csv"], "unknown output format"),
        (["a.txt", "b.txt", "-o", "x.tsv", "--format", "tsv"], "--format requires --languages"),
        (["--languages", "."], "--languages writes one file per language pair; pass a folder"),
        (
            ["--languages", ".", "-o", "out", "--src-format", "tsv"],
            "--src-format conflicts with --languages",
        ),
    ],
)
def test_what_pipes_cannot_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("One.\n")
    try:
        assert mine_corpus(arguments) == 2
    except SystemExit as refused:
        assert refused.code == 2
    captured = capsys.readouterr()
    assert expected in captured.err.splitlines()[-1]
    assert captured.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_an_empty_pipe_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert mine_corpus([*inputs(world, "-"), "-q"]) == 2
    error = one_line(capsys.readouterr().err, "mine-corpus")
    assert "source-from-standard-input: is empty; pass a corpus" in error


def test_a_terminal_is_no_output_unless_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert mine_corpus(world.inputs()) == 2
    error = one_line(capsys.readouterr().err, "mine-corpus")
    assert "error: missing output: pass -o OUT, or -o - to print to the terminal" in error
    assert mine_corpus([*world.inputs(), "-o", "-", "-q"]) == 0
    assert capsys.readouterr().out


def test_a_reader_that_has_gone_ends_the_command_quietly(world: World) -> None:
    code = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"
    command = [sys.executable, "-c", code, *world.inputs(), "-q"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_format_of_one_side(world: World, pipe: Pipe) -> None:
    expected = world.mine("out.tsv").read_bytes()
    numbered = world.path("src.csv")
    numbered.write_text("".join(f"{row}\t{text}\n" for row, text in enumerate(world.source)))
    found = pipe(mine_corpus, *inputs(world, str(numbered)), "--src-format", "tsv")
    assert found == expected
    assert mine_corpus([*inputs(world, str(numbered)), "-q", "--src-format", "jsonl"]) == 2


def test_what_folders_hold_is_decided_by_a_look_at_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line, page = "The rain fell on {}.\n", "The rain fell on {0}. Then {0} was wet. It was late.\n"
    for name, text in (("lines", line), ("pages", page)):
        (tmp_path / name).mkdir()
        for place in range(3):
            words = (f"{place}{row}" for row in range(4))
            (tmp_path / name / f"{place}.txt").write_text("".join(map(text.format, words)))
    lines, pages, out = (str(tmp_path / name) for name in ("lines", "pages", "out.tsv"))
    with caplog.at_level(logging.INFO):
        assert mine_corpus([lines, pages, "-o", out, "--all"]) == 0
    assert f"{lines}: reads 3 files (0.txt, 1.txt, 2.txt) as sentences" in caplog.messages
    split = (
        f"{pages}: reads 3 files (0.txt, 1.txt, 2.txt) as documents, which are split into sentences"
    )
    assert split in caplog.messages
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert mine_corpus([lines, pages, "-o", out, "--all", "--tgt-format", "lines"]) == 0
    assert f"{pages}: reads 3 files (0.txt, 1.txt, 2.txt) as sentences" in caplog.messages


def test_folders_of_outputs_are_made(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    made = world.mine("new/folder/out.dataset")
    assert sorted(path.name for path in made.iterdir()) == ["README.md", "pairs.parquet"]
    arguments = [*world.inputs(), "-o", str(world.path("src.txt/out.dataset")), "-q"]
    assert mine_corpus(arguments) == 2
    error = one_line(capsys.readouterr().err, "mine-corpus")
    assert "src.txt is a file; name a folder" in error
