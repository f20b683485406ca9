"""FAISS indexes from factory strings, which generate candidates.

Importing this module imports FAISS. Each ``IndexSpec`` must pass ``check_index``.
"""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import faiss
import numpy as np

from miner.arrays import NO_NEIGHBOUR, Matrix, Neighbours
from miner.knn.method import IndexSpec

logger = logging.getLogger(__name__)

CANDIDATES_PER_NEIGHBOUR = 4  # because compressed codes rank imprecisely

# Share of an inverted file's cells. With IVF1024,Flat over 50,000 English vectors of 384 dimensions
# and 5,000 French queries, 1/64, 1/32, 1/16 and 1/8 of the cells find .876, .908, .932 and .955 of
# the true 4 neighbours (.981, .990, .994, .997 of the nearest) in .16, .30, .54 and 1.07 times the
# time of exact search. Margins are means over all 4, so recall counts. Beyond 1/16, a flat index is
# as fast. HNSW32 with a breadth of 128 finds .992. (1 thread, 2-core Xeon, November 2026.)
PROBED_CELLS = 1 / 16
HNSW_BREADTH = 128

# FAISS's guideline, points per k-means centroid. It warns of fewer, and ignores more.
MIN_POINTS, MAX_POINTS = 39, 256
TRAINING_BYTES = 4 << 30  # limit of float32 vectors
MIN_CELLS = 256  # as of a PQ, for indexes that are trained without k-means (PCA, SQ)

ANY_DIM = 1024 * 75  # divisible by the subvectors of most product quantisers
PARAMETER = re.compile(r"(?!ht=)\w+=([1-9][0-9]{0,8})")  # ht: of polysemous codes, see below

# A trial of a GPU in another process, which FAISS aborts without kernels for the card.
TRIAL = """
import faiss
import numpy as np
index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(16))
index.add(np.eye(16, dtype=np.float32))
assert (index.search(np.eye(16, dtype=np.float32), 1)[1][:, 0] == np.arange(16)).all()
"""
TRIAL_SECONDS = 120  # the first use of a GPU may compile


def check_index(text: str) -> None:
    """Check that FAISS knows a factory string and its parameters.

    Parameters are ``NAME=NUMBER``, joined by commas, after a colon. A number is a whole number of
    1 to 999,999,999, without a sign or leading zeros.

    Raises:
        ValueError: FAISS does not know the string or a parameter, the string has a letter before
            the number 0, as in ``HNSW0``, or a parameter has another number, or is ``ht``.
    """
    factory, colon, parameters = text.partition(":")
    refusal = (
        f"--index {text!r}: is unknown; use exact, auto, cells, or a FAISS factory string such "
        "as IVF1024,Flat or HNSW32"
    )
    if re.search(r"[A-Za-z]0+(?!\d)", factory):
        raise ValueError(refusal)  # FAISS accepts 'HNSW0' and 'IVF0', and aborts when it uses them
    try:
        index = faiss.index_factory(ANY_DIM, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise ValueError(refusal) from error
    for parameter in parameters.split(",") if colon else []:
        try:
            if not PARAMETER.fullmatch(parameter):
                raise ValueError(parameter)  # FAISS accepts other numbers, and misbehaves
            _set_parameters(index, parameter)
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"--index {text!r}: {parameter!r} is not a parameter of this index with a number "
                "from 1; write for example IVF4096,Flat:nprobe=64 or HNSW32:efSearch=256"
            ) from error


def _set_parameters(index: faiss.Index, parameters: str) -> None:
    space: Any = faiss.ParameterSpace()  # its stubs lack an overload
    space.set_index_parameters(index, parameters)


def empty_index(spec: IndexSpec, dim: int) -> faiss.Index:
    """Return a new index without rows, with the parameters ``spec.build``.

    Raises ValueError if it cannot contain vectors of ``dim`` dimensions.
    """
    with _one_line(f"--index {spec.factory!r}: cannot contain vectors of {dim} dimensions"):
        index = faiss.index_factory(dim, spec.factory, faiss.METRIC_INNER_PRODUCT)
    _set_parameters(index, spec.build)
    return index


def cells_of(index: faiss.Index) -> int:
    """Return the largest number of k-means centroids in an index, or 0."""
    names = ("nlist", "ksub")
    return max(getattr(part, name, 0) for part in list(_parts(index)) for name in names)


def training_points(index: faiss.Index, rows: int) -> int:
    """Return how many of ``rows`` vectors to train an index on, 0 if trained."""
    if index.is_trained:
        return 0
    cells = max(MIN_CELLS, cells_of(index))
    affordable = max(MIN_POINTS * cells, TRAINING_BYTES // (4 * index.d))
    return min(rows, MAX_POINTS * cells, affordable)


def train_index(index: faiss.Index, sample: Matrix, *, factory: str) -> None:
    """Train an index on unit rows, float32 (P, D).

    Raises:
        ValueError: Rows are fewer than ``cells_of``, or FAISS fails. The message names ``factory``.
    """
    refusal = f"--index {factory!r}: cannot be trained on {len(sample)} sentences"
    if len(sample) < cells_of(index):
        raise ValueError(
            f"{refusal}, fewer than the {cells_of(index)} centroids of its cells or codes; use "
            "fewer cells, codes of fewer bits (such as PQ8x4), or --index exact"
        )
    parts = list(_parts(index))  # a list keeps them alive: transforms don't own quantisers
    for part in parts:
        if hasattr(part, "cp"):
            part.cp.min_points_per_centroid = 1  # disables a warning
        if hasattr(part, "do_polysemous_training"):
            part.do_polysemous_training = False  # 1.5 s per subquantiser, for an unused search
    with _one_line(refusal):
        index.train(sample)


def add_rows(index: faiss.Index, rows: Matrix, *, factory: str) -> None:
    """Add unit rows, float32 (M, D), maybe none, to an index.

    Ids continue the index's. Raises ValueError, which names ``factory``, if FAISS fails.
    """
    with _one_line(f"--index {factory!r}: cannot be filled with {len(rows)} sentences"):
        if len(rows):
            index.add(rows)


def set_breadth(index: faiss.Index, spec: IndexSpec) -> None:
    """Set search parameters of an index to defaults, then to ``spec.search``.

    By default, an inverted file searches 1/16 of its cells, and HNSW has a breadth of 128.
    """
    inverted = faiss.try_extract_index_ivf(index)
    if inverted is not None:
        inverted.nprobe = max(1, round(inverted.nlist * PROBED_CELLS))
    for part in _parts(index):
        if hasattr(part, "hnsw"):
            part.hnsw.efSearch = HNSW_BREADTH
    _set_parameters(index, spec.search)


def search_index(index: faiss.Index, queries: Matrix, *, count: int) -> Neighbours:
    """Find the ``count`` nearest rows of an index for unit rows (N, D).

    Neighbours are (N, ``count``), best first, ties in any order, with -1 and -inf if the index
    finds fewer rows. Cosines are as exact as the codes of the index.
    """
    products, ids = index.search(queries, count)
    products[ids == NO_NEIGHBOUR] = -np.inf
    return Neighbours(ids=ids.astype(np.int64), cosines=products)


def on_gpus(index: faiss.Index, query: Matrix, *, count: int) -> faiss.Index:
    """Return a copy of an index on all GPUs, or the index itself.

    Each GPU has all rows, and computes in float16. A trial searches ``query`` (1, D) for ``count``
    neighbours. Without a GPU, or if it fails, the index is returned. Each failure is logged once.
    """
    if not _gpus_work():
        return index
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = True
    try:
        moved = faiss.index_cpu_to_all_gpus(index, co=options)
        moved.search(query, count)
    except RuntimeError as error:
        _warn_once(_reason_of(error))
        return index
    return moved


@cache
def _gpus_work() -> bool:
    if not (hasattr(faiss, "get_num_gpus") and faiss.get_num_gpus()):
        return False
    command = [sys.executable, "-c", TRIAL]
    try:
        trial = subprocess.run(command, check=False, capture_output=True, timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        _warn_once(f"a trial search was not done after {TRIAL_SECONDS} s")
        return False
    if trial.returncode:
        last = trial.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        _warn_once(f"a trial search failed: {last}")
    return trial.returncode == 0


@cache
def _warn_once(reason: str) -> None:
    logger.warning(
        "--index: FAISS cannot use the GPU (%s) and takes longer on the CPU; use exact or cells",
        reason,
    )


def _reason_of(error: RuntimeError) -> str:
    return re.split(r"\.\w+:\d+: (?:Error: )?(?:'.*?' failed: )?", str(error))[-1].strip()


def _parts(index: Any) -> Iterator[Any]:  # noqa: ANN401 (kinds differ in their parts)
    yield index
    for name in ("base_index", "index", "storage", "quantizer"):
        if hasattr(index, name):
            yield from _parts(faiss.downcast_index(getattr(index, name)))
    for name in ("pq", "rq"):
        if hasattr(index, name):
            yield getattr(index, name)
    for place in range(index.chain.size() if hasattr(index, "chain") else 0):
        transform = faiss.downcast_VectorTransform(index.chain.at(place))
        if isinstance(transform, faiss.OPQMatrix):
            if transform.pq is None:  # FAISS would make an inaccessible one
                transform.pq = faiss.ProductQuantizer(transform.d_out, transform.M, 8)
            yield transform.pq


@contextmanager
def _one_line(refusal: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = _reason_of(error)
        raise ValueError(f"{refusal} ({reason}); use another index, or --index exact") from error
