"""Running the graph inside this process."""

from __future__ import annotations

from pipelines.options import MiningOptions, check_options


def mine_corpus(options: MiningOptions) -> None:
    """Mine two corpora; the pairs are in ``options.output``, all else in ``options.work_dir``.

    Raises:
        ValueError, OSError: what cannot be read, written or done, in one line.
    """
    check_options(options)
    options.work_dir.mkdir(parents=True, exist_ok=True)
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
