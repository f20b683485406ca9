"""Running the graph: inside this process, in worker processes beside it, or on a Beam runner."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from encoder import BUNDLED
from miner.storage import cache
from miner.storage.atomic import TEMPORARY
from miner.storage.remote import RemotePath
from miner.threads import thread_count
from pipelines import progress
from pipelines.options import CorpusOptions, MiningOptions, check_options
from pipelines.resources.fitting import fit_shards
from pipelines.run.failures import first_failure, forget_failures
from pipelines.run.ledger import begin
from pipelines.run.locking import sole_run

if TYPE_CHECKING:
    from apache_beam.metrics.cells import DistributionResult
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineResult, PipelineRunner
    from apache_beam.transforms.environments import Environment

LEAST_TOLD = 0.05  # seconds
RUNNING = "running"


def mine_corpus(options: MiningOptions) -> None:
    """Mine two corpora; the pairs are in ``options.output``, all else in ``options.work_dir``.

    Raises:
        ValueError, OSError: what cannot be read, written or done, in one line.
    """
    check_options(options)
    if options.source.embeddings is None:
        from pipelines.stages.encode import encoder_of_process

        encoder_of_process(options.encoder)  # here, so that a wrong name is told at once
    options = fit_shards(options)
    options.work_dir.mkdir(parents=True, exist_ok=True)
    with sole_run(options.work_dir), _own_folder() as own:
        _sweep(options)
        _run_graph(options if options.runs_inside else _absolute(options), own / RUNNING)


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder on this machine for this run: there remote files are kept until it ends."""
    before = os.environ.get(cache.FOLDER)
    place = before and cache.cache_folder()
    with tempfile.TemporaryDirectory(prefix="adit-", dir=place) as folder:
        os.environ[cache.FOLDER] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[cache.FOLDER]
            if before is not None:
                os.environ[cache.FOLDER] = before


def _sweep(options: MiningOptions) -> None:
    """Remove the files that a run which was killed on this machine has left half written."""
    if options.runner is None and not isinstance(options.work_dir, RemotePath):
        for path in options.work_dir.rglob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)


def _run_graph(options: MiningOptions, running: Path) -> None:
    import apache_beam as beam

    from pipelines.run.graph import STAGES, build

    runner, beam_options, hints = _engine(options, running)
    pipeline = beam.Pipeline(runner=runner, options=beam_options)
    build(pipeline, options, hints)
    forget_failures(options)
    begin(options.work_dir, [stage.__name__ for stage in STAGES])
    try:
        with _threads_for(options), _workers_end_with(options, running):
            result = pipeline.run()
            result.wait_until_finish()
    except BaseException:
        failure = first_failure(options)
        if failure is not None:
            raise failure from None
        raise
    if not options.runs_inside:
        _tell(result)


def _engine(
    options: MiningOptions, running: Path
) -> tuple[PipelineRunner, PipelineOptions, Mapping[str, str]]:
    """The runner, its options, and the resource hints for the workers that encode."""
    from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
    from apache_beam.runners.runner import create_runner

    flags = [f"--direct_num_workers={options.workers}", *options.beam_options]
    name = options.runner or "DirectRunner"
    try:
        # The direct runner by its own name: "DirectRunner" would first try to download another one.
        local = name == "DirectRunner"
        runner = FnApiRunner(_workers_here(options, running)) if local else create_runner(name)
    except ImportError as error:
        raise ValueError(f"--runner {options.runner}: {error}") from error
    beam_options = PipelineOptions(flags)
    known = beam_options.get_all_options().keys()
    unknown = beam_options.get_all_options(retain_unknown_options=True).keys() - known
    if unknown:
        names = ", ".join(f"--{name}" for name in sorted(unknown))
        raise ValueError(f"{names}: no option of Beam's for --runner {options.runner}")
    standard = beam_options.view_as(StandardOptions)
    hints = dict(_hint(hint) for hint in standard.resource_hints)
    standard.resource_hints = []  # Beam would give them to all workers
    return runner, beam_options, hints


def _workers_here(options: MiningOptions, running: Path) -> Environment | None:
    """What starts worker processes on this machine; None for the runner's own process.

    They go on as long as there is a file ``running``.
    """
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    if options.workers == 1:
        return None
    level = logging.getLogger("pipelines").getEffectiveLevel()
    command = [sys.executable, "-m", "pipelines.run.worker", str(level), str(running)]
    # A terminal's interrupt is for this process, which ends its workers.
    shell = f"trap '' INT; exec {shlex.join(command)}"
    return SubprocessSDKEnvironment.from_command_string(shell)


def _hint(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--resource_hint {text}: is not NAME=VALUE, such as min_ram=16GB")
    return name, value


@contextmanager
def _threads_for(options: MiningOptions) -> Iterator[None]:
    """Let the worker processes on this machine share its cores."""
    name = "OMP_NUM_THREADS"
    if options.workers == 1 or name in os.environ:
        yield
        return
    os.environ[name] = str(max(1, thread_count() // options.workers))
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def _workers_end_with(options: MiningOptions, running: Path) -> Iterator[None]:
    """End the worker processes on this machine where the run is interrupted.

    Beam would wait for them, and not always tell them that they can go.
    """
    if options.workers == 1 or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        running.unlink(missing_ok=True)
        signal.default_int_handler(number, frame)

    running.touch()
    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(result: PipelineResult) -> None:
    """Hand what the workers measured to this process's monitor, if the runner knows it."""
    try:
        distributions = result.metrics().query()["distributions"]
    except NotImplementedError:  # Dask
        return
    by_kind: dict[str, dict[str, DistributionResult]] = {"milliseconds": {}, "memory": {}}
    for found in distributions:
        name = found.key.metric
        by_kind.setdefault(name.namespace, {})[name.name] = found.committed
    took = {name: (found.sum or 0) / 1000 for name, found in by_kind["milliseconds"].items()}
    seconds = {name: spent for name, spent in took.items() if spent >= LEAST_TOLD}
    peaks = [peak.max or 0 for peak in by_kind["memory"].values()]
    progress.note_workers(seconds, max(peaks, default=0))


def _absolute(options: MiningOptions) -> MiningOptions:
    """The same paths for processes with other working folders."""

    def absolute(side: CorpusOptions) -> CorpusOptions:
        embeddings = side.embeddings and side.embeddings.absolute()
        return replace(side, path=side.path.absolute(), embeddings=embeddings)

    is_folder = options.encoder != BUNDLED and Path(options.encoder).is_dir()
    return replace(
        options,
        source=absolute(options.source),
        target=absolute(options.target),
        output=options.output.absolute(),
        work_dir=options.work_dir.absolute(),
        document_pairs=options.document_pairs and options.document_pairs.absolute(),
        encoder=str(Path(options.encoder).absolute()) if is_folder else options.encoder,
    )
