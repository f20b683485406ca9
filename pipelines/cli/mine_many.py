"""Run ``adit mine --languages``: every pair of many languages in one run."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from miner.storage.places import Place, same_file
from pipelines.cli.arguments import AUTO_PAIRS
from pipelines.cli.documents import decide_documents
from pipelines.cli.pipes import STANDARD
from pipelines.cli.running import after_interrupt, mining_options, set_up_logging, work_dir_of

# Options that are for two corpora: the fields of their arguments, which are empty without them.
TWO_CORPORA = (
    *(f"{side}_{name}" for side in ("src", "tgt") for name in ("lang", "format", "embeddings")),
    *("dim", "plan"),
)


def mine_languages(args: argparse.Namespace) -> int:
    """Run ``adit mine --languages``; return the exit status.

    Raises:
        ValueError, OSError: what cannot be read, written or done, in one line.
    """
    monitor = set_up_logging(args)
    from pipelines.many import ManyOptions, find_corpora, job_of_languages, write_multiway
    from pipelines.memory import peak_bytes
    from pipelines.run.mining import run_job
    from pipelines.stages.summary import describe_many, read_summaries, write_table

    if args.output in (None, STANDARD):
        raise ValueError("--languages: there is a file for each pair; name a folder by -o OUT")
    args.to_stdout = False
    for option in TWO_CORPORA:
        if getattr(args, option):
            name = "--" + option.replace("_", "-")
            raise ValueError(f"{name}: is for two corpora; leave it out with --languages")
    if args.document_pairs not in (None, AUTO_PAIRS):
        raise ValueError("--document-pairs FILE: is for two corpora; give auto with --languages")
    many = ManyOptions(
        corpora=args.languages,
        output=args.output,
        pairs=",".join(args.pairs) if args.pairs else ManyOptions.pairs,
        ending=(args.format or ManyOptions.ending).removeprefix("."),
    )
    if many.corpora.is_dir() and many.output.exists() and same_file(many.corpora, many.output):
        raise ValueError(f"{many.output}: is the folder of the corpora; name another for the pairs")
    decide_documents(args)
    with _folder(many.output), work_dir_of(args) as work_dir:
        corpora = find_corpora(many.corpora, work_dir, input_format=args.input_format)
        source, target, *_ = corpora.values()
        base = mining_options(args, work_dir, source, target)
        job = job_of_languages(many, base, corpora)
        if args.multiway and base.is_monotone:
            raise ValueError(
                "--multiway: --alignment monotone merges sentences; leave one of both out"
            )
        try:
            run_job(job, monitor)
        except KeyboardInterrupt as interrupt:
            raise after_interrupt(interrupt, args, "is not complete") from None
        summaries = read_summaries(job)
        write_table(many.output / "summary.tsv", summaries)
        if args.multiway:
            write_multiway(many, job)
    if not args.quiet:
        peak = max(peak_bytes(), monitor.peak_bytes)
        sys.stderr.write(describe_many(summaries, monitor.seconds, peak, args.work_dir) + "\n")
    return 0


@contextmanager
def _folder(output: Place) -> Iterator[None]:
    """Make the folder of the outputs; one that nothing was written to is removed again."""
    is_new = not output.exists()
    output.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new and isinstance(output, Path):
            with suppress(OSError):  # something was written
                output.rmdir()
        raise
