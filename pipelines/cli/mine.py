"""Run ``adit mine``, ``rate`` and ``embed``, with late imports.

Functions return the status of ``run_command``. Wrong arguments raise SystemExit. ``argv`` are by
default the arguments of the process. ``prog`` is the command's name in messages. Of many runs, the
first that fails is the last.
"""

import argparse
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from miner.choices import LINES, TEXTS
from miner.commandline import command, run_command
from miner.storage.layout import CONFIG
from miner.storage.places import Place, same_file
from pipelines.cli import running
from pipelines.cli.arguments import AUTO_PAIRS, add_embedding, mine_parser, rate_parser
from pipelines.cli.config import command_lines, config_of, set_options
from pipelines.cli.documents import decide_documents
from pipelines.cli.main import MINING_COMMANDS, run
from pipelines.cli.pairs import check_streamed, rate_in_passing, rated_pairs
from pipelines.cli.running import STANDARD, shown_output, supports_pipes
from pipelines.progress import Monitor

logger = logging.getLogger(__name__)

_MANY = re.compile(r"--languages(=.*)?", re.DOTALL)
# Fields of options for two corpora, which are empty if the options are not used.
TWO_CORPORA = (
    *(f"{side}_{name}" for side in ("src", "tgt") for name in ("lang", "format", "embeddings")),
    *("dim", "plan"),
)


def mine_corpus(argv: Sequence[str] | None = None, prog: str = "mine-corpus") -> int:
    """Run ``adit mine`` once, or once per table ``[[run]]`` of ``--config``.

    If ``prog`` is "mine-corpus", ``argv`` can also begin with one of ``MINING_COMMANDS``.
    """
    argv = sys.argv[1:] if argv is None else argv
    if prog == "mine-corpus" and argv and argv[0] in MINING_COMMANDS:
        if len(argv) == 1 or not Path(argv[0]).exists():
            return run(argv[0], argv[1:], f"{prog} {argv[0]}")
        return run_command(lambda: _reject(argv[0]), prog)
    return run_command(lambda: _each_run(argv, prog, mine_parser, _mine_corpora), prog)


def _mine_corpora(argv: Sequence[str], prog: str) -> int:
    parser = mine_parser(prog, many=any(map(_MANY.fullmatch, _split(argv)[0])))
    args = _parse(parser, argv)
    if args.languages is not None:
        return _mine_languages(args)
    to_stdout = args.output in (None, STANDARD)
    for option in ("pairs", "multiway", *(() if to_stdout else ("format",))):
        if getattr(args, option):
            advice = "; to choose a format, name OUT with its suffix" if option == "format" else ""
            parser.error(f"--{option} requires --languages{advice}")
    return _mine(args)


def rate_corpus(argv: Sequence[str] | None = None, prog: str = "adit rate") -> int:
    """Run ``adit rate`` once, or once per table ``[[run]]`` of ``--config``."""
    argv = sys.argv[1:] if argv is None else argv
    return run_command(lambda: _each_run(argv, prog, rate_parser, _rate_pairs), prog)


def _rate_pairs(argv: Sequence[str], prog: str) -> int:
    parser = rate_parser(prog)
    args = _parse(parser, argv)
    if args.score == TEXTS:
        check_streamed(set_options(args, parser))
    return _rate(args)


def _each_run(
    argv: Sequence[str],
    prog: str,
    make_parser: Callable[[str], argparse.ArgumentParser],
    run_one: Callable[[Sequence[str], str], int],
) -> int:
    statuses = (run_one(line, prog) for line in command_lines(argv, lambda: make_parser(prog)))
    return next(filter(None, statuses), 0)


def _reject(name: str) -> int:
    raise ValueError(
        f"{name} is both a command and an existing path; write ./{name} for the corpus, or 'adit "
        f"{name}' for the command"
    )


def _parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    arguments, beam_options = _split(argv)
    args = parser.parse_args(arguments, argparse.Namespace(beam_options=beam_options))
    if beam_options and args.runner is None:
        parser.error("options after -- require --runner")
    args.config = config_of(args, parser)
    return args


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    end = argv.index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


@supports_pipes(
    "source", "target", ending="tsv", streams=lambda args: args.score == TEXTS and not args.target
)
def _rate(args: argparse.Namespace) -> int:
    monitor = running.set_up_logging(args)
    if args.score == TEXTS:
        return rate_in_passing(args, monitor)
    with rated_pairs(args) as write:
        return _run(args, monitor, write)


@supports_pipes("source", "target", ending="tsv")
def _mine(args: argparse.Namespace) -> int:
    return _run(args, running.set_up_logging(args))


def _run(
    args: argparse.Namespace,
    monitor: Monitor,
    finish: Callable[[Place], None] = lambda work_dir: None,
) -> int:
    from miner.storage.corpus.filesets import describe_folder
    from miner.storage.documents.split import describe_documents, is_documents
    from miner.storage.pairs import check_output
    from miner.storage.writers import Origin
    from pipelines.memory import peak_bytes
    from pipelines.run.estimate import describe_faster, plan_run
    from pipelines.run.mining import mine_corpus as run
    from pipelines.stages.summary import describe, next_steps, read_summary

    start = time.perf_counter()
    if args.alignment != LINES:
        decide_documents(args, [args.source, args.target])
    if args.plan:
        work_dir = args.work_dir or args.output.parent / f".{args.output.name}-"
        options = running.mining_options(args, work_dir, *running.sides_of(args))
        sys.stdout.write(plan_run(options) + "\n")
        return 0
    sides = running.sides_of(args)
    for side in sides:
        if side.path.is_dir():
            is_split = is_documents(side.path, side.input_format)
            logger.info((describe_documents if is_split else describe_folder)(side.path))
    if args.work_dir is None:  # the temporary folder is next to the output
        check_output(args.output, Origin(languages=(args.src_lang, args.tgt_lang)))
    with running.work_dir_of(args) as work_dir:
        options = running.mining_options(args, work_dir, *sides)
        with running.interruptible(args, "was not written"):
            run(options, monitor)
            if not options.is_packaging_job:
                finish(options.work_dir)
        if options.is_packaging_job:
            sys.stderr.write("job packaged; run it on its engine, such as with flink run\n")
            return 0
        summary = read_summary(options.work_dir)
    if not args.quiet:
        peak = max(peak_bytes(), monitor.peak_bytes)
        seconds = time.perf_counter() - start
        lines = [
            describe(summary, monitor.seconds, peak),
            *describe_faster(options, summary["options"]["encoder"], seconds),
            next_steps(summary, args.work_dir),
        ]
        sys.stderr.write("\n".join(lines) + "\n")
    _keep_config(args)
    return 0


def _mine_languages(args: argparse.Namespace) -> int:
    monitor = running.set_up_logging(args)
    from pipelines.many import ManyOptions, find_corpora, job_of_languages, write_multiway
    from pipelines.memory import peak_bytes
    from pipelines.run.mining import run_job
    from pipelines.stages.summary import describe_many, read_summaries, write_table

    if args.output in (None, STANDARD):
        raise ValueError("--languages writes one file per language pair; pass a folder with -o OUT")
    args.to_stdout = False
    if field := next(filter(vars(args).get, TWO_CORPORA), None):
        name = "--" + field.replace("_", "-")
        raise ValueError(f"{name} conflicts with --languages; omit one of them")
    if args.document_pairs not in (None, AUTO_PAIRS):
        raise ValueError(
            "--document-pairs FILE conflicts with --languages; use --document-pairs auto"
        )
    many = ManyOptions(
        corpora=args.languages,
        output=args.output,
        pairs=",".join(args.pairs) if args.pairs else ManyOptions.pairs,
        ending=(args.format or ManyOptions.ending).removeprefix("."),
    )
    if many.corpora.is_dir() and many.output.exists() and same_file(many.corpora, many.output):
        raise ValueError(f"{many.output}: contains the corpora; pass another folder with -o")
    decide_documents(args)
    with _folder(many.output), running.work_dir_of(args) as work_dir:
        corpora = find_corpora(many.corpora, work_dir, input_format=args.input_format)
        source, target, *_ = corpora.values()
        options = running.mining_options(args, work_dir, source, target)
        job = job_of_languages(many, options, corpora)
        if args.multiway and options.is_monotone:
            raise ValueError("--multiway conflicts with --alignment monotone; omit one of them")
        with running.interruptible(args, "is not complete"):
            run_job(job, monitor)
        summaries = read_summaries(job)
        write_table(many.output / "summary.tsv", summaries)
        if args.multiway:
            write_multiway(many, job)
    if not args.quiet:
        peak = max(peak_bytes(), monitor.peak_bytes)
        sys.stderr.write(describe_many(summaries, monitor.seconds, peak, args.work_dir) + "\n")
    _keep_config(args)
    return 0


def _keep_config(args: argparse.Namespace) -> None:
    from miner.storage.atomic import write_text

    if args.work_dir is not None and args.config:
        write_text(args.work_dir / CONFIG, args.config)
        if not args.quiet:
            sys.stderr.write(f"repeat: the options are in {args.work_dir / CONFIG} (--config)\n")


@contextmanager
def _folder(output: Place) -> Iterator[None]:
    is_new = not output.exists()
    output.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new and isinstance(output, Path):
            with suppress(OSError):  # it has files
                output.rmdir()
        raise


@command(add_embedding, "embed-corpus")
@supports_pipes("corpus", ending="npy")
def embed_corpus(args: argparse.Namespace) -> int:
    """Encode every line of a corpus, line i as row i of the output."""
    from pipelines.cli.embed import embed_file

    monitor = running.set_up_logging(args)
    line = embed_file(args, monitor)
    if not args.quiet:
        sys.stderr.write(f"{shown_output(args)}: {line}\n")
    return 0
