"""Logging, pipes instead of files, and work folders of commands."""

import argparse
import logging
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TypeAlias

from miner.storage.atomic import naming_errors
from miner.storage.layout import SIDES
from miner.storage.places import Place, RemotePath
from miner.storage.streams import COMPRESSIONS, PARQUET_MAGIC, ZIP_MAGIC, Pipe
from miner.storage.writers import Origin, Output
from pipelines import progress
from pipelines.cli.arguments import CORPORA
from pipelines.memory import parse_size
from pipelines.options import CorpusOptions, MiningOptions

Work: TypeAlias = Callable[[argparse.Namespace], int]

STANDARD = Path("-")
# Suffix of a saved pipe, by its first bytes.
SUFFIXES = {magic: suffix for suffix, (magic, _) in COMPRESSIONS.items()}
SUFFIXES[PARQUET_MAGIC] = ".parquet"

logger = logging.getLogger(__name__)


def set_up_logging(args: argparse.Namespace) -> progress.Monitor:
    """Set up logging by ``--quiet`` and ``--verbose``, and return a monitor.

    From then on, threads that fail print nothing, except with ``--verbose``.
    """
    level = logging.ERROR if args.quiet else logging.DEBUG if args.verbose else logging.INFO
    progress.log_to_stderr(level)
    # Beam logs each failure with a traceback, while the stage's own error is one line.
    others = logging.WARNING if args.verbose else logging.CRITICAL
    logging.getLogger("apache_beam").setLevel(others)
    logging.getLogger().setLevel(others)
    # Beam's threads fail when their workers end.
    threading.excepthook = lambda thread: logger.debug(
        "a thread of the runner failed", exc_info=thread.exc_value
    )
    bars = sys.stderr.isatty() and not args.quiet
    return progress.Monitor(progress.Bar if bars else progress.LogLines)


def supports_pipes(
    *inputs: str,
    ending: str | None = None,
    streams: Callable[[argparse.Namespace], bool] = lambda args: False,
) -> Callable[[Work], Work]:
    """Build a decorator of commands that read pipes and write to stdout.

    A pipe in the arguments ``inputs`` is replaced by the path of a temporary copy or, if
    ``streams`` is true of ``args`` and it is neither Parquet nor a zip file, by a ``Pipe``. If OUT
    is ``-`` or missing, and ``ending`` not None, ``args.to_stdout`` is True, and a temporary
    ``args.output``, in the format ``args.format`` or else ``ending``, is copied to stdout at the
    end. ValueError says that OUT is missing on a terminal without ``--plan``, or pipes are used
    with ``--runner``, an unknown format, several output files, or standard input twice.
    """

    def decorate(work: Work) -> Work:
        @wraps(work)
        def run(args: argparse.Namespace) -> int:
            piped = [name for name in inputs if _is_pipe(getattr(args, name))]
            args.to_stdout = ending is not None and _goes_to_stdout(args)
            if not (piped or args.to_stdout):
                return work(args)
            form = (getattr(args, "format", None) or "").removeprefix(".")
            _check_pipes(args, piped, form)
            with ExitStack() as stack:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="adit-"))
                for name in piped:
                    pipe = _open_pipe(getattr(args, name), name, stack)
                    is_saved = not streams(args) or pipe.read(0, 4) in (PARQUET_MAGIC, ZIP_MAGIC)
                    setattr(args, name, _save(pipe, Path(folder)) if is_saved else pipe)
                if args.to_stdout:
                    args.output = Path(folder) / f"output.{form or ending}"
                status = work(args)
                if args.to_stdout and args.output.exists():
                    with args.output.open("rb") as file, naming_errors("standard output"):
                        shutil.copyfileobj(file, sys.stdout.buffer)
                return status

        return run

    return decorate


def shown_output(args: argparse.Namespace) -> str:
    """Return OUT, or "standard output" if ``args.to_stdout``, for messages."""
    return "standard output" if args.to_stdout else str(args.output)


def _is_pipe(place: Place) -> bool:
    return place == STANDARD or (isinstance(place, Path) and place.is_fifo())


def _goes_to_stdout(args: argparse.Namespace) -> bool:
    if args.output is None and sys.stdout.isatty() and not getattr(args, "plan", False):
        raise ValueError("missing output: pass -o OUT, or -o - to print to the terminal")
    return args.output in (None, STANDARD)


def _check_pipes(args: argparse.Namespace, piped: list[str], form: str) -> None:
    if sum(getattr(args, name) == STANDARD for name in piped) > 1:
        raise ValueError("standard input can provide only one corpus; pass a file for the other")
    if getattr(args, "runner", None) is not None:
        raise ValueError("--runner cannot use pipes; pass file paths for SRC, TGT and -o")
    if args.to_stdout and form:
        files = Output.named(f"output.{form}").files(Origin(languages=("src", "tgt")))
        if len(files) > 1:
            raise ValueError(f"--format {args.format} writes several files; pass -o OUT")


def _open_pipe(place: Place, name: str, stack: ExitStack) -> Pipe:
    is_standard = place == STANDARD
    stream = sys.stdin.buffer if is_standard else stack.enter_context(place.open("rb"))
    pipe = Pipe(stream, "")
    head = pipe.read(0, max(map(len, SUFFIXES)))
    suffix = next((suffix for magic, suffix in SUFFIXES.items() if head.startswith(magic)), "")
    pipe.name = f"{name}-from-{'standard-input' if is_standard else 'a-pipe'}{suffix}"
    return pipe


def _save(pipe: Pipe, folder: Path) -> Path:
    path = folder / pipe.name
    pipe.release()
    with naming_errors(folder), path.open("wb") as file:
        shutil.copyfileobj(pipe.open(), file)
    return path


def mining_options(
    args: argparse.Namespace, work_dir: Place, source: CorpusOptions, target: CorpusOptions
) -> MiningOptions:
    """Build the options of a run from arguments with the fields' names.

    Others are ignored. Missing ones are defaults. A bad text in ``memory`` raises ValueError.
    """
    values = {**vars(args), "work_dir": work_dir, "source": source, "target": target}
    values |= {name: tuple(values.get(name, ())) for name in ("beam_options", "filters")}
    values["memory"] = parse_size(args.memory) if values.get("memory") is not None else None
    names = {field.name for field in fields(MiningOptions)}
    return MiningOptions(**{name: value for name, value in values.items() if name in names})


def sides_of(args: argparse.Namespace) -> list[CorpusOptions]:
    """Build the options of the source and of the target corpus, in this order.

    ``args`` are of ``add_corpora``, ``add_languages``, ``add_input_formats``, and maybe vectors.
    """
    values = vars(args)
    return [
        CorpusOptions(
            path=values[side],
            language=values[f"{short}_lang"],
            input_format=values[f"{short}_format"] or args.input_format,
            embeddings=values.get(f"{short}_embeddings"),
            dim=values.get("dim"),
        )
        for side, (short, _) in zip(SIDES, CORPORA, strict=True)
    ]


@contextmanager
def work_dir_of(args: argparse.Namespace) -> Iterator[Place]:
    """Yield the work folder of a run, for the ``with`` block.

    It is ``--work-dir``, which may not exist yet, or else a temporary folder for the block: next to
    a local OUT, whose folder is made, or in the system's folder for temporary files.

    Raises:
        ValueError: A run on an engine with a remote output has no ``--work-dir``.
        OSError: The temporary folder, or the folder of OUT, cannot be made.
    """
    if args.work_dir is not None:
        yield args.work_dir
        return
    parent, is_remote = args.output.parent, isinstance(args.output, RemotePath)
    if is_remote and args.runner is not None:
        raise ValueError(
            f"{args.output}: --runner requires a --work-dir that all workers can reach, such as "
            f"{parent / 'work'}"
        )
    if not is_remote:
        parent.mkdir(parents=True, exist_ok=True)  # if the output is a folder
    location = None if is_remote else parent
    with tempfile.TemporaryDirectory(prefix=f".{args.output.name}-", dir=location) as folder:
        yield Path(folder)


@contextmanager
def interruptible(args: argparse.Namespace, state: str) -> Iterator[None]:
    """Explain an interrupt of the ``with`` block in its message.

    Raises:
        KeyboardInterrupt: The block was interrupted. The message adds OUT, ``state`` and a remedy.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        advice = " (use --work-dir to make a run resumable)"
        if args.work_dir is not None:
            advice = f"; rerun the same command to resume from {args.work_dir}"
        raise KeyboardInterrupt(f"{interrupt}; {shown_output(args)} {state}{advice}") from None
