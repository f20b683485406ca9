"""What ended a run, brought home: a runner hands on no more than the text of a worker's error."""

from __future__ import annotations

import copy
import json
import os
from contextlib import suppress

from miner.storage.atomic import atomic_file
from pipelines.options import MiningOptions

FAILURE = "failure.json"

# The errors of this process's stages, as they were raised.
failures: list[BaseException] = []


def note_failure(options: MiningOptions, error: BaseException) -> None:
    """Keep an error: here, and for another process in the work folder if it is the user's."""
    failures.append(copy.copy(error).with_traceback(error.__traceback__))  # the runner edits it
    if not options.runs_inside and isinstance(error, (ValueError, OSError, MemoryError)):
        with suppress(OSError), atomic_file(options.work_dir / FAILURE) as path:
            path.write_text(json.dumps(_line(error)), encoding="utf-8")


def forget_failures(options: MiningOptions) -> None:
    """A run begins."""
    failures.clear()
    (options.work_dir / FAILURE).unlink(missing_ok=True)


def first_failure(options: MiningOptions) -> BaseException | None:
    """The error that ended a run's stage, if it is known."""
    if failures:
        return failures[0]
    path = options.work_dir / FAILURE
    return ValueError(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"out of memory: {error}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)
