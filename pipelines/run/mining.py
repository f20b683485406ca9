"""Run a whole mining job in this process, on workers, or on a Beam runner."""

import logging
import threading
from collections.abc import Sequence

import encoder
from miner.choices import LINES
from miner.filters import check_filter_languages
from miner.languages import identifier
from miner.storage import cache
from miner.storage.atomic import TEMPORARY
from miner.storage.layout import SIDES
from miner.storage.places import Place, RemotePath, remove_tree
from miner.threads import usable_cores
from pipelines.context import RunContext
from pipelines.options import Job, MiningOptions, check_options, job_of
from pipelines.progress import Monitor
from pipelines.run.fitting import fit_shards, measure_side
from pipelines.run.state import Ledger, exclusive_run, first_failure, start_ledger
from pipelines.run.steps import Step, execute, sources_of_elements, steps_of
from pipelines.stages.given import check_lines
from pipelines.stages.judge import resolve_score_method
from pipelines.stages.reading.language import decide_languages

logger = logging.getLogger(__name__)


def mine_corpus(options: MiningOptions, monitor: Monitor | None = None) -> None:
    """Mine two corpora, and write or replace ``options.outputs``.

    Outputs are not written if ``options.order`` is "input", or ``options.is_packaging_job``. Other
    files stay in ``options.work_dir``, and results there are reused. ``monitor`` shows progress,
    None makes a new one. Calls may overlap if their work folders and outputs differ.

    Raises:
        ValueError: An option or input is invalid, or another run uses the work folder. On workers
            or an engine, also if a file cannot be read or written, or memory is missing.
        OSError: A file cannot be read or written in this process, or the engine failed.
        RuntimeError: A local worker failed for another reason.
        ModuleNotFoundError: A required extra is not installed.
    """
    run_job(job_of(options), monitor)


def run_job(job: Job, monitor: Monitor | None = None) -> None:
    """Mine every language pair of a job as ``mine_corpus`` does."""
    for pair in job.pairs:
        check_options(job.parts[pair])
    run_steps(job, steps_of(job.whole), monitor)


def run_steps(job: Job, steps: Sequence[Step], monitor: Monitor | None = None) -> None:
    """Run steps in this process, on local workers, or on an engine.

    Options are not checked, as they are by ``check_options``.

    Raises:
        ValueError: As in ``mine_corpus``, whose other exceptions are also raised.
    """
    run, options = RunContext(job, monitor or Monitor()), job.whole
    if options.encoder == encoder.BEST:
        run = run.with_options(encoder=encoder.best_encoder())
    run = run.with_options(workers=_limit(options.workers))
    if options.source.embeddings is None:
        threading.Thread(target=identifier, daemon=True).start()  # loads along with the encoder
        run = run.with_options(precision=run.encoder().precision)
    options.work_dir.mkdir(parents=True, exist_ok=True)
    with exclusive_run(options.work_dir), cache.run_cache() as scratch:
        _remove_temporary_files(options.work_dir)
        start_ledger(run.folder, sources_of_elements(steps, run.job))
        run.monitor.started()
        if options.alignment == LINES:
            check_lines(run, [measure_side(run, side).rows for side in SIDES])
        run = decide_languages(run)
        for name in run.job.pairs:
            check_filter_languages(run.for_part(name).options.filters, run.for_part(name).languages)
        run = resolve_score_method(run)
        run = run.with_options(rows_per_shard=fit_shards(run))
        if run.options.runs_inside:
            execute(run, steps)
            return
        from pipelines.run.beam import submit

        try:
            submit(run, steps, scratch)
        except Exception as error:
            failure = first_failure(run.folder)
            if failure is None:
                Ledger(run.folder).note_failed("", error)
            elif failure.is_users:
                raise ValueError(failure.line) from None
            raise


def _limit(workers: int) -> int:
    if workers > (cores := usable_cores()):
        line = "--workers %d exceeds the %d available cores; using %d"
        logger.warning(line, workers, cores, cores)
    return min(workers, cores)


def _remove_temporary_files(work_dir: Place) -> None:
    if not isinstance(work_dir, RemotePath):
        for path in list(work_dir.rglob(f"{TEMPORARY}*")):
            remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)
