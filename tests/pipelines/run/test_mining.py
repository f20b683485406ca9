"""A run as a function: side by side with others, in any host, and by both interpreters."""

from __future__ import annotations

import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from encoder import load_encoder
from miner.storage.layout import WorkFolder
from pipelines.cli.mine import mine_corpus as command
from pipelines.progress import Meter, Monitor
from pipelines.run import mining, state
from pipelines.run.beam import submit
from pipelines.run.mining import mine_corpus
from pipelines.run.state import start_ledger
from pipelines.run.steps import execute, sources_of_elements, steps_of
from tests.pipelines.worlds import World, make_world, snapshot


@pytest.mark.parametrize(
    "options",
    [
        {"shards": 3, "filters": ("short",)},
        {"index": "cells8:probes=3", "shards": 2},
        {"index": "IVF4,Flat", "shards": 2},
    ],
)
def test_both_interpreters_make_the_same_bytes(
    world: World, options: dict, one_faiss_thread: None
) -> None:
    """The output, and every file of every artefact."""
    made = []
    for engine in ("here", "beam"):
        folder = world.path(engine)
        folder.mkdir()
        run = world.run(f"{engine}/out.jsonl", folder / "work", **options)
        steps = steps_of(run.options)
        start_ledger(run.folder, sources_of_elements(steps, run.job))
        if engine == "here":
            execute(run, steps)
        else:
            submit(run.with_options(runner="DirectRunner"), steps, folder)
        kept = {
            name: content
            for name, content in snapshot(folder).items()
            if not name.startswith(("work/progress", "work/run.json"))
        }
        made.append(kept)
    assert made[0] == made[1]
    assert len([name for name in made[0] if name.endswith("seal.json")]) >= 10


class Noted(Monitor):
    """Notes the lengths of what is read, by the thread that reads."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        super().__init__(self._meter_of)

    def _meter_of(self, name: str, total: int | None, unit: str) -> Meter:
        self.threads.add(threading.get_ident())
        return Meter(name, total, unit)


def test_runs_side_by_side_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once, in threads, of which one fails; nothing of the host's is touched."""
    worlds = [make_world(tmp_path / str(seed), seed=seed) for seed in range(3)]
    expected = [world.mine("alone.jsonl").read_bytes() for world in worlds[:2]]
    worlds[2].path("src.npy").write_bytes(b"no vectors")
    together = threading.Barrier(3)
    really_execute = mining.execute

    def execute_together(*arguments: object) -> list:
        together.wait(60)
        return really_execute(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(mining, "execute", execute_together)
    before = (
        dict(os.environ),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        logging.getLogger().level,
        list(logging.getLogger().handlers),
        threading.excepthook,
    )
    monitors = [Noted() for _ in worlds]

    def run(number: int) -> None:
        world = worlds[number]
        options = world.options("out.jsonl", world.path("work"), rows_per_shard=20)
        mine_corpus(options, monitors[number])

    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(run, number) for number in range(3)]
    assert [future.exception() for future in done[:2]] == [None, None]
    assert isinstance(done[2].exception(), ValueError)
    assert [world.path("out.jsonl").read_bytes() for world in worlds[:2]] == expected
    assert [len(monitor.threads) for monitor in monitors] == [1, 1, 1]
    assert len(set().union(*(monitor.threads for monitor in monitors))) == 3
    assert set(monitors[0].seconds) >= {"start", "read", "embed", "search", "export"}
    assert before == (
        dict(os.environ),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        logging.getLogger().level,
        list(logging.getLogger().handlers),
        threading.excepthook,
    )


def test_the_precision_is_decided_once(
    tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever workers would choose for themselves, they are told what the run has chosen."""
    world = make_world(tmp_path)
    asked: list[str] = []
    real = load_encoder(tiny_encoder)

    def load(spec: str, *, precision: str) -> object:
        asked.append(precision)
        chosen = SimpleNamespace(name=real.name, dim=real.dim, precision="int8", encode=real.encode)
        chosen.for_language = lambda language: chosen
        return chosen

    monkeypatch.setattr("pipelines.context.load_encoder", load)
    seen: list[str] = []
    monkeypatch.setattr(mining, "execute", lambda run, *_: seen.append(run.options.precision))
    options = world.options("out.tsv", world.path("work"), encoder=tiny_encoder)
    source, target = (replace(side, embeddings=None) for side in (options.source, options.target))
    mine_corpus(replace(options, source=source, target=target))
    assert (asked, seen) == (["auto"], ["int8"])


def test_a_failed_run_says_so(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.path("src.txt").write_text("\n\n", encoding="utf-8")
    run = [*world.inputs(), "-o", str(world.path("out.tsv")), "-q"]
    assert command([*run, "--work-dir", str(world.path("work"))]) == 2
    error = capsys.readouterr().err.partition("error: ")[2]
    assert command(["status", str(world.path("work"))]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"{world.path('work')}: failed: {error.strip()}"


def test_asking_for_the_state_keeps_no_run_out(tmp_path: Path) -> None:
    """A run that starts while somebody looks waits for a moment; another run does not."""
    import fcntl

    with state.exclusive_run(tmp_path):
        assert state.is_locked(tmp_path)
        with pytest.raises(ValueError, match="another run"), state.exclusive_run(tmp_path):
            pass
    assert not state.is_locked(tmp_path)
    started = threading.Event()

    def start() -> None:
        with state.exclusive_run(tmp_path):
            started.set()

    with WorkFolder(tmp_path).lock.open("r") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        thread = threading.Thread(target=start)
        thread.start()
        assert not started.wait(0.1)
    assert started.wait(30)
    thread.join()


def test_no_more_workers_than_cores(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mining, "usable_cores", lambda: 1)
    with caplog.at_level(logging.WARNING, logger="pipelines"):
        mine_corpus(world.options("out.jsonl", world.path("work"), workers=100))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("--workers 100 exceeds the 1 available cores;")
    assert line.endswith(" using 1")
    assert world.path("out.jsonl").read_bytes() == world.mine("one.jsonl").read_bytes()
