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
Command: TypeAlias = Callable[..., int]  # takes arguments and a name, both optional
AddArguments: TypeAlias = Callable[[argparse.ArgumentParser], None]


_REMEDIES = {
    errno.EACCES: "check its permissions",
    errno.EDQUOT: "free space on its disk",
    errno.EISDIR: "pass a file in it",
    errno.ENOENT: "check its path",
    errno.ENOSPC: "free space on its disk",
    errno.ENOTDIR: "check its path",
    errno.EPERM: "check its permissions",
    errno.EROFS: "choose another disk",
}


def run_command(main: Callable[[], int], program: str) -> int:
    """Run ``main``, report errors of the user, and return an exit status.

    Call it in the main thread: it sets signals, streams, garbage collection and OpenBLAS's threads
    of the process. After a ValueError, an OSError, an interrupt, SIGTERM, a lack of memory, or a
    missing module of an extra, it prints one line to stderr that begins with ``program``, and
    returns 2. After a broken pipe, as when a reader closes stdout, it returns 141. Other exceptions
    propagate. Without an exception, it returns the status of ``main``.

    Raises:
        ModuleNotFoundError: A module is missing that no extra installs.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # characters that a terminal lacks are escaped
            stream.reconfigure(errors="backslashreplace")
    # Products run in threads of ``miner.threads``. OpenBLAS, which reads this when it is loaded,
    # would start more threads in each of these, which wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Skips the collection of cycles at exit: half a second with torch's objects.
    atexit.register(gc.freeze)
    # Fewer collections while libraries load save a tenth of a second.
    gc.set_threshold(20_000)
    try:
        status = main()
        _flush_stdout()  # here, where a broken pipe can still be caught
        return status
    except BrokenPipeError:
        _drop_stdout()
        return 141  # 128 + SIGPIPE, as shells report programs that `| head` ended
    except KeyboardInterrupt as error:
        message = f"interrupted{error}"
    except (MemoryError, OSError, ValueError) as error:
        message = error_line(error)
    except ModuleNotFoundError as error:
        message = how_to_install(error) or ""
        if not message:
            raise
    message = " ".join(message.split("\n"))
    sys.stderr.write(f"{program}: error: {message}\n")
    return 2  # argparse's own status for a wrong command line


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:  # also a broken pipe, which is raised again as one
        _drop_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error


def _drop_stdout() -> None:
    """Discard buffered stdout, which the interpreter would flush as it exits."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def command(
    add_arguments: AddArguments, name: str
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Build a decorator that turns a function of arguments into a command.

    ``add_arguments`` adds options to a parser, which also gets ``--version``. The command takes a
    list of arguments (default: of the process) and a name for help and errors (default: ``name``).
    It calls the function with the parsed arguments, and returns the status of ``run_command`` or
    exits as argparse does. The function's docstring before ``Raises`` is the help's description.
    """

    def decorate(work: Callable[[argparse.Namespace], int]) -> Command:
        @wraps(work)
        def run(argv: Sequence[str] | None = None, prog: str = name) -> int:
            description = (work.__doc__ or "").partition("Raises:")[0]
            args = command_parser(add_arguments, prog, description).parse_args(argv)
            return run_command(lambda: work(args), prog)

        return run

    return decorate


def command_parser(
    add_arguments: AddArguments, prog: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Build a parser, call ``add_arguments`` with it, and add ``--version``."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add_arguments(parser)
    add_version(parser)
    return parser


@cache  # parsing the metadata takes time
def product_version() -> str:
    """Return the version of the installed Adit, or ``unknown``."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--version``, which prints the version and exits."""
    version = f"Adit {product_version()}"
    parser.add_argument("--version", action="version", version=version, help="print the version")


def parse_names(text: str) -> tuple[str, ...]:
    """Return distinct parts between commas, maybe empty or padded, in order."""
    return tuple(dict.fromkeys(text.split(",")))


def parse_number(text: str) -> float:
    """Parse text like ``float``, or return NaN if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_threshold(text: str) -> float:
    """Parse text like ``float``.

    Raises:
        ArgumentTypeError: The text is not a number, or is NaN.
    """
    if math.isnan(number := parse_number(text)):
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}")
    return number


def reject_repeats(option: str, given: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return the name and value pairs of a repeatable option as a dictionary.

    Raises:
        ValueError: A name is twice in ``given``. The message begins with ``option``.
    """
    values: dict[str, Value] = {}
    for name, value in given:
        if name in values:
            raise ValueError(f"{option}: {name} is given twice; pass it once")
        values[name] = value
    return values


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--quiet`` and ``--verbose``, which exclude each other."""
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    volume.add_argument("-v", "--verbose", action="store_true", help="print debugging details")


def error_line(error: Exception) -> str:
    """Return the message of an error for users, without ``[Errno 2]``.

    It begins with the file of an OSError, if known, or with ``out of memory`` for a MemoryError.
    For a full disk without a known file, it lists the outputs and folders that may be on it.
    """
    if isinstance(error, MemoryError):
        line = f"out of memory: {error}".removesuffix(": ")
        return f"{line}; end other programs, or use less input"
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {explain_errno(error)}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        places = f"the output, --work-dir, standard output or {tempfile.gettempdir()}"
        return f"{os.strerror(error.errno)}; free space on the disk of {places}"
    return error.strerror


def explain_errno(error: OSError) -> str:
    """Return the reason of an OSError and, for a common one, a remedy."""
    reason = os.strerror(error.errno) if error.errno else str(error.strerror)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{reason}; {remedy}" if remedy else reason
