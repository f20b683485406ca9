"""The command lines mine-corpus and embed-corpus.

What is heavy (Beam, torch, pyarrow) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eval.cli.runs import COMMANDS as RUN_COMMANDS
from eval.cli.runs import run_subcommand
from miner.commandline import run_command
from miner.storage.places import Place
from miner.storage.remote import RemotePath
from pipelines import progress
from pipelines.cli.arguments import embed_parser, mine_parser
from pipelines.cli.workdir import COMMANDS as WORK_COMMANDS
from pipelines.cli.workdir import work_command
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.resources.memory import parse_size

logger = logging.getLogger(__name__)


def mine_corpus(argv: list[str] | None = None) -> int:
    """Run ``mine-corpus``, or one of its commands for a run that was; the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in WORK_COMMANDS:
        return work_command(argv)
    if argv and argv[0] in RUN_COMMANDS:
        return run_subcommand(argv)
    parser = mine_parser()
    own, beam_options = _split(argv)
    args = parser.parse_args(own, argparse.Namespace(beam_options=beam_options))
    if beam_options and args.runner is None:
        parser.error("options after -- are for the --runner, which is not given")
    return run_command(lambda: _mine(args), parser.prog)


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and those after ``--``, which are Beam's."""
    end = argv.index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


def embed_corpus(argv: list[str] | None = None) -> int:
    """Run ``embed-corpus``; the exit status."""
    parser = embed_parser()
    args = parser.parse_args(argv)
    return run_command(lambda: _embed(args), parser.prog)


def _mine(args: argparse.Namespace) -> int:
    from pipelines.resources.memory import peak_bytes
    from pipelines.run.mining import mine_corpus as run
    from pipelines.stages.summary import describe, read_summary

    monitor = start_telling(args)
    if args.plan:
        from pipelines.resources.estimate import plan_run

        sys.stdout.write(plan_run(_mining_options(args, _planned_work_dir(args))) + "\n")
        return 0
    with _work_dir(args) as work_dir:
        options = _mining_options(args, work_dir)
        try:
            run(options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_after_interrupt(args)) from None
        summary = read_summary(options.work_dir)
    if not args.quiet:
        peak = max(peak_bytes(), monitor.peak_bytes)
        sys.stderr.write(describe(summary, monitor.seconds, peak) + "\n")
    return 0


def _after_interrupt(args: argparse.Namespace) -> str:
    if args.work_dir is None:
        return f"; {args.output} was not written (with --work-dir a second call could go on)"
    return f"; {args.output} was not written; the same command goes on from {args.work_dir}"


@contextmanager
def _work_dir(args: argparse.Namespace) -> Iterator[Place]:
    if args.work_dir is not None:
        yield args.work_dir
        return
    from miner.storage.pairs import check_output

    check_output(args.output)  # so that the temporary folder beside it can be made
    is_remote = isinstance(args.output, RemotePath)
    if is_remote and args.runner is not None:
        raise ValueError(
            f"{args.output}: workers elsewhere need a --work-dir that all of them reach, such as "
            f"{args.output.parent / 'work'}"
        )
    place = None if is_remote else args.output.parent
    with tempfile.TemporaryDirectory(prefix=f".{args.output.name}-", dir=place) as folder:
        yield Path(folder)


def _planned_work_dir(args: argparse.Namespace) -> Place:
    return args.work_dir or args.output.parent / f".{args.output.name}-"


def _mining_options(args: argparse.Namespace, work_dir: Place) -> MiningOptions:
    source, target = (
        CorpusOptions(
            path=path,
            language=language,
            input_format=args.input_format,
            embeddings=embeddings,
            dim=args.dim,
        )
        for path, language, embeddings in (
            (args.source, args.src_lang, args.src_embeddings),
            (args.target, args.tgt_lang, args.tgt_embeddings),
        )
    )
    return MiningOptions(
        source=source,
        target=target,
        output=args.output,
        work_dir=work_dir,
        encoder=args.encoder,
        k=args.k,
        margin=args.margin,
        retrieval=args.retrieval,
        threshold=args.threshold,
        align=args.align,
        index=args.index,
        precision=args.precision,
        scope=args.scope,
        margin_scope=args.margin_scope,
        document_pairs=args.document_pairs,
        memory=None if args.memory is None else parse_size(args.memory),
        keep_duplicates=args.keep_duplicates,
        max_rejected=args.max_rejected,
        shards=args.shards,
        workers=args.workers,
        runner=args.runner,
        beam_options=tuple(args.beam_options),
        filters=args.filters,
    )


def start_telling(args: argparse.Namespace) -> progress.Monitor:
    """Set up our own log lines, the libraries' only where asked for, and a monitor of progress."""
    level = logging.ERROR if args.quiet else logging.DEBUG if args.verbose else logging.INFO
    progress.log_to_stderr(level)
    # Beam logs each failure with its whole traceback; the stage's own error is told in one line.
    others = logging.WARNING if args.verbose else logging.CRITICAL
    logging.getLogger("apache_beam").setLevel(others)
    logging.getLogger().setLevel(others)
    threading.excepthook = _log_thread
    monitor = progress.Monitor(bars=sys.stderr.isatty() and not args.quiet)
    progress.install(monitor)
    return monitor


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    """Beam's threads fail with the workers they serve; why these ended is told elsewhere."""
    logger.debug("a thread of the runner failed", exc_info=ended.exc_value)


def _embed(args: argparse.Namespace) -> int:
    from pipelines.run.embed_file import embed_file

    start_telling(args)
    told = embed_file(
        args.corpus,
        args.output,
        encoder=args.encoder,
        input_format=args.input_format,
        dtype=args.dtype,
        language=args.lang,
        vocabulary=args.vocab,
        pretokenized=args.pretokenized,
        normalize=not args.no_normalize,
        precision=args.precision,
    )
    if not args.quiet:
        sys.stderr.write(told + "\n")
    return 0
