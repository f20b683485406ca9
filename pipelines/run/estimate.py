"""Estimate the time, memory and disk of a run for ``--plan``."""

import logging
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import encoder
from miner.knn import cost_model
from miner.knn.cost_model import Cost, Machine, Problem, measure_machine
from miner.knn.method import CellSpec, CorpusMethod, IndexSpec, auto_method, default_cells
from miner.storage.layout import DOCUMENT, SIDES
from miner.storage.vectors.embeddings import open_embeddings
from miner.threads import thread_count, using_threads
from miner.wording import counted
from pipelines.context import RunContext
from pipelines.memory import show_size
from pipelines.options import CorpusOptions, MiningOptions, check_options, job_of
from pipelines.progress import Meter, Monitor
from pipelines.run.fitting import Fit, SideSize, Sizes, fit_run, load_libraries, measure_side
from pipelines.run.mining import run_job
from pipelines.stages.judge import resolve_score_method
from pipelines.stages.reading.language import decide_languages, read_beginning
from pipelines.stages.searching.search import group_sizes

PAIR_BYTES = 130  # bytes of the numbers of a pair, before and after it is scored
# Seconds that Beam and its workers add to a run of any size, by runs of 10,000 and 100,000 lines
# compared with their trials (benchmarks/scaling.py, 2026-11-24).
WORKERS_SECONDS = 6.0
# Lines per side of the trial runs. The first loads libraries; the faster of the others counts, as a
# disturbance seldom slows both.
TRIAL_LINES = 2_048, 16_384, 16_384
LONG_SECONDS = 600.0  # from which the faster encoder is worth a line, and a second trial
FASTER = f"faster: about {{}} in all with --encoder {encoder.BUNDLED}, which finds fewer pairs"
# Time with the faster encoder, as shares of that with the best one (benchmarks/pipeline.py and
# benchmarks/scaling.py, 2026-11-26).
FASTER_SHARES = 1 / 3, 1 / 2
# Stages that all workers share; one worker does the others.
SHARED = ("read", "embed", "find", "score")
SEARCHING = ("prepare", "train", "fill", "cut", "search")  # stages that the cost model estimates


def plan_run(options: MiningOptions) -> str:
    """Describe the estimated time, memory and disk space of a run, in lines.

    All lines are counted, but only the first mined, in a temporary folder, without logging. Of a
    run with the default encoder for ten minutes or more, the time with the faster one is included.
    ValueError says that the run would reject its options or inputs, or its scope is "document",
    OSError that a file cannot be read or written, ModuleNotFoundError that an extra is missing.
    """
    lines, seconds = _plan(options)
    if _is_long(options, seconds):
        _, fast_seconds = _plan(replace(options, encoder=encoder.BUNDLED))
        lines.append(FASTER.format(show_time(fast_seconds)))
    return "\n".join(lines)


def describe_faster(options: MiningOptions, used: str, seconds: float) -> list[str]:
    """Suggest the faster encoder after a long run, in a list of lines.

    ``seconds`` are the run's, ``used`` its encoder. The list is empty below 600 s, with precomputed
    vectors, without ``encoder.USE`` in ``used``, or if ``options.encoder`` is not "best".
    """
    if encoder.USE not in used or not _is_long(options, seconds):
        return []
    return [FASTER.format(" to ".join(show_time(share * seconds) for share in FASTER_SHARES))]


def _is_long(options: MiningOptions, seconds: float) -> bool:
    given = all(options.side(side).embeddings for side in SIDES)
    return seconds >= LONG_SECONDS and options.encoder == encoder.BEST and not given


def _plan(options: MiningOptions) -> tuple[list[str], float]:
    process_seconds = time.process_time()
    check_options(options)
    if options.scope == DOCUMENT:
        raise ValueError(
            "--plan conflicts with --scope document, whose cost depends on the documents' sizes; "
            "omit one of them"
        )
    start = time.perf_counter()
    if options.encoder == encoder.BEST:
        options = replace(options, encoder=encoder.best_encoder())
    run = resolve_score_method(decide_languages(RunContext(job_of(options)), remember=False))
    options = run.options
    load_libraries(run)
    start_up = process_seconds + time.perf_counter() - start
    sizes = {side: measure_side(run, side) for side in SIDES}
    source, target = sizes.values()
    if source.dim != target.dim:
        raise ValueError(
            f"source vectors have {source.dim} dimensions, target vectors {target.dim}; embed both "
            "sides with the same encoder"
        )
    fit = fit_run(run, sizes)
    options = replace(options, k=fit.options.k)
    problem = Problem(sources=source.rows, targets=target.rows, dim=source.dim, k=options.k)
    machine = measure_machine(dim=problem.dim, k=options.k)
    method = options.method or auto_method(problem.sources, problem.targets)
    costs, cost = _costs(options, problem, machine, method)
    stages = {"start": start_up, **_stage_seconds(run, sizes, lines=problem.rows / 2)}
    times = _all_seconds(options, stages, cost)
    why = "chosen by --index auto" if options.index == "auto" else "chosen by --index"
    work, output = map(show_size, disk_bytes(fit.options, sizes))
    lines = [
        *(_describe_side(options, side, size) for side, size in sizes.items()),
        f"search: {method} ({why}), {options.k} neighbours per line in both directions",
        _describe_products(machine),
        _describe_memory(fit),
        f"disk: at most about {work} for the work folder and {output} for {options.output}",
        "",
        *_table(costs, cost, method),
        "",
        _describe_times(options, machine, times, is_whole=cost is not None),
    ]
    return lines, sum(times.values())


def _describe_side(options: MiningOptions, side: str, size: SideSize) -> str:
    corpus = options.side(side)
    vectors = corpus.embeddings or f"encoder {options.encoder}"
    return (
        f"{side}: {size.rows:,} lines of {corpus.path}, {show_size(size.text)} of text; "
        f"{size.dim} dimensions from {vectors}"
    )


def _describe_products(machine: Machine) -> str:
    ways = {"int8": machine.int8, "int16": machine.int8, "bfloat16": "torch", "float32": "BLAS"}
    rates = (
        f"{precision} by {ways[precision]} {rate / 1e9:,.3g}"
        for precision, rate in machine.products.items()
    )
    return f"products: {', '.join(rates)} (10^9 operations per second of one thread)"


def _describe_memory(fit: Fit) -> str:
    bound = fit.options.memory
    limit = f"of the {show_size(bound)} allowed" if bound else "without a limit (--memory)"
    return (
        f"memory: at most about {show_size(fit.peak)} {limit}: {show_size(fit.libraries)} for "
        f"libraries, and {show_size(fit.stages[fit.largest])} for the largest stage, "
        f"{fit.largest}, with up to {fit.options.rows_per_shard:,} lines per side at a time"
    )


def disk_bytes(options: MiningOptions, sizes: Sizes) -> tuple[int, int]:
    """Estimate the bytes of a full work folder, and of the output as text.

    ``options`` are of a ``Fit``, ``sizes`` by side, source first. A FAISS index counts as float32.
    """
    rows = [size.rows for size in sizes.values()]
    method = options.method or auto_method(*rows)
    # Lists of a side's neighbours, by group of the other side's shards or by range of cells.
    shards = (-(-count // options.rows_per_shard) for count in reversed(rows))
    parts: list[float] = [len(group_sizes(count)) for count in shards]
    if isinstance(method, CellSpec):
        parts = [cost_model.PARTS, cost_model.PARTS]
    work = 0.0
    for size, part in zip(sizes.values(), parts, strict=True):
        sentences = size.text + 24 * size.rows
        vectors = size.rows * (8 + size.dim * size.width)
        lists = size.rows * options.k * 12 * (part + 1.0)  # by tile, and merged
        if isinstance(method, CellSpec):
            lists += size.rows * 4 * (cost_model.PARTS + method.probes)
        index = size.rows * (4 * size.dim + 8) if isinstance(options.method, IndexSpec) else 0
        work += sentences + vectors + lists + index
    pairs = {"forward": rows[0], "backward": rows[1]}.get(options.retrieval, min(rows))
    text = sum(size.text / max(1, size.rows) for size in sizes.values())
    return round(work) + PAIR_BYTES * pairs, round((text + 24) * pairs)


def _costs(
    options: MiningOptions, problem: Problem, machine: Machine, method: CorpusMethod
) -> tuple[list[Cost], Cost | None]:
    inverted = re.fullmatch(r"IVF(\d+),Flat", str(method))
    cells = int(inverted[1]) if inverted else default_cells(max(problem.sources, problem.targets))
    costs = [
        cost_model.exact_cost(problem, machine, options.product_precision),
        cost_model.cells_cost(problem, machine),
        cost_model.index_cost(problem, machine, cells),
    ]
    kind = "cells" if isinstance(method, CellSpec) else str(method)
    return costs, next((cost for cost in costs if cost.method.startswith(kind)), None)


def _table(costs: Sequence[Cost], chosen: Cost | None, method: CorpusMethod) -> list[str]:
    rows = [("search", "operations", "time", "finds")]
    for cost in costs:
        finds = "every neighbour" if cost.method == "exact" else "most"
        finds += " <- chosen" if cost is chosen else ""
        rows.append((cost.method, f"{cost.operations:.1e}", show_time(cost.seconds), finds))
    if chosen is None:
        rows.append((str(method), "?", "?", "not estimated <- chosen"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"  {name:<{widths[0]}}  {operations:>{widths[1]}}  {seconds:>{widths[2]}}  {finds}"
        for name, operations, seconds, finds in rows
    ]


def _all_seconds(
    options: MiningOptions, stages: Mapping[str, float], search: Cost | None
) -> dict[str, float]:
    times = {
        stage: seconds / (options.workers if stage in SHARED else 1)
        for stage, seconds in stages.items()
    }
    if search:
        times["search"] = search.seconds
    if not options.runs_inside:
        times["workers"] = WORKERS_SECONDS
    return times


def _describe_times(
    options: MiningOptions, machine: Machine, times: Mapping[str, float], *, is_whole: bool
) -> str:
    listed = ", ".join(
        f"{stage} {show_time(seconds)}" for stage, seconds in times.items() if seconds >= 0.1
    )
    whole = "in all" if is_whole else "without the search, which is not estimated"
    resources = f"{counted(options.workers, 'workers')} and {counted(machine.threads, 'threads')}"
    return (
        f"time: about {show_time(sum(times.values()))} {whole} ({listed}) with {resources} of this "
        "machine, estimated from a trial run of the first lines. Lines that the run will skip "
        "(duplicates, blank) are included."
    )


def show_time(seconds: float) -> str:
    """Format seconds, rounded, in s, min, h or days, as 3.5 min or 119 s."""
    units = ("days", 86400), ("h", 3600), ("min", 60)
    unit, length = next((entry for entry in units if seconds >= 2 * entry[1]), ("s", 1))
    value = seconds / length
    return f"{value:.2g} {unit}" if value < 99 else f"{value:,.0f} {unit}"


def _stage_seconds(run: RunContext, sizes: Sizes, *, lines: float) -> dict[str, float]:
    texts = {}
    for side in SIDES:
        corpus = run.options.side(side)
        texts[side] = read_beginning(corpus.path, corpus.input_format, count=TRIAL_LINES[-1])
        if not texts[side]:
            raise ValueError(f"{corpus.path}: contains no usable sentence; check --input-format")
    counts = [min(count, *map(len, texts.values())) for count in TRIAL_LINES]
    logging.disable(logging.CRITICAL)
    try:
        with using_threads(max(1, thread_count() // run.options.workers)):
            small, *large = (
                _time_run(run.options, {side: text[:count] for side, text in texts.items()}, sizes)
                for count in counts
            )
    finally:
        logging.disable(logging.NOTSET)
    estimates = {}
    for stage, short in small.items():
        long = min(seconds[stage] for seconds in large)
        per_line = max(0.0, long - short) / max(1, counts[-1] - counts[0])
        estimates[stage] = max(0.0, short - counts[0] * per_line) + lines * per_line
    return {stage: seconds for stage, seconds in estimates.items() if stage not in SEARCHING}


def _time_run(
    options: MiningOptions, texts: Mapping[str, list[str]], sizes: Sizes
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target = (
            _write(options.side(side), folder / side, texts[side], sizes[side]) for side in SIDES
        )
        trial = replace(
            options,
            source=source,
            target=target,
            output=folder / "pairs.tsv",
            work_dir=folder / "work",
            index="exact",
            memory=None,
            workers=1,
            runner=None,
            beam_options=(),
        )
        monitor = Monitor(Meter)
        run_job(job_of(trial), monitor)
        return monitor.seconds


def _write(corpus: CorpusOptions, path: Path, texts: list[str], size: SideSize) -> CorpusOptions:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    embeddings = None
    if corpus.embeddings is not None:
        vectors = open_embeddings(
            corpus.embeddings, rows=size.rows, dim=corpus.dim, corpus=str(corpus.path)
        )
        embeddings = path.with_suffix(".npy")
        np.save(embeddings, vectors[np.arange(len(texts))])
    return replace(corpus, path=path, input_format="lines", embeddings=embeddings, dim=None)
