"""Beam's job server, out of reach of the terminal's interrupts.

Run it as ``python -m pipelines.run.job_server JAVA ARGUMENT...``.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # for Linux's prctl, to set a signal for when the parent ends


def main() -> None:
    """Replace this process by the command in its arguments, a job server.

    On Linux, it ends when its parent ends. OSError says that the command is not found.
    """
    os.setsid()
    if sys.platform == "linux":  # on other systems, it outlives a killed command
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
