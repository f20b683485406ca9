"""Run ``adit status`` and ``clean`` on a work folder, and print errors."""

import argparse
import sys
import time
from collections.abc import Sequence

from miner.commandline import command
from miner.storage.layout import ARTEFACTS, MINED, SOURCE, WorkFolder
from miner.storage.places import Place, place, remove_tree, tree_files
from miner.wording import counted
from pipelines.run import state


def add_work_dir(parser: argparse.ArgumentParser) -> None:
    """Add the argument DIR, the work folder of a run."""
    text = "--work-dir of an adit mine or rate"
    parser.add_argument("work_dir", type=place, metavar="DIR", help=text)


@command(add_work_dir, "adit status")
def status(args: argparse.Namespace) -> int:
    """Show the stages, rates and time left of the run in a work folder."""
    folder, stages = WorkFolder(args.work_dir), _stages(args.work_dir)
    workers: Sequence[state.WorkerState] = ()
    if state.is_locked(args.work_dir):
        status, workers = "running", state.read_workers(folder)
    elif _is_finished(stages):
        has_results = folder.sentences(SOURCE).parent.is_dir()
        status = "finished" if has_results else "finished, emptied by adit clean"
    elif failure := state.first_failure(folder):
        status = f"failed: {failure.line}"
    else:
        status = "stopped; rerun the same command to resume"
    lines = [f"{args.work_dir}: {status}", *map(_describe, stages)]
    for worker in workers:
        done, seconds = counted(worker.done, "elements"), max(0.0, time.time() - worker.end)
        last = f"last {worker.stage} {seconds:,.0f} s ago"
        lines.append(f"  worker {worker.name}: {done} done, {last}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _describe(stage: state.StageState) -> str:
    total = "?" if stage.expected is None else f"{stage.expected:,}"
    line = f"  {stage.name:<16} {stage.done:>7,} of {total:>7} elements done"
    if not stage.done or stage.done == stage.expected:
        return line + (f" in {stage.seconds:,.1f} s of work" if stage.done else "")
    rate = stage.done / max(time.time() - stage.since, 1e-3)
    rest = "" if stage.expected is None else f", {(stage.expected - stage.done) / rate:,.0f} s left"
    return f"{line}, {60 * rate:,.3g} per minute{rest}"


@command(add_work_dir, "adit clean")
def clean(args: argparse.Namespace) -> int:
    """Remove the vectors, neighbours and other results of a finished run.

    Its summary, options, list of stages, rejected lines and copy of a rated file's lines stay.

    Raises:
        ValueError: Printed, not raised: the folder has no run, or its run is in use or unfinished.
    """
    work_dir = args.work_dir
    stages = _stages(work_dir)
    if state.is_locked(work_dir):
        raise ValueError(f"{work_dir}: a run is using it; wait until it has finished")
    if not _is_finished(stages):
        raise ValueError(
            f"{work_dir}: the run is unfinished and still needs its files; rerun its command to "
            "resume, or delete the folder"
        )
    freed = 0
    mined = work_dir / MINED
    for part in (work_dir, *(mined.iterdir() if mined.is_dir() else ())):
        for name in ARTEFACTS:
            freed += sum(size for _, size in tree_files(part / name))
            remove_tree(part / name)
    sys.stdout.write(f"{work_dir}: {freed / 1e6:,.1f} MB removed\n")
    return 0


def _stages(work_dir: Place) -> list[state.StageState]:
    if not work_dir.is_dir():
        raise NotADirectoryError(f"{work_dir}: folder not found; pass the --work-dir of a run")
    if stages := state.read_stages(WorkFolder(work_dir)):
        return stages
    raise ValueError(f"{work_dir}: contains no run; pass the --work-dir of a run")


def _is_finished(stages: Sequence[state.StageState]) -> bool:
    last = stages[-1]
    return last.expected is not None and last.done >= last.expected
