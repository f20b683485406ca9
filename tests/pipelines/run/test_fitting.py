"""A bound on memory is kept, changes no result, and is refused where it cannot be kept."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.context import RunContext
from pipelines.memory import parse_size, show_size
from pipelines.options import ROWS_PER_SHARD, job_of
from pipelines.run.fitting import KNOWN_BYTES, fit_shards, known_bytes
from tests.pipelines.conftest import Refused
from tests.pipelines.worlds import World, make_world, write_lines

ROOT = Path(__file__).resolve().parents[3]
SPARE = 32 << 20
# Runs mine-corpus without a bound, or (given "bounded") with hardly more than it first says that it
# needs; the last line of its stdout is the peak of its resident set in bytes, and the bound.
RUN = f"""
import re, sys
from contextlib import redirect_stderr
from io import StringIO
from pipelines.cli.mine import mine_corpus
from pipelines.memory import parse_size, peak_bytes
kind, *arguments = sys.argv[1:]
bound = 0
if kind == "bounded":
    with redirect_stderr(StringIO()) as told:
        assert mine_corpus([*arguments, "--memory", "1M"]) == 2
    needed = re.search(r"which needs ([\\d.,]+ [MG]iB)", told.getvalue())[1]
    bound = parse_size(needed) + {SPARE}
    arguments += ["--memory", f"{{bound >> 10}}K"]
status = mine_corpus(arguments)
print(peak_bytes(), bound)
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("800M", 800 << 20),
        ("6G", 6 << 30),
        ("6g", 6 << 30),
        ("1.5GiB", 3 << 29),
        ("10 KB", 10 << 10),
        ("2T", 2 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "six", "-1G", "0", "0.0G", "1e9", "6X", "6G6", "inf", "9" * 309]
)
def test_what_is_no_size(text: str, run: list[str], refused: Refused) -> None:
    expected = f"mine-corpus: error: --memory {text}: must be a size such as 800M or 6G\n"
    assert refused([*run, f"--memory={text}"]) == expected


def test_sizes_are_shown_rounded_up() -> None:
    assert show_size((1 << 30) + 1) == "1.1 GiB"
    assert show_size(3 << 29) == "1.5 GiB"
    assert show_size(999) == "999 bytes"
    assert show_size(998.1) == "999 bytes"
    assert show_size((700 << 20) + 1) == "701 MiB"
    assert show_size(700 << 20) == "700 MiB"


def test_a_bound_that_cannot_hold_the_run(run: list[str], refused: Refused) -> None:
    error = refused([*run, "--memory", "20M"])
    assert re.fullmatch(
        r"mine-corpus: error: --memory 20.0 MiB is too low for this run of 40 x 50 lines and 16 "
        r"dimensions, which needs [\d.,]+ [MG]iB \([\d.,]+ [MG]iB for libraries; the largest stage "
        r"is \w+\); raise or omit it\n",
        error,
    )
    assert refused([*run, "--memory", "20M", "--plan"]) == error or "needs" in error


def test_shards_follow_from_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.run("out.tsv", world.path("work"))
    monkeypatch.setattr("pipelines.memory.physical_bytes", lambda: 1 << 40)
    assert fit_shards(run) == ROWS_PER_SHARD
    monkeypatch.setattr("pipelines.memory.physical_bytes", lambda: 1700 << 20)
    assert 1 << 14 < fit_shards(run) < ROWS_PER_SHARD


@pytest.mark.parametrize(
    ("languages", "given", "score", "bags"),
    [
        (("de", "en"), False, "words", 1),
        (("pl", "en"), False, "margin", 2),
        (("pl", "sv"), False, "words", 2),  # names
        (("pl", "en"), True, "words", 2),
        (("pl", "en"), True, "margin", 0),
    ],
)
def test_each_bag_keeps_words(
    world: World, languages: tuple[str, str], *, given: bool, score: str, bags: int
) -> None:
    options = world.run("out.tsv", world.path("work")).options
    source, target = (
        replace(side, language=code, embeddings=side.embeddings if given else None)
        for side, code in zip((options.source, options.target), languages, strict=True)
    )
    run = RunContext(job_of(replace(options, source=source, target=target, score=score)))
    assert known_bytes(run) == bags * KNOWN_BYTES


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Few products, but long vectors: searched at once, they take about 600 MB."""
    world = make_world(tmp_path_factory.mktemp("wide"))
    random = np.random.default_rng(3)
    target = random.standard_normal((200, 4096), dtype=np.float32)
    source = random.standard_normal((24_000, 4096), dtype=np.float32)
    source[:200] += target
    for short, vectors in (("src", source), ("tgt", target)):
        np.save(world.path(f"{short}.npy"), vectors.astype(np.float16))
        write_lines(world.path(f"{short}.txt"), [f"{short} {row}" for row in range(len(vectors))])
    return world


@pytest.mark.slow
def test_a_bound_is_kept_and_changes_nothing(wide: World) -> None:
    outputs = {kind: wide.path(f"{kind}.jsonl") for kind in ("free", "bounded")}
    # Each in a process of its own, side by side.
    runs = {
        kind: subprocess.Popen(
            [sys.executable, "-c", RUN, kind, *wide.inputs(), "-q", "-o", str(output)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for kind, output in outputs.items()
    }
    told = {kind: run.communicate()[0] for kind, run in runs.items()}
    assert [run.returncode for run in runs.values()] == [0, 0]
    peak, bound = map(int, told["bounded"].split())
    assert peak < bound  # what is said to be needed does
    unbounded, _ = map(int, told["free"].split())
    assert unbounded > bound
    assert outputs["bounded"].read_bytes() == outputs["free"].read_bytes()
