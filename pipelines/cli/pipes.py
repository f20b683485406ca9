"""Standard input, pipes and standard output, in the place of files."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TypeAlias

from miner.storage.places import Place
from miner.storage.streams import COMPRESSIONS, PARQUET_MAGIC
from miner.storage.writers import Origin, Output

Work: TypeAlias = Callable[[argparse.Namespace], int]

STANDARD = Path("-")
# What a saved pipe is called after its name, by its first bytes.
SUFFIXES = {magic: suffix for suffix, (magic, _) in COMPRESSIONS.items()}
SUFFIXES[PARQUET_MAGIC] = ".parquet"


def through_pipes(*inputs: str, ending: str | None = None) -> Callable[[Work], Work]:
    """Return what has a command read pipes, and write to standard output where OUT is ``-``.

    Without an OUT it does so, too, unless standard output is a terminal. What comes through a pipe
    is saved for the time of the command, as corpora are read more than once. ``inputs`` are the
    arguments that name corpora. ``ending`` is that of OUT's name, which decides its format, unless
    the arguments have a ``format``; None for commands that write to standard output themselves.
    """

    def decorate(work: Work) -> Work:
        @wraps(work)
        def run(args: argparse.Namespace) -> int:
            piped = [name for name in inputs if _is_pipe(getattr(args, name))]
            args.to_stdout = ending is not None and _goes_to_stdout(args)
            if not (piped or args.to_stdout):
                return work(args)
            form = (getattr(args, "format", None) or "").removeprefix(".")
            _check(args, piped, form)
            with tempfile.TemporaryDirectory(prefix="adit-") as folder:
                for name in piped:
                    setattr(args, name, _saved(getattr(args, name), Path(folder), name))
                if args.to_stdout:
                    args.output = Path(folder) / f"output.{form or ending}"
                status = work(args)
                if args.to_stdout and args.output.exists():
                    with args.output.open("rb") as file:
                        shutil.copyfileobj(file, sys.stdout.buffer)
                return status

        return run

    return decorate


def shown_output(args: argparse.Namespace) -> str:
    """Return how messages call the output."""
    return "standard output" if args.to_stdout else str(args.output)


def _is_pipe(place: Place) -> bool:
    return place == STANDARD or (isinstance(place, Path) and place.is_fifo())


def _goes_to_stdout(args: argparse.Namespace) -> bool:
    if args.output is None and sys.stdout.isatty() and not getattr(args, "plan", False):
        raise ValueError("name an output: -o OUT, or -o - for this terminal")
    return args.output in (None, STANDARD)


def _check(args: argparse.Namespace, piped: list[str], form: str) -> None:
    """Refuse what no pipe can give or take."""
    if sum(getattr(args, name) == STANDARD for name in piped) > 1:
        raise ValueError("standard input holds one corpus; name a file for the other")
    if getattr(args, "runner", None) is not None:
        raise ValueError(
            "--runner: workers elsewhere reach no pipes; name files for corpora and OUT"
        )
    if args.to_stdout and form:
        files = Output.named(f"output.{form}").files(Origin(languages=("src", "tgt")))
        if len(files) > 1:
            raise ValueError(f"--format {args.format}: is more than one file; name it by -o OUT")


def _saved(place: Place, folder: Path, name: str) -> Path:
    """Save what comes through a pipe under a name with the suffix that it should have."""
    is_standard = place == STANDARD
    with nullcontext(sys.stdin.buffer) if is_standard else place.open("rb") as stream:
        head = stream.read(max(map(len, SUFFIXES)))
        suffix = next((suffix for magic, suffix in SUFFIXES.items() if head.startswith(magic)), "")
        path = folder / f"{name}-from-{'standard-input' if is_standard else 'a-pipe'}{suffix}"
        with path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(stream, file)
    return path
