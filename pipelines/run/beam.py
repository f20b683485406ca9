"""Interpret the steps of a run by Apache Beam, on workers or on an engine.

Pipelines are chains of Create, ParDo, GroupByKey and Reshuffle, which every runner supports.
"""

import json
import logging
import secrets
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import apache_beam as beam
import grpc
from apache_beam.metrics.metric import Metrics
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.pvalue import PCollection
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.portability.portable_runner import JobServiceHandle, PortableRunner
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState, create_runner
from apache_beam.transforms.environments import Environment, SubprocessSDKEnvironment

from encoder.joined import absolute_spec
from miner.storage import cache
from miner.threads import ALL_THREADS, THREADS, given_threads, usable_cores
from pipelines.context import RunContext
from pipelines.memory import peak_bytes
from pipelines.options import WHOLE_JOB, CorpusOptions, Element, Job, MiningOptions
from pipelines.progress import Monitor
from pipelines.run.steps import GatherStep, MapStep, StageRunner, Step

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 10.0  # for interrupted workers to end
MESSAGE_LENGTH = 300  # characters of an engine's error
CANCELLING_SECONDS = 60.0  # for an engine to cancel a job
ENDED_ON_FLINK = ("FINISHED", "FAILED", "CANCELED")
RUNNING = "running"  # a file without which workers on this machine end


def submit(run: RunContext, steps: Sequence[Step], scratch: Path) -> None:
    """Run steps on Beam, and wait until they are done.

    ``scratch`` is an existing temporary folder of this run, which its local workers share. OSError
    says that the engine rejected or ended the job, ValueError (or SystemExit) that the runner or an
    option is unknown or malformed. RuntimeError says that a stage failed on a local worker.
    """
    parts = {name: _with_absolute_paths(options) for name, options in run.job.parts.items()}
    job = replace(run.job, parts=parts)
    runner, beam_options, hints = _engine(job.whole, scratch)
    pipeline = beam.Pipeline(runner=runner, options=beam_options)
    if job.whole.workers == 1:
        build(pipeline, steps, job, hints)
        result = _run_on_engine(pipeline, beam_options)
    else:
        build(pipeline, steps, job, hints, scratch)
        result = _run_with_workers(pipeline, scratch / RUNNING)
    _note_workers(run.monitor, result)


def build(
    pipeline: beam.Pipeline,
    steps: Sequence[Step],
    job: Job,
    hints: Mapping[str, str] | None = None,
    shared: Path | None = None,
) -> None:
    """Add the steps of a run to ``pipeline``.

    ``hints`` are Beam's resource hints for workers that encode, or None. ``shared`` is an existing
    folder, new for each call, that workers on this machine share; None on an engine.
    """
    run_id = secrets.token_hex(8)
    references = pipeline | beam.Create(job.corpora)
    for step in steps:
        if isinstance(step, MapStep):
            transform: beam.PTransform = beam.ParDo(Stage(step, job, run_id))
            if step.encodes:
                transform = transform.with_resource_hints(**hints or {})
        elif isinstance(step, GatherStep):
            transform = _gather(step)
        elif shared:
            transform = _distribute_on_demand(shared / step.name, job.whole.workers)
        else:
            transform = _reshuffle()
        references = references | step.name >> transform


class Stage(beam.DoFn):
    """A Beam function that calls the stage of a step on each element.

    Stages of one ``run_id``, a unique name, share an encoder per process. Metrics of Beam count
    elements and sentences, and have milliseconds per element and the peak bytes of workers.
    """

    def __init__(self, step: MapStep, job: Job, run_id: str) -> None:
        self._step, self._job, self._run_id = step, job, run_id
        self._done = Metrics.counter("stages", step.name)
        self._milliseconds = Metrics.distribution("milliseconds", step.name)
        self._peak = Metrics.distribution("memory", "peak bytes")

    def process(self, element: Element) -> Iterator[Element]:
        """Run the stage on an element, and yield its results or raise its error."""
        start = time.perf_counter()
        results = _stage_runner(self._run_id, self._job)(self._step, element)
        self._done.inc()
        self._milliseconds.update(round(1000 * (time.perf_counter() - start)))
        self._peak.update(peak_bytes())
        for name, count in self._step.account([reference for _, reference in results]).items():
            Metrics.counter("sentences", name).inc(count)
        yield from results


# The run of this worker process, whose threads share an encoder.
_current: dict[str, StageRunner] = {}
_starting = threading.Lock()


def _stage_runner(run_id: str, job: Job) -> StageRunner:
    with _starting:
        if run_id not in _current:
            _current.clear()
            _current[run_id] = StageRunner(RunContext(job))
        return _current[run_id]


@beam.ptransform_fn
def _gather(references: PCollection, step: GatherStep) -> PCollection:
    key, whole = step.key, step.whole

    def add_key(element: Element) -> tuple[str, Element]:
        part = WHOLE_JOB if whole else element.part
        return f"{part} {key(element.reference)}", Element(part, element.reference)

    def as_list(group: tuple[str, Iterable[Element]]) -> Element:
        elements = list(group[1])
        return Element(elements[0].part, [reference for _, reference in elements])

    return references | beam.Map(add_key) | beam.GroupByKey() | beam.Map(as_list)


@beam.ptransform_fn
def _reshuffle(references: PCollection) -> PCollection:
    # ``Reshuffle`` does nothing on Dask, nor on Flink right after another shuffle, because Flink
    # counts results of shuffled rows as shuffled. Groups help both, and it evens out their sizes.
    groups = references | beam.Map(lambda element: (str(element), element)) | beam.GroupByKey()
    return groups | beam.FlatMap(lambda group: group[1]) | beam.Reshuffle()


@beam.ptransform_fn
def _distribute_on_demand(references: PCollection, claims: Path, workers: int) -> PCollection:
    whole = references | beam.Map(lambda element: ("", element)) | beam.GroupByKey()
    lists = whole | beam.FlatMap(lambda group: [[*group[1]] for _ in range(workers)])
    return lists | beam.Reshuffle() | beam.ParDo(Claim(claims))


class Claim(beam.DoFn):
    """A Beam function that divides a list of elements among workers.

    The pipeline has the same list for each worker. Files in ``folder`` claim positions for good.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def process(self, elements: Sequence[Element]) -> Iterator[Element]:
        """Claim and yield the elements that are free, one at a time."""
        self._folder.mkdir(exist_ok=True)
        for position, element in enumerate(elements):
            try:
                (self._folder / str(position)).touch(exist_ok=False)
            except FileExistsError:
                continue
            yield element


def _engine(
    options: MiningOptions, scratch: Path
) -> tuple[PipelineRunner, PipelineOptions, Mapping[str, str]]:
    flags = [f"--direct_num_workers={options.workers}", *options.beam_options]
    name = options.runner or "DirectRunner"
    try:
        # By its own name, because "DirectRunner" would first try to download another runner.
        local = name == "DirectRunner"
        runner = FnApiRunner(_local_workers(options, scratch)) if local else create_runner(name)
    except ImportError as error:
        raise ValueError(f"--runner {name}: not installed ({error}); install it") from error
    except ValueError as error:
        known = "FlinkRunner, SparkRunner, DataflowRunner, PortableRunner or DirectRunner"
        raise ValueError(f"--runner {name}: unknown to Beam; use {known}") from error
    beam_options = PipelineOptions(flags)
    if isinstance(runner, PortableRunner):
        runner.__dict__["create_job_service_handle"] = _JobService
    else:
        names = beam_options.get_all_options().keys()
        all_names = beam_options.get_all_options(retain_unknown_options=True).keys()
        _refuse_options(all_names - names, f"of Beam for --runner {options.runner}")
    standard = beam_options.view_as(StandardOptions)
    hints = [hint.partition("=") for hint in standard.resource_hints]
    for hint, equals, _ in hints:
        if not equals:
            raise ValueError(f"--resource_hint {hint}: must be NAME=VALUE, such as min_ram=16GB")
    standard.resource_hints = []  # Beam would give them to all workers
    cloud = beam_options.view_as(GoogleCloudOptions)  # whose job name is used by every engine
    cloud.job_name = f"{cloud.job_name or 'adit'}-{secrets.token_hex(4)}"
    # A terminal's interrupt must not reach the job server: it has yet to cancel the job.
    server = beam_options.view_as(JobServerOptions)
    command = ["-m", "pipelines.run.job_server", server.job_server_java_launcher]
    server.job_server_java_launcher = sys.executable
    server.job_server_jvm_properties = [*command, *server.job_server_jvm_properties]
    return runner, beam_options, {hint: value for hint, _, value in hints}


def _refuse_options(unknown: Set[str], whose: str) -> None:
    if unknown:
        names = ", ".join(f"--{name}" for name in sorted(unknown))
        raise ValueError(f"{names}: unknown option {whose}; correct or omit it")


class _JobService(JobServiceHandle):
    def get_pipeline_options(self) -> Mapping[str, object]:
        options = super().get_pipeline_options()
        self._retain_unknown_options = True
        unknown = super().get_pipeline_options().keys() - options.keys()
        _refuse_options({name.split(":")[2] for name in unknown}, "of Beam and of the job server")
        return options


def _local_workers(options: MiningOptions, scratch: Path) -> Environment | None:
    if options.workers == 1:
        return None
    limit = given_threads()
    threads = limit or max(1, usable_cores() // options.workers)
    all_threads = limit * options.workers or usable_cores()
    level = logging.getLogger("pipelines").getEffectiveLevel()
    command = [
        *("env", f"{THREADS}={threads}", f"{ALL_THREADS}={all_threads}"),
        f"{cache.FOLDER}={scratch}",
        *(sys.executable, "-m", "pipelines.run.worker", str(level), str(scratch / RUNNING)),
    ]
    # A terminal's interrupt is for this process, which ends its workers.
    shell = f"trap '' INT; exec {shlex.join(command)}"
    return SubprocessSDKEnvironment.from_command_string(shell)


def _run_on_engine(pipeline: beam.Pipeline, options: PipelineOptions) -> PipelineResult:
    handler = signal.getsignal(signal.SIGINT)
    try:
        result = pipeline.run()
    except grpc.FutureTimeoutError as error:  # has no text
        server = options.view_as(PortableOptions)
        raise OSError(
            f"the job server at {server.job_endpoint} did not answer within "
            f"{server.job_server_timeout} s; check --job_endpoint, and that the server is running"
        ) from error
    except (grpc.RpcError, RuntimeError) as error:
        raise OSError(
            f"the engine did not start the job: {_first_line(error)}; check the options after --, "
            "and that Java is installed for Flink and Spark"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)  # Beam's own would end the job server at once
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_cancel(result, options)) from None
    except RuntimeError as error:
        raise OSError(f"the engine ended the job: {_first_line(error)}; see its log") from error
    except grpc.RpcError as error:
        raise OSError(
            f"the job server ended: {_first_line(error)}; rerun the command to resume, or start a "
            "server of your own, whose log says more, and pass its --job_endpoint"
        ) from error
    return result


def _first_line(error: Exception) -> str:
    text = error.details() if isinstance(error, grpc.Call) else str(error)
    return " ".join(str(text).partition("\n")[0].split())[:MESSAGE_LENGTH]


def _cancel(result: PipelineResult, options: PipelineOptions) -> str:
    flink = FlinkRunner.add_http_scheme(options.view_as(FlinkRunnerOptions).flink_master)
    name = options.view_as(GoogleCloudOptions).job_name
    try:
        result.cancel()
        end = time.monotonic() + CANCELLING_SECONDS
        while not PipelineState.is_terminal(result.state) or _runs_on_flink(flink, name):
            if time.monotonic() > end:
                return "; the engine was asked to cancel the job, but it still runs"
            time.sleep(0.2)
    except Exception as error:
        logger.debug("cancelling failed", exc_info=error)
        return "; the job could not be cancelled and may still run: cancel it on the engine"
    return "; the job was cancelled on the engine"


def _runs_on_flink(master: str, name: str) -> bool:
    if not master.startswith("http"):  # Flink in the job server, or another engine
        return False
    with urlopen(f"{master}/jobs/overview", timeout=CANCELLING_SECONDS) as answer:
        jobs = [job for job in json.load(answer)["jobs"] if job["name"] == name]
    running = [job["jid"] for job in jobs if job["state"] not in ENDED_ON_FLINK]
    for job in running:
        request = Request(f"{master}/jobs/{job}?mode=cancel", method="PATCH")
        urlopen(request, timeout=CANCELLING_SECONDS).close()
    return bool(running)


def _run_with_workers(pipeline: beam.Pipeline, running: Path) -> PipelineResult:
    # In a thread, since Beam would wait for its workers on an interrupt.
    ended: Future[PipelineResult] = Future()

    def run() -> None:
        try:
            result = pipeline.run()
            result.wait_until_finish()
            ended.set_result(result)
        except BaseException as error:
            ended.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    running.touch()
    try:
        thread.start()
        thread.join()
    finally:
        running.unlink(missing_ok=True)
        thread.join(SHUTDOWN_SECONDS)
    return ended.result()


def _note_workers(monitor: Monitor, result: PipelineResult) -> None:
    try:
        distributions = result.metrics().query()["distributions"]
    except NotImplementedError:  # Dask
        return
    for metric in distributions:
        name, value = metric.key.metric, metric.result  # attempted, if none is committed
        if value is not None and name.namespace == "milliseconds":
            monitor.note(name.name, (value.sum or 0) / 1000)
        elif value is not None and name.namespace == "memory":
            monitor.peak_bytes = max(monitor.peak_bytes, value.max or 0)


def _with_absolute_paths(options: MiningOptions) -> MiningOptions:
    def absolute(side: CorpusOptions) -> CorpusOptions:
        embeddings = side.embeddings and side.embeddings.absolute()
        return replace(side, path=side.path.absolute(), embeddings=embeddings)

    return replace(
        options,
        source=absolute(options.source),
        target=absolute(options.target),
        output=options.output.absolute(),
        work_dir=options.work_dir.absolute(),
        document_pairs=options.document_pairs and options.document_pairs.absolute(),
        encoder=absolute_spec(options.encoder),
    )
