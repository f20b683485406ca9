"""Beam's job server, which an interrupt of the terminal leaves alone and the command takes with it.

    python -m pipelines.run.job_server JAVA ARGUMENT...

An interrupt is for the command, which cancels the job through the server. Beam ends the server by
an interrupt of its own, and waits for 5 seconds where that does nothing.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that a process gets when its parent has ended


def main() -> None:
    """Become the job server, in a session without a terminal."""
    os.setsid()
    if sys.platform == "linux":  # elsewhere it outlives a command that is killed
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
