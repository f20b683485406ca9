"""FAISS indexes on the machine's GPUs, where it has any that work."""

from __future__ import annotations

import logging
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

from miner.knn.faiss_index import reason_of

if TYPE_CHECKING:
    import faiss

    from miner.arrays import Matrix

logger = logging.getLogger(__name__)

# In a process of its own: a FAISS without kernels for a card aborts the process that uses it.
TRIAL = """
import faiss
import numpy as np
index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(16))
index.add(np.eye(16, dtype=np.float32))
assert (index.search(np.eye(16, dtype=np.float32), 1)[1][:, 0] == np.arange(16)).all()
"""
TRIAL_SECONDS = 120  # the first use of a GPU may compile


def on_gpus(index: faiss.Index, query: Matrix, *, count: int) -> faiss.Index:
    """The index copied to all GPUs, in float16 where its kind allows, or else the index itself.

    ``query`` (1, D) is searched for ``count`` neighbours, as not every index can be on a GPU and
    searched so there. Why a GPU is not used is logged once.
    """
    import faiss

    if not _working_gpus():
        return index
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = True
    try:
        moved = faiss.index_cpu_to_all_gpus(index, co=options)
        moved.search(query, count)
    except RuntimeError as error:
        _tell_once(reason_of(error))
        return index
    return moved


@cache
def _working_gpus() -> int:
    import faiss

    gpus: int = faiss.get_num_gpus() if hasattr(faiss, "get_num_gpus") else 0
    if not gpus:
        return 0
    try:
        trial = subprocess.run(
            [sys.executable, "-c", TRIAL], check=False, capture_output=True, timeout=TRIAL_SECONDS
        )
    except subprocess.TimeoutExpired:
        _tell_once(f"a trial search was not done after {TRIAL_SECONDS} s")
        return 0
    if trial.returncode:
        last = trial.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        _tell_once(f"a trial search failed: {last}")
        return 0
    return gpus


@cache
def _tell_once(reason: str) -> None:
    logger.warning("index: searched on the CPU, not on the GPU (%s)", reason)
