"""A worker process on this machine: Beam's own, logging its stages as a single process would.

    python -m pipelines.run.worker LEVEL RUNNING

``LEVEL`` is that of our log lines, ``RUNNING`` a file without which it ends. Beam's own lines, and
its tracebacks, go to the process that started this one, which shows them if asked to.
"""

import logging
import os
import sys
import threading
import time
from pathlib import Path

from pipelines import progress

LOOK_SECONDS = 0.3


def main() -> None:
    """Do what the process that started this one asks for, until that is done or gone."""
    threading.Thread(target=_end_with, args=[os.getppid(), Path(sys.argv[2])], daemon=True).start()
    progress.log_to_stderr(int(sys.argv[1]))
    handler = logging.getLogger().handlers[0]
    handler.addFilter(lambda record: record.name.partition(".")[0] in progress.PACKAGES)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # Beam prints what it also sends
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv[:1])


def _end_with(parent: int, running: Path) -> None:
    while os.getppid() == parent and running.exists():
        time.sleep(LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
