"""Runs that fail or are interrupted half way: one line, status 2, and the old output stays."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from miner.languages import identifier
from pipelines.cli.mine import embed_corpus, mine_corpus
from pipelines.options import MiningOptions
from pipelines.run.steps import MapStep, Step, steps_of
from tests.pipelines.conftest import OLD, Refused
from tests.pipelines.worlds import World, one_line, snapshot

WRITTEN = ["duplicates.parquet", "vectors.npy", "seal.json", "run.json", "out.jsonl"]


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load what is unpacked into a file when it is first used: it is not what is to fail here."""
    identifier()


@pytest.mark.parametrize("name", WRITTEN)
def test_a_full_disk_at_every_file(
    world: World,
    run: list[str],
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    really_replace = os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        really_replace(source, target)

    monkeypatch.setattr("os.replace", replace)
    error = refused(run)
    assert error.endswith(
        f"{name}: cannot be written: No space left on device; free space on its disk\n"
    )


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Writing beyond that size fails, half way through a file as on a full disk."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


# What fails first: the sentences (Parquet), the vectors (NumPy), the output.
@pytest.mark.parametrize("size", [100, 1500, 6000])
def test_a_write_that_fails_half_way(
    world: World, run: list[str], capsys: pytest.CaptureFixture[str], size: int
) -> None:
    before = snapshot(world.folder)
    with files_of_at_most(size):
        status = mine_corpus([*run, "-q"])
    assert status == 2
    assert "cannot be written: " in one_line(capsys.readouterr().err, "mine-corpus")
    assert snapshot(world.folder) == before


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("read_side", KeyboardInterrupt()),
        ("search_tile", KeyboardInterrupt()),
        ("search_tile", MemoryError("9 TiB")),
        ("export_pairs", KeyboardInterrupt()),
    ],
)
def test_a_run_that_ends_within_a_stage_leaves_nothing(
    world: World,
    run: list[str],
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    error: BaseException,
) -> None:
    def fail(*_: object) -> None:
        raise error

    def failing(options: MiningOptions) -> list[Step]:
        return [
            replace(step, stage=fail) if isinstance(step, MapStep) and step.name == stage else step
            for step in steps_of(options)
        ]

    monkeypatch.setattr("pipelines.run.mining.steps_of", failing)
    line = refused(run)
    interrupted = f"interrupted; {world.path('out.jsonl')} was not written (use --work-dir"
    assert (interrupted if isinstance(error, KeyboardInterrupt) else "out of memory: 9 TiB") in line


def test_a_run_that_was_interrupted_goes_on(
    world: World,
    run: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    run += ["--work-dir", str(world.path("work"))]
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.stages.export.write_pairs", interrupt)
        assert mine_corpus([*run, "-q"]) == 2
    work_dir, out = world.path("work"), world.path("out.jsonl")
    expected = (
        f"interrupted; {out} was not written; rerun the same command to resume from {work_dir}\n"
    )
    assert capsys.readouterr().err == f"mine-corpus: error: {expected}"
    assert out.read_bytes() == OLD
    monkeypatch.setattr(
        "pipelines.stages.searching.search.search_unit_rows", lambda *_, **__: pytest.fail("again")
    )
    assert mine_corpus([*run, "-q"]) == 0
    assert out.read_bytes() != OLD


def test_a_defect_keeps_the_place_where_it_happened(
    world: World, run: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def defective(*_: object, **__: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr("pipelines.stages.searching.search.search_unit_rows", defective)
    before = snapshot(world.folder)
    with pytest.raises(KeyError, match=r"^'a defect'$") as caught:
        mine_corpus([*run, "-q"])
    assert caught.traceback[-1].name == "defective"
    assert snapshot(world.folder) == before


@pytest.mark.parametrize("size", [0, 2000])
def test_embed_corpus_on_a_full_disk(
    world: World, capsys: pytest.CaptureFixture[str], tiny_encoder: str, size: int
) -> None:
    output = world.path("out.npy")
    output.write_bytes(OLD)
    before = snapshot(world.folder)
    arguments = [str(world.path("src.txt")), "-o", str(output), "--encoder", tiny_encoder]
    with files_of_at_most(size):
        assert embed_corpus([*arguments, "-q"]) == 2
    expected = f"embed-corpus: error: {output}: cannot be written: File too large\n"
    assert capsys.readouterr().err == expected
    assert snapshot(world.folder) == before
