"""What the commands that run something for a while have in common: logging, and work folders."""

import argparse
import logging
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from miner.storage.layout import SIDES
from miner.storage.places import Place, RemotePath
from pipelines import progress
from pipelines.cli.arguments import CORPORA
from pipelines.cli.pipes import shown_output
from pipelines.memory import parse_size
from pipelines.options import CorpusOptions, MiningOptions

logger = logging.getLogger(__name__)


def set_up_logging(args: argparse.Namespace) -> progress.Monitor:
    """Set up our own log lines, the libraries' only where asked for, and a monitor of progress."""
    level = logging.ERROR if args.quiet else logging.DEBUG if args.verbose else logging.INFO
    progress.log_to_stderr(level)
    # Beam logs each failure with its whole traceback; the stage's own error is one line.
    others = logging.WARNING if args.verbose else logging.CRITICAL
    logging.getLogger("apache_beam").setLevel(others)
    logging.getLogger().setLevel(others)
    # How Beam's threads fail with the workers they serve.
    threading.excepthook = lambda ended: logger.debug(
        "a thread of the runner failed", exc_info=ended.exc_value
    )
    bars = sys.stderr.isatty() and not args.quiet
    return progress.Monitor(progress.Bar if bars else progress.LogLines)


def mining_options(
    args: argparse.Namespace, work_dir: Place, source: CorpusOptions, target: CorpusOptions
) -> MiningOptions:
    """Return the options of the arguments, which have the names of the fields."""
    given = {**vars(args), "work_dir": work_dir, "source": source, "target": target}
    given |= {name: tuple(given.get(name, ())) for name in ("beam_options", "filters")}
    given["memory"] = parse_size(args.memory) if given.get("memory") is not None else None
    names = {field.name for field in fields(MiningOptions)}
    return MiningOptions(**{name: value for name, value in given.items() if name in names})


def sides_of(args: argparse.Namespace) -> list[CorpusOptions]:
    """Return both corpora of the arguments, with what these say of them."""
    given = vars(args)
    return [
        CorpusOptions(
            path=given[side],
            language=given[f"{short}_lang"],
            input_format=given[f"{short}_format"] or args.input_format,
            embeddings=given.get(f"{short}_embeddings"),
            dim=given.get("dim"),
        )
        for side, (short, _) in zip(SIDES, CORPORA, strict=True)
    ]


@contextmanager
def work_dir_of(args: argparse.Namespace) -> Iterator[Place]:
    """Make the work folder of a run: the one given, else a temporary one beside the output.

    A ValueError says that workers elsewhere could not reach it.
    """
    if args.work_dir is not None:
        yield args.work_dir
        return
    place = args.output.parent
    if isinstance(args.output, RemotePath):
        if args.runner is not None:
            raise ValueError(
                f"{args.output}: workers elsewhere need a --work-dir that all of them reach, such "
                f"as {place / 'work'}"
            )
        place = None
    else:
        place.mkdir(parents=True, exist_ok=True)  # of an output that is a folder
    with tempfile.TemporaryDirectory(prefix=f".{args.output.name}-", dir=place) as folder:
        yield Path(folder)


@contextmanager
def interruptible(args: argparse.Namespace, state: str) -> Iterator[None]:
    """Let an interrupt say what it has left: the state of the output, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        how = " (with --work-dir a second call could go on)"
        if args.work_dir is not None:
            how = f"; the same command goes on from {args.work_dir}"
        raise KeyboardInterrupt(f"{interrupt}; {shown_output(args)} {state}{how}") from None
