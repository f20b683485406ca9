"""A worker process on this machine, which logs its stages itself.

    python -m pipelines.run.worker LEVEL RUNNING

``LEVEL`` is the level, a number, of this product's log lines. Beam's own go to the parent process.
"""

import logging
import os
import sys
import threading
import time
from pathlib import Path

from pipelines import progress

LOOK_SECONDS = 0.3  # between looks at the parent and the file


def main() -> None:
    """Run as a Beam worker, until the parent or the file ``RUNNING`` is gone."""
    threading.Thread(target=_end_with, args=[os.getppid(), Path(sys.argv[2])], daemon=True).start()
    progress.log_to_stderr(int(sys.argv[1]))
    handler = logging.getLogger().handlers[0]
    handler.addFilter(lambda record: record.name.partition(".")[0] in progress.PACKAGES)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # Beam also sends its lines
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv[:1])


def _end_with(parent: int, running: Path) -> None:
    while os.getppid() == parent and running.exists():
        time.sleep(LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
