"""Fitting a run into memory: what each stage needs, and the size of shards that follows.

The figures were measured with mine-corpus on 200,000 x 200,000 lines of 110 bytes and 16
dimensions, each stage's peak by VmHWM, arrays by tracemalloc (2026-11-21); all were rounded up.
"""

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

# A row of a shard while pairs are chosen: its number, its mean, its pair and what finding that
# needs; and, for each of its neighbours, those of another shard's row and what is looked up there.
CHOSEN_BYTES, CHOSEN_LIST_BYTES = 240, 106
# A line that is rated: the rows that stand for its sentences, and their pair, sorted.
LINE_BYTES = 96
# A batch of records as Python's objects and as Arrow's, of vectors being made, or of output.
BATCH_BYTES = 128 << 20
# The vectors of the words of as many pairs as are judged at a time (miner.judge.features.TEXTS).
WORDS_BYTES = 128 << 20
KNOWN_BYTES = 272 << 20  # that a bag keeps of the words it has met (encoder.bag.known_words)
SLACK_BYTES = 160 << 20  # that allocators keep, and what was measured too small
LIBRARY_BYTES = 640 << 20  # where nothing is measured
MIN_SHARD = 1 << 10  # under a bound
USUAL_SHARD = 1 << 15  # the least without one: smaller ones save little and cost time
MAX_SHARDS = 64  # of a side: past that, reading shards again and again costs more than searching
ENCODED_BYTES = 2  # a number, as float16
MAX_TRIED = 256  # dimensions of the small search that loads the libraries


@dataclass(frozen=True, kw_only=True)
class SideSize:
    """One side: its lines, their bytes of text, and its vectors: ``width`` bytes a number."""

    rows: int
    text: int
    dim: int
    width: int


Sizes: TypeAlias = Mapping[str, SideSize]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How a run fits: its options with shards; bytes of the libraries and of each stage."""

    options: MiningOptions
    libraries: int
    stages: Mapping[str, int]

    @property
    def peak(self) -> int:
        """The most that the run should hold."""
        return self.libraries + max(self.stages.values()) + SLACK_BYTES

    @property
    def largest(self) -> str:
        """The stage that takes most."""
        return max(self.stages, key=self.stages.__getitem__)


def measure_side(run: RunContext, side: str) -> SideSize:
    """Measure one side; a ValueError says that its corpus or embeddings cannot be used."""
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
    """Return how many rows a shard may have for every pair to fit into memory, as ``fit_run``."""
    pairs = [run.for_part(name) for name in run.job.pairs]
    if run.options.memory is not None:
        corpora = [(run.for_part(part), side) for part, side in run.job.corpora]
        sizes = {own.folder.corpus(side): measure_side(own, side) for own, side in corpora}
        sides = ({side: sizes[pair.folder.corpus(side)] for side in SIDES} for pair in pairs)
        fits = map(fit_run, pairs, sides)
        return min(fit.options.rows_per_shard for fit in fits)
    options = pairs[0].options
    dims = [
        run.encoder().dim if side.embeddings is None else side.dim or peek_dim(side.embeddings)
        for side in (options.source, options.target)
    ]
    if not (known := [dim for dim in dims if dim is not None]):
        return options.rows_per_shard  # the encode stage says what is wrong with the embeddings
    room = memory.allowed_bytes(options) - LIBRARY_BYTES
    return _rows_per_shard(options, max(known), room, USUAL_SHARD)


def fit_run(run: RunContext, sizes: Sizes) -> Fit:
    """Find out what a run takes, in shards as large as memory allows; if none, a ValueError."""
    rows = [size.rows for size in sizes.values()]
    options = replace(run.options, k=min(run.options.k, max(*rows, 1)))
    dim = max(size.dim for size in sizes.values())
    libraries = load_libraries(run, dim)
    least = MIN_SHARD
    while least * MAX_SHARDS < max(rows) and least < options.rows_per_shard:
        least *= 2
    room = memory.allowed_bytes(options) - libraries - SLACK_BYTES
    fitted = replace(options, rows_per_shard=_rows_per_shard(options, dim, room, least))
    fit = Fit(options=fitted, libraries=libraries, stages=_stages(fitted, sizes))
    needed = max(fit.peak, memory.peak_bytes()) * memory.process_count(options)
    if options.memory is not None and needed > options.memory:
        raise ValueError(
            f"--memory {memory.show_size(options.memory)} is too low for this run of {rows[0]:,} x "
            f"{rows[1]:,} lines and {dim} dimensions, which needs {memory.show_size(needed)} "
            f"({memory.show_size(libraries)} for libraries; the largest stage is {fit.largest})"
        )
    return fit


def _rows_per_shard(options: MiningOptions, dim: int, room: int, least: int) -> int:
    most = options.rows_per_shard
    least = min(least, most)
    threads = thread_count()
    rows = rows_per_shard(room, dim=dim, k=options.k, threads=threads, least=least, most=most)
    return rows or least


def _stages(options: MiningOptions, sizes: Sizes) -> dict[str, int]:
    """Return the bytes that each stage takes beyond the libraries."""
    rows = [size.rows for size in sizes.values()]
    source, target = (min(count, options.rows_per_shard) for count in rows)
    shard, longer, dim = max(source, target), max(rows), max(size.dim for size in sizes.values())
    line = sum(size.text / max(1, size.rows) for size in sizes.values())  # of both sides together
    batch = BATCH_BYTES + round(8 * line * 32_768)
    tile = Problem(sources=source, targets=target, dim=dim, k=options.k)
    return {
        "read": batch + (0 if options.keeps_repeats else BLOCK_BYTES * min(BLOCK, longer)),
        "encode": BATCH_BYTES + 16 * shard,
        "search": tile_bytes(tile, threads=thread_count()),
        "merge": 80 * options.k * shard,
        "select": (CHOSEN_BYTES + CHOSEN_LIST_BYTES * options.k) * shard
        + RANGE_BYTES * MIN_RANGE
        + sum(rows)  # one byte says that a sentence is taken
        + (LINE_BYTES * longer if options.alignment == LINES else 0),
        "align": batch + (0 if options.score == MARGIN else WORDS_BYTES),
        "export": batch,
    }


def load_libraries(run: RunContext, dim: int = MAX_TRIED) -> int:
    """Load all that a run uses, by a small search; return the bytes this process will then hold."""
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
    memory.release()
    return memory.resident_bytes() + known


def known_bytes(run: RunContext) -> int:
    """Return what the encoders of a run, once decided, will keep of the words and pieces they meet.

    Of bags, one covers the twelve languages and all names, another all others.
    """
    encoders: list[Encoder | WordEncoder] = []
    if run.options.source.embeddings is None:
        encoders += [run.for_part(part).side_encoder(side) for part, side in run.job.corpora]
    for pair in map(run.for_part, run.job.pairs):
        if pair.options.score != MARGIN:
            encoders += pair.word_encoders()
    parts = [part for each in encoders for part in parts_of(each)]
    bags = [part for part in parts if isinstance(part, BagEncoder)]
    bags += [each.namer for each in bags if each.namer is not None]
    networks = {id(part): getattr(part, "kept_bytes", 0) for part in parts}
    return KNOWN_BYTES * len(set(map(id, bags))) + sum(networks.values())
