"""Run commands, report errors in one line, and add common options."""

import argparse
import atexit
import errno
import gc
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, wraps
from io import TextIOWrapper
from typing import TypeAlias, TypeVar

from miner.extras import DISTRIBUTION, how_to_install

Value = TypeVar("Value")
Command: TypeAlias = Callable[..., int]  # of arguments and a name, both optional
AddArguments: TypeAlias = Callable[[argparse.ArgumentParser], None]


def run_command(main: Callable[[], int], program: str) -> int:
    """Run ``main`` and return its exit status; report the user's errors in one line.

    ``ValueError`` and ``OSError`` are how this product reports bad input; they, an interrupt, the
    lack of memory and a missing module that an extra installs become ``PROGRAM: error: ...`` on
    stderr and status 2. SIGTERM counts as an interrupt, so that temporary files are removed. A
    reader of stdout that went away ends the program quietly with status 141. Any other exception
    is a defect and propagates with its traceback.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # characters that a terminal lacks are escaped
            stream.reconfigure(errors="backslashreplace")
    # NumPy computes products side by side in threads of ours (``miner.threads``); OpenBLAS, which
    # reads this when it is loaded, would have threads of its own wait for each other in each.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # At its end the interpreter looks at every object for cycles: half a second with torch's.
    atexit.register(gc.freeze)
    # While libraries load it would do so 250 times: a tenth of a second.
    gc.set_threshold(20_000)
    try:
        status = main()
        _flush_stdout()  # here, where a broken pipe can still be caught
        return status
    except BrokenPipeError:
        _drop_stdout()
        return 141  # 128 + SIGPIPE: what a shell reports of any program cut short by `| head`
    except KeyboardInterrupt as error:
        message = f"interrupted{error}"
    except (MemoryError, OSError, ValueError) as error:
        message = error_line(error)
    except ModuleNotFoundError as error:
        remedy = how_to_install(error)
        if remedy is None:
            raise
        message = remedy
    message = " ".join(message.split("\n"))
    sys.stderr.write(f"{program}: error: {message}\n")
    return 2  # argparse's own status for a wrong command line


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error


def _drop_stdout() -> None:
    """Drop the buffer of stdout, which the interpreter would write as it exits."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def command(
    add_arguments: AddArguments, name: str
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Return what makes a command of a function of its parsed arguments.

    Its docstring is the description in the command's help. The command takes arguments (default:
    those of the process) and the name in its help and errors.
    """

    def decorate(work: Callable[[argparse.Namespace], int]) -> Command:
        @wraps(work)
        def run(argv: Sequence[str] | None = None, prog: str = name) -> int:
            args = command_parser(add_arguments, prog, work.__doc__).parse_args(argv)
            return run_command(lambda: work(args), prog)

        return run

    return decorate


def command_parser(
    add_arguments: AddArguments, prog: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of a command, with its arguments and ``--version``."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add_arguments(parser)
    add_version(parser)
    return parser


@cache  # its metadata are parsed anew each time
def product_version() -> str:
    """Return the version of the installed distribution; ``unknown`` in a bare checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add ``--version``."""
    version = f"Adit {product_version()}"
    parser.add_argument("--version", action="version", version=version, help="print the version")


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names between commas, each once."""
    return tuple(dict.fromkeys(text.split(",")))


def parse_number(text: str) -> float:
    """Parse a number; what is none is not within any limits."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def reject_repeats(option: str, given: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return the values of a repeatable option by name; one that is given twice is a ValueError."""
    found: dict[str, Value] = {}
    for name, value in given:
        if name in found:
            raise ValueError(f"{option}: {name} is given twice; pass it once")
        found[name] = value
    return found


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--quiet`` and ``--verbose``, for commands that report progress."""
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    volume.add_argument("-v", "--verbose", action="store_true", help="print more, such as warnings")


def error_line(error: Exception) -> str:
    """Return what a user is shown of an error: no ``[Errno 2]``, but the file and what it has."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error}".removesuffix(": ")
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        places = f"the output, --work-dir, standard output or {tempfile.gettempdir()}"
        return f"{os.strerror(error.errno)}; free space in the place of {places}"
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    return str(error)
