"""``--plan``: the time, memory and disk that a run would take, estimated before anything runs."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from encoder import BEST
from miner.knn.cost_model import (
    PARTS,
    Cost,
    Machine,
    Problem,
    cells_cost,
    exact_cost,
    index_cost,
)
from miner.knn.machine_trial import measure_machine
from miner.knn.method import CellSpec, CorpusMethod, IndexSpec, auto_method, default_cells
from miner.storage.layout import DOCUMENT, SIDES, SOURCE, TARGET
from pipelines.context import RunContext
from pipelines.job import job_of
from pipelines.memory import show_size
from pipelines.options import MiningOptions, check_options
from pipelines.progress import counted
from pipelines.run.fitting import (
    MAX_TRIED,
    Fit,
    SideSize,
    fit_run,
    load_libraries,
    measure_side,
)
from pipelines.run.trial import SHARED, StageTime, try_stages
from pipelines.stages.judge import decide_score
from pipelines.stages.reading.language import best_of_run, decide_languages
from pipelines.stages.searching.shard_groups import group_sizes

PAIR_BYTES = 130  # of the numbers of a pair, and of those with its score
# Seconds that Beam and its workers take more to start and to hand on, whatever the lines: runs of
# 10,000 and 100,000 lines beside their trials (benchmarks/scaling.py, 2026-11-24).
WORKERS_SECONDS = 6.0


def plan_run(options: MiningOptions) -> str:
    """Describe the run that ``options`` ask for; nothing of it is run, and nothing stays written.

    Raises:
        ValueError, OSError: what the run would refuse.
    """
    process_seconds = time.process_time()
    check_options(options)
    if options.scope == DOCUMENT:
        raise ValueError(
            "--plan: is for --scope corpus; what documents cost depends on their sizes"
        )
    start = time.perf_counter()
    if options.encoder == BEST:
        options = replace(options, encoder=best_of_run(options))
    run = decide_score(decide_languages(RunContext(job_of(options)), remember=False))
    options = run.options
    load_libraries(run, MAX_TRIED)
    start_up = process_seconds + time.perf_counter() - start
    sizes = {side: measure_side(run, side) for side in SIDES}
    dims = {size.dim for size in sizes.values()}
    if len(dims) > 1:
        raise ValueError(
            f"source vectors have {sizes[SOURCE].dim} dimensions, target vectors "
            f"{sizes[TARGET].dim}; embed both sides with the same encoder"
        )
    fit = fit_run(run, sizes)
    problem = Problem(
        sources=sizes[SOURCE].rows, targets=sizes[TARGET].rows, dim=dims.pop(), k=options.k
    )
    machine = measure_machine(dim=problem.dim, k=options.k)
    method = options.method or auto_method(problem.sources, problem.targets)
    costs = _costs(options, problem, machine, method)
    stages = try_stages(run, sizes)
    lines = [
        *(_describe_side(options, side, size) for side, size in sizes.items()),
        _describe_method(options, method),
        _describe_memory(fit, sizes),
        _describe_disk(fit.options, sizes),
        "",
        *_table(costs, method),
        "",
        _describe_times(options, machine, start_up, stages, _chosen(costs, method), problem),
    ]
    return "\n".join(lines)


def _describe_side(options: MiningOptions, side: str, size: SideSize) -> str:
    corpus = options.side(side)
    vectors = corpus.embeddings or f"encoder {options.encoder}"
    return (
        f"{side}: {size.rows:,} lines of {corpus.path}, {show_size(size.text)} of text; "
        f"{size.dim} dimensions from {vectors}"
    )


def _describe_method(options: MiningOptions, method: CorpusMethod) -> str:
    why = "what --index auto comes to here" if options.index == "auto" else "as --index says"
    return f"search: {method} ({why}), {options.k} neighbours of every line in both directions"


def _describe_memory(fit: Fit, sizes: Mapping[str, SideSize]) -> str:
    rows = fit.options.rows_per_shard
    stage = max(fit.stages, key=fit.stages.__getitem__)
    bound = fit.options.memory
    limit = f"of the {show_size(bound)} allowed" if bound else "without a bound (--memory)"
    return (
        f"memory: at most about {show_size(fit.peak)} {limit}: {show_size(fit.libraries)} for "
        f"libraries, and {show_size(fit.stages[stage])} for the largest stage, {stage}, of up to "
        f"{rows:,} lines a side at a time"
    )


def _describe_disk(options: MiningOptions, sizes: Mapping[str, SideSize]) -> str:
    work, output = disk_bytes(options, sizes)
    return (
        f"disk: at most about {show_size(work)} for the work folder and {show_size(output)} for "
        f"{options.output}"
    )


def disk_bytes(options: MiningOptions, sizes: Mapping[str, SideSize]) -> tuple[int, int]:
    """Estimate the most bytes that the work folder takes, and that the output does as text.

    FAISS's indexes are taken for flat ones, of float32.
    """
    method = options.method or auto_method(*(size.rows for size in sizes.values()))
    groups = {
        side: len(group_sizes(-(-size.rows // options.rows_per_shard)))
        for side, size in sizes.items()
    }
    parts: dict[str, float] = {SOURCE: groups[TARGET], TARGET: groups[SOURCE]}
    if isinstance(method, CellSpec):
        parts = {SOURCE: PARTS, TARGET: PARTS}
    work = 0.0
    for side, size in sizes.items():
        sentences = size.text + 24 * size.rows
        vectors = size.rows * (8 + size.dim * size.width)
        lists = size.rows * options.k * 12 * (parts[side] + 1.0)  # of each tile, and merged
        if isinstance(method, CellSpec):
            lists += size.rows * 4 * (PARTS + method.probes)
        index = size.rows * (4 * size.dim + 8) if isinstance(options.method, IndexSpec) else 0
        work += sentences + vectors + lists + index
    pairs = _pairs(options, sizes)
    text = sum(size.text / max(1, size.rows) for size in sizes.values())
    return round(work) + PAIR_BYTES * pairs, round((text + 24) * pairs)


def _pairs(options: MiningOptions, sizes: Mapping[str, SideSize]) -> int:
    rows = [size.rows for size in sizes.values()]
    return {"forward": rows[0], "backward": rows[1]}.get(options.retrieval, min(rows))


def _costs(
    options: MiningOptions, problem: Problem, machine: Machine, method: CorpusMethod
) -> list[Cost]:
    """Exact, cells, and the inverted file that was chosen, or that FAISS's guidelines would."""
    inverted = re.fullmatch(r"IVF(\d+),Flat", str(method))
    cells = int(inverted[1]) if inverted else default_cells(max(problem.sources, problem.targets))
    return [
        exact_cost(problem, machine, options.product_precision),
        cells_cost(problem, machine),
        index_cost(problem, machine, cells),
    ]


def _chosen(costs: Sequence[Cost], method: CorpusMethod) -> Cost | None:
    """Return the cost of the method, None if it is not estimated."""
    kind = "cells" if isinstance(method, CellSpec) else str(method)
    return next((cost for cost in costs if cost.method.startswith(kind)), None)


def _table(costs: Sequence[Cost], method: CorpusMethod) -> list[str]:
    rows = [("search", "operations", "time", "finds")]
    for cost in costs:
        finds = "every neighbour" if cost.method == "exact" else "most"
        chosen = " <- chosen" if cost is _chosen(costs, method) else ""
        rows.append(
            (cost.method, f"{cost.operations:.1e}", show_time(cost.seconds), finds + chosen)
        )
    if not any("chosen" in row[3] for row in rows):
        rows.append((str(method), "?", "?", "not estimated <- chosen"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}"
        for row in rows
    ]


def _describe_times(
    options: MiningOptions,
    machine: Machine,
    start_up: float,
    stages: Mapping[str, StageTime],
    search: Cost | None,
    problem: Problem,
) -> str:
    """Say what the whole run takes: of the stages, those that all workers share in side by side."""
    lines = problem.rows / 2
    times = {"start": start_up}
    for stage, time_of in stages.items():
        times[stage] = time_of.of(lines) / (options.workers if stage in SHARED else 1)
    if search:
        times["search"] = search.seconds
    if not options.runs_inside:
        times["workers"] = WORKERS_SECONDS
    shown = ", ".join(
        f"{stage} {show_time(seconds)}" for stage, seconds in times.items() if seconds >= 0.1
    )
    whole = "in all" if search else "without the search, which is not estimated"
    by = f"{counted(options.workers, 'workers')} and {counted(machine.threads, 'threads')}"
    return (
        f"time: about {show_time(sum(times.values()))} {whole} ({shown}); by {by} of this machine, "
        "from a trial run of the first lines. Lines that the run will leave out (repeated, blank) "
        "are counted here, too."
    )


def show_time(seconds: float) -> str:
    """Return a time for people, to two digits."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return (
                f"{seconds / length:.2g} {unit}"
                if seconds < 99 * length
                else f"{seconds / length:,.0f} {unit}"
            )
    return f"{seconds:.2g} s" if seconds < 99 else f"{seconds:.0f} s"
