"""Break runs on Flink and Spark, and check that nothing is lost.

    python benchmarks/failures.py news.de news.en

starts the engines of tests/clusters on this machine, two hosts each, and mines the corpora once
undisturbed and once for each row: a part is killed, stopped or cut off while sentences are encoded.
The search is one in cells, which is quick. If the run fails, its command is given again. The output
has to be the same bytes; sentences that were encoded more than once are counted. Needs root for
network namespaces and small file systems.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from miner.storage.places import place, remove_tree
from tests.clusters.cluster import (
    HOME,
    HOSTS,
    ROOT,
    Daemons,
    Engine,
    Host,
    cluster,
    flink,
    spark,
    start_pool,
    start_spark_worker,
    start_task_manager,
)
from tests.clusters.downloads import fetch
from tests.s3 import ENVIRONMENT, S3, s3_server

RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"
LIMIT_SECONDS = 1800
SMALL, OWN = "small", "own"  # file systems of the work folder and of the second host, by name
BRIDGE, NETWORK = "adit-bridge", "10.77.0"
# Imported by each Python worker: notes how many sentences each batch of the encoder has.
NOTING = """
import os
from encoder.bag.encoder import BagEncoder
really_encode = BagEncoder.encode

def encode(self, sentences):
    with open({log!r}, "a") as log:
        log.write(f"{{len(sentences)}}\\n")
    return really_encode(self, sentences)

BagEncoder.encode = encode
"""


@dataclass
class Trial:
    """A run on an engine, and how it is disturbed."""

    daemons: Daemons
    engine: Engine
    hosts: Sequence[Host]
    folder: Path
    work_dir: str
    process: subprocess.Popen[str] | None = None

    def pids(self, daemon: str, words: str) -> list[int]:
        """Return the processes of a daemon's group whose command has these words."""
        group = self.daemons.running[daemon].pid
        listed = subprocess.run(
            ["ps", "-eo", "pid,pgid,args"], stdout=subprocess.PIPE, text=True, check=True
        )
        lines = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
        return [int(pid) for pid, own, args in lines if int(own) == group and words in args]


def kill_task_manager(trial: Trial) -> None:
    trial.daemons.end("flink-taskmanager-two")
    time.sleep(5)
    start_task_manager(trial.daemons, trial.hosts[1], trial.engine.conf)


def kill_pool(trial: Trial, engine: str = "flink") -> None:
    trial.daemons.end(f"{engine}-pool-two")
    time.sleep(5)
    start_pool(trial.daemons, trial.hosts[1], trial.engine.pool, engine)


def kill_python_worker(trial: Trial, engine: str = "flink") -> None:
    for pid in trial.pids(f"{engine}-pool-two", "tests.clusters.boot")[:1]:
        os.kill(pid, signal.SIGKILL)


def stop(trial: Trial, *daemons: str, seconds: float = 60) -> None:
    groups = [trial.daemons.running[name].pid for name in daemons]
    for group in groups:
        os.killpg(group, signal.SIGSTOP)
    time.sleep(seconds)
    for group in groups:
        os.killpg(group, signal.SIGCONT)


def stop_task_manager(trial: Trial) -> None:
    stop(trial, "flink-taskmanager-two")


def stop_host(trial: Trial) -> None:
    stop(trial, "flink-taskmanager-two", "flink-pool-two")


def stop_python_worker(trial: Trial) -> None:
    stop(trial, "flink-pool-two")


def cut_network(trial: Trial) -> None:
    link = f"adit-{trial.hosts[1].name}"
    subprocess.run(["ip", "link", "set", link, "down"], check=True)
    time.sleep(30)
    subprocess.run(["ip", "link", "set", link, "up"], check=True)


def kill_job_server(trial: Trial) -> None:
    assert trial.process is not None
    for child in psutil.Process(trial.process.pid).children():
        if child.name() == "java":
            child.kill()


def kill_submitter(trial: Trial) -> None:
    assert trial.process is not None
    kill_job_server(trial)
    trial.process.kill()


def interrupt(trial: Trial) -> None:
    assert trial.process is not None
    os.killpg(trial.process.pid, signal.SIGINT)


def fill(trial: Trial, disk: str) -> None:
    """Fill a small file system, and free it after the run."""
    filler = trial.folder / disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    assert trial.process is not None
    with suppress(subprocess.TimeoutExpired):
        trial.process.wait(LIMIT_SECONDS)
    filler.unlink()


def kill_executor(trial: Trial) -> None:
    pids = trial.pids("spark-worker-two", "CoarseGrainedExecutorBackend")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def kill_spark_worker(trial: Trial) -> None:
    trial.daemons.end("spark-worker-two")
    time.sleep(5)
    start_spark_worker(trial.daemons, trial.hosts[1], trial.engine.master)


FLINK: dict[str, Callable[[Trial], None]] = {
    "a TaskManager is killed, another comes 5 s later": kill_task_manager,
    "a worker pool with its workers is killed, another comes 5 s later": kill_pool,
    "a Python worker is killed": kill_python_worker,
    "a TaskManager stands still for 60 s": stop_task_manager,
    "the Python workers of a host stand still for 60 s": stop_python_worker,
    "a host (TaskManager and workers) stands still for 60 s": stop_host,
    "the disk of the work folder is full": lambda trial: fill(trial, SMALL),
    "the job server is killed": kill_job_server,
    "submitter and job server are killed": kill_submitter,
    "the submitter is interrupted": interrupt,
}
NETWORK_CUT: dict[str, Callable[[Trial], None]] = {"a host has no network for 30 s": cut_network}
WORKERS_DISK: dict[str, Callable[[Trial], None]] = {
    "work folder in a bucket; a worker's own disk is full": lambda trial: fill(trial, OWN)
}
SPARK: dict[str, Callable[[Trial], None]] = {
    "an executor is killed": kill_executor,
    "a worker and its executor are killed, another comes 5 s later": kill_spark_worker,
    "a worker pool with its workers is killed, another comes 5 s later": lambda trial: kill_pool(
        trial, "spark"
    ),
    "a Python worker is killed": lambda trial: kill_python_worker(trial, "spark"),
}


@contextmanager
def namespaces(folder: Path) -> Iterator[list[Host]]:
    """Yield two hosts with networks of their own, joined by a bridge."""
    ip = ["ip"]
    names = ("one", "two")

    def run(*words: str) -> None:
        subprocess.run([*ip, *words], check=True)

    def remove() -> None:
        for name in names:
            subprocess.run([*ip, "netns", "delete", f"adit-{name}"], stderr=subprocess.DEVNULL)
        subprocess.run([*ip, "link", "delete", BRIDGE], stderr=subprocess.DEVNULL)

    remove()
    try:
        run("link", "add", BRIDGE, "type", "bridge")
        run("address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        run("link", "set", BRIDGE, "up")
        hosts = []
        for number, name in enumerate(names, 11):
            space, link = f"adit-{name}", f"adit-{name}"
            run("netns", "add", space)
            run("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("link", "set", link, "master", BRIDGE, "up")
            inside = ["-n", space]
            run(*inside, "address", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")
            run(*inside, "link", "set", "lo", "up")
            hosts.append(
                Host(
                    name=name,
                    address=f"{NETWORK}.{number}",
                    prefix=["ip", "netns", "exec", space],
                    python_path=[str(folder)],
                )
            )
        yield hosts
    finally:
        remove()


@contextmanager
def on_loopback(folder: Path) -> Iterator[list[Host]]:
    """Yield two hosts with addresses of this machine and separate temp files."""
    one, two = (replace(host, python_path=[str(folder)]) for host in HOSTS)
    yield [one, replace(two, environment={"TMPDIR": str(folder / OWN)})]


def encoded(log: Path) -> int:
    return sum(map(int, log.read_text(encoding="ascii").split())) if log.exists() else 0


def run_once(trial: Trial, command: list[str], log: Path, start_at: int, disturb: object) -> str:
    """Run, disturb at ``start_at`` sentences, and return an error line or ""."""
    with tempfile.TemporaryFile("w+") as errors:
        trial.process = subprocess.Popen(
            [sys.executable, "-c", RUN, *command, *trial.engine.options],
            cwd=ROOT,
            stderr=errors,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        if callable(disturb):
            while encoded(log) < start_at and trial.process.poll() is None:
                time.sleep(0.01)
            disturb(trial)
        try:
            status = trial.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(trial.process.pid, signal.SIGKILL)
            trial.process.wait()
            return f"hung for {LIMIT_SECONDS} s"
        errors.seek(0)
        lines = errors.read().splitlines()
        return "" if status == 0 else (lines or [f"status {status}, no word"])[-1]


def rows(
    title: str,
    trial: Trial,
    disturbances: dict[str, Callable[[Trial], None]],
    corpora: list[str],
    log: Path,
) -> Iterator[bool]:
    """Run every row of an engine, and return whether the output is correct."""
    out = trial.folder / SMALL / "out.jsonl"
    expected, usual = b"", 0
    for what, disturb in {"nothing": None, **disturbances}.items():
        log.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
        remove_tree(place(trial.work_dir))
        command = [*corpora, "-o", str(out), "--work-dir", trial.work_dir, "--shards", "8"]
        command += ["--encoder", "mini"]
        command += ["--score", "margin", "--index", "cells1024:probes=1", "-q"]
        start = time.perf_counter()
        line = run_once(trial, command, log, usual // 4, disturb)
        again = run_once(trial, command, log, 0, None) if line else ""
        seconds = time.perf_counter() - start
        found = out.read_bytes() if out.exists() else b""
        if disturb is None:
            expected, usual = found, encoded(log)
        same = found == expected and bool(found)
        came = "went on by itself" if not line else f"ended ({line}); the same command went on"
        if again:
            came += f", and ended: {again}"
        bytes_ = "same" if same else "OTHER"
        twice = encoded(log) - usual
        print(f"| {title} | {what} | {came} | {bytes_} | {twice:,} | {seconds:.0f} |", flush=True)
        yield same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--lines", type=int, default=300_000, help="of each side")
    parser.add_argument("--engine", choices=["flink", "spark"], action="append")
    parser.add_argument("--rows", default="", help="only those with this word")
    args = parser.parse_args()
    os.environ |= ENVIRONMENT
    good = []
    with tempfile.TemporaryDirectory() as name, mounted(Path(name)) as folder:
        log = folder / "encoded"
        (folder / "sitecustomize.py").write_text(NOTING.format(log=str(log)), encoding="utf-8")
        corpora = []
        for path in (args.source, args.target):
            lines = path.read_bytes().splitlines(keepends=True)[: args.lines]
            corpora.append(str(folder / path.name))
            Path(corpora[-1]).write_bytes(b"".join(lines))
        print("| engine | what happens | what came of it | output | encoded twice | seconds |")
        print("| --- | --- | --- | --- | --- | --- |", flush=True)
        engines = (
            *(("flink", flink, found) for found in (FLINK, NETWORK_CUT, WORKERS_DISK)),
            ("spark", spark, SPARK),
        )
        for number, (title, start, disturbances) in enumerate(engines):
            chosen = {what: row for what, row in disturbances.items() if args.rows in what}
            if not chosen or (args.engine and title not in args.engine):
                continue
            apart = disturbances is NETWORK_CUT
            home = replace(HOME, address=f"{NETWORK}.1") if apart else HOME
            with (
                namespaces(folder) if apart else on_loopback(folder) as hosts,
                cluster(fetch(title), folder / f"{title}-{number}", home) as daemons,
                start(daemons, hosts) as engine,
                s3_server() as port,
            ):
                in_bucket = disturbances is WORKERS_DISK
                bucket, small = S3(port=port, folder="failures"), folder / SMALL / "work"
                work_dir = bucket.uri("work") if in_bucket else str(small)
                trial = Trial(daemons, engine, hosts, folder, work_dir)
                good += rows(title, trial, chosen, corpora, log)
    return 0 if all(good) else 1


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """Mount small file systems in the folder for trials without disk space."""
    sizes = {SMALL: "4g", OWN: "512m"}
    try:
        for name, size in sizes.items():
            (folder / name).mkdir()
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "adit"]
            subprocess.run([*command, folder / name], check=True)
        yield folder
    finally:
        for name in sizes:
            subprocess.run(["umount", "-l", folder / name], check=True)


if __name__ == "__main__":
    sys.exit(main())
