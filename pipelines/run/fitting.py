"""Fit a run into memory, by each stage's needs and the size of shards."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from encoder import Encoder
from encoder.bag.encoder import BagEncoder
from encoder.joined import parts_of
from encoder.words import WordEncoder
from miner.choices import LINES
from miner.knn.core.rescore import unit_rows
from miner.knn.cost_model import Problem, rows_per_shard, tile_bytes
from miner.knn.exact import search_unit_rows
from miner.knn.method import IndexSpec
from miner.score_ranges import MIN_RANGE, RANGE_BYTES
from miner.storage.corpus.reader import measure_files
from miner.storage.corpus.repeats import BLOCK, BLOCK_BYTES
from miner.storage.documents.split import open_side
from miner.storage.layout import SIDES
from miner.storage.vectors.embeddings import open_embeddings, peek_dim
from miner.threads import thread_count
from pipelines import memory
from pipelines.context import RunContext
from pipelines.options import MARGIN, MiningOptions

# Peaks of stages (VmHWM) and arrays (tracemalloc), rounded up, of ``adit mine`` on 200,000 lines
# of 110 bytes per side and 16 dimensions (2026-11-21).
CHOSEN_BYTES = 240  # of a shard's row in selection: number, mean, pair, and finding the pair
CHOSEN_LIST_BYTES = 106  # of each neighbour of such a row, with the look-up in its own list
LINE_BYTES = 96  # of a rated line: the rows of its sentences, and their sorted pair
BATCH_BYTES = 128 << 20  # of records as objects of Python and Arrow, of vectors, or of output
WORDS_BYTES = 128 << 20  # of word vectors of the pairs that the judge scores at a time
KNOWN_BYTES = 272 << 20  # of the words that a bag caches (encoder.bag.known_words)
SLACK_BYTES = 160 << 20  # of allocators' reserves and of measurements that are too low
LIBRARY_BYTES = 640 << 20  # of libraries, if they are not measured
MIN_SHARD = 1 << 10  # rows, with a memory limit
MIN_UNLIMITED_SHARD = 1 << 15  # rows, without one; smaller shards save little and cost time
MAX_SHARDS = 64  # per side; reading more shards repeatedly costs more than searching
ENCODED_BYTES = 2  # per number, as float16
MAX_TRIED = 256  # dimensions of the small search that loads the libraries


@dataclass(frozen=True, kw_only=True)
class SideSize:
    """The numbers that decide how much memory a side needs.

    ``rows`` is its number of lines, ``text`` their bytes, ``dim`` the dimensions of its vectors,
    and ``width`` the bytes per stored dimension.
    """

    rows: int
    text: int
    dim: int
    width: int


Sizes: TypeAlias = Mapping[str, SideSize]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The estimated memory of each process of a run.

    ``options`` have the chosen rows per shard, and a k of at most the larger side's rows.
    ``libraries`` is bytes of libraries and encoders. ``stages`` are further bytes by stage name.
    """

    options: MiningOptions
    libraries: int
    stages: Mapping[str, int]

    @property
    def peak(self) -> int:
        """The estimated largest memory of a process of the run, in bytes."""
        return self.libraries + max(self.stages.values()) + SLACK_BYTES

    @property
    def largest(self) -> str:
        """The name of the stage that needs the most memory."""
        return max(self.stages, key=self.stages.__getitem__)


def measure_side(run: RunContext, side: str) -> SideSize:
    """Measure the lines and vectors of "source" or "target", without encoding.

    ValueError says that the corpus, its precomputed vectors or the encoder cannot be used, OSError
    that a file cannot be read. ModuleNotFoundError says that the encoder needs a missing package.
    """
    corpus = run.options.side(side)
    reader = open_side(corpus.path, corpus.input_format)
    size = measure_files(reader.files, input_format=reader.input_format)
    if corpus.embeddings is None:
        dim, width = run.encoder().dim, ENCODED_BYTES
    else:
        vectors = open_embeddings(
            corpus.embeddings, rows=size.rows, dim=corpus.dim, corpus=str(corpus.path)
        )
        dim, width = vectors.shape[1], vectors.dtype.itemsize
    return SideSize(rows=size.rows, text=size.text, dim=dim, width=width)


def fit_shards(run: RunContext) -> int:
    """Return the maximum rows per shard with which all pairs fit into memory.

    The result is at most ``options.rows_per_shard``. If ``options.memory`` is None, half of the
    machine's memory is the goal, and the result is at least 32,768 or that option, even if it does
    not fit. Errors of ``measure_side`` and, with a limit, ``fit_run`` are raised.
    """
    pairs = [run.for_part(name) for name in run.job.pairs]
    if run.options.memory is not None:
        corpora = [(run.for_part(part), side) for part, side in run.job.corpora]
        sizes = {part.folder.corpus(side): measure_side(part, side) for part, side in corpora}
        sides = ({side: sizes[pair.folder.corpus(side)] for side in SIDES} for pair in pairs)
        fits = map(fit_run, pairs, sides)
        return min(fit.options.rows_per_shard for fit in fits)
    options = pairs[0].options
    dims = [
        run.encoder().dim if side.embeddings is None else side.dim or peek_dim(side.embeddings)
        for side in (options.source, options.target)
    ]
    if not (known_dims := [dim for dim in dims if dim is not None]):
        return options.rows_per_shard  # the encode stage reports the error
    room = memory.allowed_bytes(options) - LIBRARY_BYTES
    return _rows_per_shard(options, max(known_dims), room, MIN_UNLIMITED_SHARD)


def fit_run(run: RunContext, sizes: Sizes) -> Fit:
    """Choose the largest shards with which a run fits into memory.

    ``sizes`` are by side. If ``options.memory`` is None, half of the machine's memory is the goal,
    and may be exceeded. Errors of ``load_libraries``, which is called, are raised.

    Raises:
        ValueError: The run needs more than ``options.memory``.
    """
    rows = [size.rows for size in sizes.values()]
    options = replace(run.options, k=min(run.options.k, max(*rows, 1)))
    dim = max(size.dim for size in sizes.values())
    libraries = load_libraries(run, dim)
    minimum = MIN_SHARD
    while minimum * MAX_SHARDS < max(rows) and minimum < options.rows_per_shard:
        minimum *= 2
    room = memory.allowed_bytes(options) - libraries - SLACK_BYTES
    fitted = replace(options, rows_per_shard=_rows_per_shard(options, dim, room, minimum))
    fit = Fit(options=fitted, libraries=libraries, stages=_stage_bytes(fitted, sizes))
    needed = max(fit.peak, memory.peak_bytes()) * memory.process_count(options)
    if options.memory is not None and needed > options.memory:
        raise ValueError(
            f"--memory {memory.show_size(options.memory)} is too low for this run of {rows[0]:,} x "
            f"{rows[1]:,} lines and {dim} dimensions, which needs {memory.show_size(needed)} "
            f"({memory.show_size(libraries)} for libraries; the largest stage is {fit.largest}); "
            "raise or omit it"
        )
    return fit


def _rows_per_shard(options: MiningOptions, dim: int, room: int, minimum: int) -> int:
    maximum = options.rows_per_shard
    minimum = min(minimum, maximum)
    threads = thread_count()
    rows = rows_per_shard(room, dim=dim, k=options.k, threads=threads, least=minimum, most=maximum)
    return rows or minimum


def _stage_bytes(options: MiningOptions, sizes: Sizes) -> dict[str, int]:
    rows = [size.rows for size in sizes.values()]
    source, target = (min(count, options.rows_per_shard) for count in rows)
    shard, longer, dim = max(source, target), max(rows), max(size.dim for size in sizes.values())
    line = sum(size.text / max(1, size.rows) for size in sizes.values())  # of both sides
    batch = BATCH_BYTES + round(8 * line * 32_768)
    tile = Problem(sources=source, targets=target, dim=dim, k=options.k)
    return {
        "read": batch + (0 if options.keeps_repeats else BLOCK_BYTES * min(BLOCK, longer)),
        "encode": BATCH_BYTES + 16 * shard,
        "search": tile_bytes(tile, threads=thread_count()),
        "merge": 80 * options.k * shard,
        "select": (CHOSEN_BYTES + CHOSEN_LIST_BYTES * options.k) * shard
        + RANGE_BYTES * MIN_RANGE
        + sum(rows)  # a byte marks each selected sentence
        + (LINE_BYTES * longer if options.alignment == LINES else 0),
        "align": batch + (0 if options.score == MARGIN else WORDS_BYTES),
        "export": batch,
    }


def load_libraries(run: RunContext, dim: int = MAX_TRIED) -> int:
    """Load a run's libraries and encoders, and return this process's bytes.

    The bytes are in use now, or for words that encoders will cache. A ``dim`` above 256 counts as
    256. Errors of ``encoder`` and ``word_encoders`` of ``run`` are raised, and ModuleNotFoundError
    if Beam or FAISS is required but missing.
    """
    import pipelines.run.steps

    if not run.options.runs_inside:
        import pipelines.run.beam  # noqa: F401
    known = known_bytes(run)
    if isinstance(run.options.method, IndexSpec):
        import faiss  # noqa: F401
    # Large enough for the compiled loops to be used.
    rows = unit_rows(np.random.default_rng(0).standard_normal((6000, min(dim, MAX_TRIED))))
    search_unit_rows(rows, rows, k=1)
    del rows
    memory.release_memory()
    return memory.resident_bytes() + known


def known_bytes(run: RunContext) -> int:
    """Load a run's encoders, and return the maximum bytes of their caches.

    Errors of encoders are raised, as in ``load_libraries``.
    """
    encoders: list[Encoder | WordEncoder] = []
    if run.options.source.embeddings is None:
        encoders += [run.for_part(part).side_encoder(side) for part, side in run.job.corpora]
    for pair in map(run.for_part, run.job.pairs):
        if pair.options.score != MARGIN:
            encoders += pair.word_encoders()
    parts = [part for encoder in encoders for part in parts_of(encoder)]
    bags = [part for part in parts if isinstance(part, BagEncoder)]
    bags += [encoder.namer for encoder in bags if encoder.namer is not None]
    networks = {id(part): getattr(part, "kept_bytes", 0) for part in parts}
    return KNOWN_BYTES * len(set(map(id, bags))) + sum(networks.values())
