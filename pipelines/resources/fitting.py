"""Fitting a run into memory: what each stage needs, and the size of shards that follows.

The figures were measured with mine-corpus on 200,000 x 200,000 lines of 110 bytes and 16
dimensions, each stage's peak by VmHWM, arrays by tracemalloc (2026-11-21); all were rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from miner.knn.cost_model import Problem, rows_per_shard, tile_bytes
from miner.score_ranges import MIN_RANGE, RANGE_BYTES
from miner.storage.corpus.repeats import BLOCK, BLOCK_BYTES
from miner.storage.layout import SOURCE, TARGET
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.resources.memory import (
    allowed_bytes,
    peak_bytes,
    process_count,
    release,
    resident_bytes,
    show_size,
)

# A row of a shard while pairs are chosen: its number, its mean, its pair and what finding that
# needs; and, for each of its neighbours, those of another shard's row and what is looked up there.
CHOSEN_BYTES, CHOSEN_LIST_BYTES = 240, 90
# A batch of records as Python's objects and as Arrow's, of vectors being made, or of output.
BATCH_BYTES = 128 << 20
# What allocators keep, and what was measured too small.
SLACK_BYTES = 160 << 20
# Where nothing is measured: of the libraries, about.
LIBRARY_BYTES = 640 << 20
LEAST_SHARD = 1 << 10  # under a bound
USUAL_SHARD = 1 << 15  # the least without one: smaller ones save little and cost time
MOST_SHARDS = 64  # of a side: past that, reading shards again and again costs more than searching
ENCODED_BYTES = 2  # a number, as float16
MOST_TRIED = 256  # dimensions of the small search that loads the libraries


@dataclass(frozen=True, kw_only=True)
class SideSize:
    """One side: its lines, their bytes of text, and its vectors: ``width`` bytes a number."""

    rows: int
    text: int
    dim: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How a run fits: its options with shards; bytes of the libraries and of each stage."""

    options: MiningOptions
    libraries: int
    stages: Mapping[str, int]

    @property
    def peak(self) -> int:
        """At most what the run should hold."""
        return self.libraries + max(self.stages.values()) + SLACK_BYTES


def measure_side(options: MiningOptions, side: str) -> SideSize:
    """Look how large one side is.

    Raises:
        ValueError: the corpus or its embeddings cannot be used.
    """
    from miner.storage.corpus.filesets import corpus_files, measure_files
    from miner.storage.vectors.embeddings import open_embeddings

    corpus = options.side(side)
    files = corpus_files(corpus.path, input_format=corpus.input_format)
    size = measure_files(files, input_format=corpus.input_format)
    if corpus.embeddings is None:
        dim, width = _encoder_dim(options), ENCODED_BYTES
    else:
        vectors = open_embeddings(
            corpus.embeddings, rows=size.rows, dim=corpus.dim, corpus=str(corpus.path)
        )
        dim, width = vectors.shape[1], vectors.dtype.itemsize
    return SideSize(rows=size.rows, text=size.text, dim=dim, width=width)


def _encoder_dim(options: MiningOptions) -> int:
    from pipelines.stages.encode import encoder_of_process

    return encoder_of_process(options.encoder).dim


def fit_shards(options: MiningOptions) -> MiningOptions:
    """The run with shards that its memory has room for.

    Raises:
        ValueError: the run does not fit into ``options.memory``, or an input cannot be used.
    """
    if options.memory is not None:
        sizes = {side: measure_side(options, side) for side in (SOURCE, TARGET)}
        return fit_run(options, sizes).options
    dims = [_dim_of(options, side) for side in (options.source, options.target)]
    known = max((dim for dim in dims if dim is not None), default=None)
    if known is None:
        return options  # the encode stage says what is wrong with the embeddings
    return _with_shards(options, known, allowed_bytes(options) - LIBRARY_BYTES, USUAL_SHARD)


def _dim_of(options: MiningOptions, side: CorpusOptions) -> int | None:
    from miner.storage.vectors.embeddings import peek_dim

    if side.embeddings is None:
        return _encoder_dim(options)
    return side.dim or peek_dim(side.embeddings)


def fit_run(options: MiningOptions, sizes: Mapping[str, SideSize]) -> Fit:
    """What a run of that size takes, in shards as large as memory allows.

    Raises:
        ValueError: the run does not fit into ``options.memory``.
    """
    rows = [size.rows for size in sizes.values()]
    dim = max(size.dim for size in sizes.values())
    libraries = load_libraries(options, dim)
    least = LEAST_SHARD
    while least * MOST_SHARDS < max(rows) and least < options.rows_per_shard:
        least *= 2
    room = allowed_bytes(options) - libraries - SLACK_BYTES
    fitted = _with_shards(options, dim, room, least)
    fit = Fit(options=fitted, libraries=libraries, stages=_stages(fitted, sizes))
    needed = max(fit.peak, peak_bytes()) * process_count(options)
    if options.memory is not None and needed > options.memory:
        stage = max(fit.stages, key=fit.stages.__getitem__)
        raise ValueError(
            f"--memory: {show_size(options.memory)} cannot hold this run of {rows[0]:,} x "
            f"{rows[1]:,} lines and {dim} dimensions, which needs {show_size(needed)} "
            f"({show_size(libraries)} for libraries; the largest stage is {stage})"
        )
    return fit


def _with_shards(options: MiningOptions, dim: int, room: int, least: int) -> MiningOptions:
    most = options.rows_per_shard
    least = min(least, most)
    rows = rows_per_shard(room, dim=dim, k=options.k, threads=_threads(), least=least, most=most)
    return replace(options, rows_per_shard=rows or least)


def _threads() -> int:
    from miner.threads import thread_count

    return thread_count()


def _stages(options: MiningOptions, sizes: Mapping[str, SideSize]) -> dict[str, int]:
    """Bytes that each stage takes beyond the libraries."""
    rows = {side: size.rows for side, size in sizes.items()}
    shard = {side: min(count, options.rows_per_shard) for side, count in rows.items()}
    dim, longer = max(size.dim for size in sizes.values()), max(rows.values())
    line = sum(size.text / max(1, size.rows) for size in sizes.values())  # of both sides together
    batch = BATCH_BYTES + round(8 * line * 32_768)
    tile = Problem(sources=shard[SOURCE], targets=shard[TARGET], dim=dim, k=options.k)
    return {
        "read": batch + (0 if options.keep_duplicates else BLOCK_BYTES * min(BLOCK, longer)),
        "encode": BATCH_BYTES + 16 * max(shard.values()),
        "search": tile_bytes(tile, threads=_threads()),
        "merge": 80 * options.k * max(shard.values()),
        "select": (CHOSEN_BYTES + CHOSEN_LIST_BYTES * options.k) * max(shard.values())
        + RANGE_BYTES * MIN_RANGE
        + sum(rows.values()),  # one byte says that a sentence is taken
        "export": batch,
    }


def load_libraries(options: MiningOptions, dim: int) -> int:
    """Load all that a run uses, by a small search; the bytes this process then holds."""
    import numpy as np
    import pyarrow.parquet  # noqa: F401

    import pipelines.run.graph  # noqa: F401
    from miner.knn.core.rescore import unit_rows
    from miner.knn.exact import search_both

    if options.source.embeddings is None:
        _encoder_dim(options)
    if options.index != "exact":
        import faiss  # noqa: F401
    # Large enough for the compiled loops to be used.
    rows = unit_rows(np.random.default_rng(0).standard_normal((6000, min(dim, MOST_TRIED))))
    search_both(rows, rows, k=1)
    del rows
    release()
    return resident_bytes()
