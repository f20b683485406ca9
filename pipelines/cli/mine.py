"""Run ``adit mine`` and ``adit embed``.

What is heavy (Beam, torch, pyarrow) is imported when there is work to do, so ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from miner.choices import LINES
from miner.commandline import run_command
from miner.storage.places import Place
from miner.storage.remote import RemotePath
from pipelines import progress
from pipelines.cli.arguments import embed_parser, mine_parser, rate_parser
from pipelines.cli.documents import decide_documents
from pipelines.cli.main import MINING_COMMANDS, run
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.resources.memory import parse_size

logger = logging.getLogger(__name__)

_MANY = re.compile(r"--languages(=.*)?", re.DOTALL)


def mine_corpus(argv: Sequence[str] | None = None, prog: str = "mine-corpus") -> int:
    """Run ``adit mine``; return the exit status.

    As ``mine-corpus``, it also runs ``MINING_COMMANDS``, such as ``mine-corpus status``.
    """
    argv = sys.argv[1:] if argv is None else argv
    if prog == "mine-corpus" and argv and argv[0] in MINING_COMMANDS:
        if len(argv) == 1 or not Path(argv[0]).exists():
            return run(argv[0], argv[1:], f"{prog} {argv[0]}")
        return run_command(lambda: _refuse(argv[0]), prog)
    own, beam_options = _split(argv)
    parser = mine_parser(prog, many=any(_MANY.fullmatch(argument) for argument in own))
    args = parser.parse_args(own, argparse.Namespace(beam_options=beam_options))
    if beam_options and args.runner is None:
        parser.error("options after -- are for the --runner, which is not given")
    if args.languages is not None:
        from pipelines.cli.mine_many import mine_languages

        return run_command(lambda: mine_languages(args), parser.prog)
    for option in ("pairs", "format", "multiway"):
        if getattr(args, option):
            parser.error(f"--{option} is for --languages, which is not given")
    return run_command(lambda: _mine(args), parser.prog)


def rate_corpus(argv: Sequence[str] | None = None, prog: str = "adit rate") -> int:
    """Run ``adit rate``; return the exit status."""
    own, beam_options = _split(sys.argv[1:] if argv is None else argv)
    parser = rate_parser(prog)
    args = parser.parse_args(own, argparse.Namespace(beam_options=beam_options))
    if beam_options and args.runner is None:
        parser.error("options after -- are for the --runner, which is not given")
    return run_command(lambda: _mine(args), parser.prog)


def _refuse(name: str) -> int:
    raise ValueError(
        f"{name} is a command and a file or folder here, too; write ./{name} for the corpus, or "
        f"'adit {name}' for the command"
    )


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return our own arguments, and those after ``--``, which are Beam's."""
    end = argv.index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


def embed_corpus(argv: Sequence[str] | None = None, prog: str = "embed-corpus") -> int:
    """Run ``adit embed``; return the exit status."""
    parser = embed_parser(prog)
    args = parser.parse_args(argv)
    return run_command(lambda: _embed(args), parser.prog)


def _mine(args: argparse.Namespace) -> int:
    monitor = set_up_logging(args)  # its clock counts what is loaded now, too
    from miner.storage.corpus.filesets import describe_folder
    from miner.storage.documents.split import describe_documents
    from pipelines.resources.memory import peak_bytes
    from pipelines.run.mining import mine_corpus as run
    from pipelines.stages.summary import describe, next_steps, read_summary

    if args.alignment != LINES:
        decide_documents(args, [args.source, args.target])
    if args.plan:
        from pipelines.resources.estimate import plan_run

        options = mining_options(args, _planned_work_dir(args), *_sides(args))
        sys.stdout.write(plan_run(options) + "\n")
        return 0
    for corpus in (args.source, args.target):
        if corpus.is_dir():
            is_split = args.input_format == "documents"
            logger.info((describe_documents if is_split else describe_folder)(corpus))
    with _work_dir(args) as work_dir:
        options = mining_options(args, work_dir, *_sides(args))
        try:
            run(options, monitor)
        except KeyboardInterrupt as interrupt:
            left = after_interrupt(args, "was not written")
            raise KeyboardInterrupt(f"{interrupt}{left}") from None
        if options.only_packaged:
            sys.stderr.write("the job is packaged; run it on its engine, such as by flink run\n")
            return 0
        summary = read_summary(options.work_dir)
    if not args.quiet:
        peak = max(peak_bytes(), monitor.peak_bytes)
        sys.stderr.write(describe(summary, monitor.seconds, peak) + "\n")
        sys.stderr.write(next_steps(summary, args.work_dir) + "\n")
    return 0


def after_interrupt(args: argparse.Namespace, state: str) -> str:
    """Return what an interrupt has left: the state of the output, and how to go on."""
    if args.work_dir is None:
        return f"; {args.output} {state} (with --work-dir a second call could go on)"
    return f"; {args.output} {state}; the same command goes on from {args.work_dir}"


@contextmanager
def _work_dir(args: argparse.Namespace) -> Iterator[Place]:
    from miner.storage.pairs import Origin, check_output

    if args.work_dir is None:  # a temporary folder is made beside the output
        check_output(args.output, Origin(languages=(args.src_lang, args.tgt_lang)))
    with work_dir_of(args) as work_dir:
        yield work_dir


@contextmanager
def work_dir_of(args: argparse.Namespace) -> Iterator[Place]:
    """Make the work folder of a run: the one given, else a temporary one beside the output.

    Raises:
        ValueError: workers elsewhere could not reach it.
    """
    if args.work_dir is not None:
        yield args.work_dir
        return
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


def mining_options(
    args: argparse.Namespace, work_dir: Place, source: CorpusOptions, target: CorpusOptions
) -> MiningOptions:
    """Return the options of the arguments, which have the names of the fields."""
    given = {**vars(args), "work_dir": work_dir, "beam_options": tuple(args.beam_options)}
    given |= {"source": source, "target": target, "filters": tuple(args.filters)}
    given["memory"] = None if args.memory is None else parse_size(args.memory)
    names = [field.name for field in fields(MiningOptions)]
    return MiningOptions(**{name: given[name] for name in names if name in given})


def _sides(args: argparse.Namespace) -> list[CorpusOptions]:
    given = vars(args)
    return [
        CorpusOptions(
            path=given[side],
            language=given[f"{short}_lang"],
            input_format=args.input_format,
            embeddings=given[f"{short}_embeddings"],
            dim=args.dim,
        )
        for side, short in (("source", "src"), ("target", "tgt"))
    ]


def set_up_logging(args: argparse.Namespace) -> progress.Monitor:
    """Set up our own log lines, the libraries' only where asked for, and a monitor of progress."""
    level = logging.ERROR if args.quiet else logging.DEBUG if args.verbose else logging.INFO
    progress.log_to_stderr(level)
    # Beam logs each failure with its whole traceback; the stage's own error is one line.
    others = logging.WARNING if args.verbose else logging.CRITICAL
    logging.getLogger("apache_beam").setLevel(others)
    logging.getLogger().setLevel(others)
    threading.excepthook = _log_thread
    bars = sys.stderr.isatty() and not args.quiet
    return progress.Monitor(progress.Bar if bars else progress.LogLines)


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    """Log at debug level how Beam's threads fail with the workers they serve."""
    logger.debug("a thread of the runner failed", exc_info=ended.exc_value)


def _embed(args: argparse.Namespace) -> int:
    from pipelines.run.embed_file import embed_file

    monitor = set_up_logging(args)
    line = embed_file(
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
        monitor=monitor,
    )
    if not args.quiet:
        sys.stderr.write(line + "\n")
    return 0
