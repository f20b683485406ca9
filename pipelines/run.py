"""Running the graph inside this process."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.fitting import fit_shards
from pipelines.options import MiningOptions, check_options

logger = logging.getLogger(__name__)

LOCK = ".lock"


def mine_corpus(options: MiningOptions) -> None:
    """Mine two corpora; the pairs are in ``options.output``, all else in ``options.work_dir``.

    Raises:
        ValueError, OSError: what cannot be read, written or done, in one line.
    """
    check_options(options)
    if options.source.embeddings is None:
        from pipelines.embedding import encoder_of_process

        encoder_of_process(options.encoder)  # here, so that a wrong name is told at once
    options = fit_shards(options)
    options.work_dir.mkdir(parents=True, exist_ok=True)
    with _sole_run(options.work_dir):
        _run_graph(options)


def _run_graph(options: MiningOptions) -> None:
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

    from pipelines.graph import build, failures

    # The direct runner by its own name: "DirectRunner" would first try to download another one.
    pipeline = beam.Pipeline(runner=FnApiRunner())
    build(pipeline, options)
    failures.clear()
    try:
        pipeline.run().wait_until_finish()
    except BaseException:
        if failures:
            raise failures[0] from None
        raise


@contextmanager
def _sole_run(work_dir: Path) -> Iterator[None]:
    """Keep other runs out of the work folder; two would replace each other's artefacts."""
    with (work_dir / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"--work-dir {work_dir}: another run is at work there; wait, or name another folder"
            ) from None
        except OSError as error:
            logger.warning("%s: not locked against a second run: %s", work_dir, error.strerror)
        yield
