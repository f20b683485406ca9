"""Flink, Spark and Prism on this machine: real daemons at addresses of its own, ended together.

    with cluster(fetch(), folder) as daemons, flink(daemons) as engine:
        mine_corpus([*run, *engine.options])

A host is an address, at first of the loopback, or one in a network namespace of its own; on each a
TaskManager or a Spark worker has its pool of Python workers beside it. Logs are in the folder.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.clusters.downloads import Tools

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0
# Python workers wait so long for their job's next stage, and need not be started for it. By default
# here it is 2 s, less than a restart takes: a job that is disturbed shall not meet dead ones.
KEPT = "--environment_cache_millis=30000"
POOL = "pool"  # the name under which each host's own pool is known to its JVMs
PR_SET_PDEATHSIG = 1
HEAP = "-Xmx512m"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine of the cluster; ``prefix`` are the words before a command that is to run there."""

    name: str
    address: str
    prefix: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    python_path: Sequence[str] = ()


HOME = Host(name="home", address="127.0.0.1")
HOSTS = (Host(name="one", address="127.0.0.2"), Host(name="two", address="127.0.0.3"))


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine that runs; ``options`` are those of ``adit mine``.

    Its pools are at the port ``pool``; ``conf`` is Flink's configuration.
    """

    options: list[str]
    pool: int
    url: str = ""
    conf: Path = Path()
    master: str = ""

    def get(self, path: str) -> object:
        """Ask its REST service."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return json.load(answer)


class Daemons:
    """The processes of a cluster by name, each the leader of a group of its own."""

    def __init__(self, tools: Tools, folder: Path, home: Host) -> None:
        self.tools, self.folder, self.home = tools, folder, home
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, host: Host, command: Sequence[str | Path], **env: str) -> None:
        """Start a process, which ends when this one does, however that may be."""
        log, own = self.folder / f"{name}.log", self.folder / name
        own.mkdir(exist_ok=True)
        with log.open("ab") as output:
            self.running[name] = subprocess.Popen(
                [*host.prefix, *command],
                cwd=own,
                env=os.environ | host.environment | env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )

    def end(self, *names: str) -> None:
        """End processes by name, or all, with all that they have started."""
        for name in names or list(self.running)[::-1]:
            process = self.running.pop(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def java_options(self, host: Host) -> str:
        """Return the options by which the JVMs of a host know its own pool by name."""
        hosts = self.folder / f"hosts-{host.name}"
        # Flink's JobManager sends itself the job's files by the name localhost, wherever it is.
        here = host.address if host is self.home else "127.0.0.1"
        names = {socket.gethostname(): host.address, "localhost": here, POOL: host.address}
        hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()))
        return f"-Djdk.net.hosts.file={hosts} {OPENED}"


# What Spark and the job servers use of Java 17's own classes.
OPENED = " ".join(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
        *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch"),
        *("sun.nio.cs", "sun.security.action", "sun.util.calendar"),
    )
)


@contextmanager
def cluster(tools: Tools, folder: Path, home: Host = HOME) -> Iterator[Daemons]:
    """Daemons that all end with the block; their logs and files are in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    daemons = Daemons(tools, folder, home)
    try:
        yield daemons
    finally:
        daemons.end()


@contextmanager
def flink(
    daemons: Daemons, hosts: Sequence[Host] = HOSTS, parallelism: int = 4
) -> Iterator[Engine]:
    """Flink: a JobManager, and a TaskManager of one slot with its pool on each host."""
    rest, rpc, pool = free_ports(3)
    home = daemons.home.address
    conf = _flink_conf(daemons, rest, rpc)
    start_flink_jobmanager(daemons, conf)
    for host in hosts:
        start_pool(daemons, host, pool)
        start_task_manager(daemons, host, conf)
    url = f"http://{home}:{rest}"
    engine = Engine(
        options=[
            *("--runner", "FlinkRunner", "--", f"--flink_master={home}:{rest}"),
            f"--flink_job_server_jar={daemons.tools.job_server('flink')}",
            # Parts of a stage that a host does as it gets to them; one host alone can do all.
            *(f"--parallelism={parallelism}", "--execution_mode_for_batch=BATCH"),
            *(f"--job_server_jvm_properties={option}" for option in (HEAP, *QUICK)),
            *_external(pool),
        ],
        url=url,
        pool=pool,
        master=f"{home}:{rest}",
        conf=conf,
    )
    wait_for(lambda: len(engine.get("/taskmanagers")["taskmanagers"]) == len(hosts))
    yield engine


@contextmanager
def spark(daemons: Daemons, hosts: Sequence[Host] = HOSTS) -> Iterator[Engine]:
    """Spark: a master, and a worker of one core with its pool on each host."""
    port, ui, pool = free_ports(3)
    home = daemons.home
    start_spark(daemons, "spark-master", home, "master.Master", "--port", port, "--webui-port", ui)
    master = f"spark://{home.address}:{port}"
    for host in hosts:
        start_pool(daemons, host, pool, "spark")
        start_spark_worker(daemons, host, master)
    properties = {
        "spark.executor.memory": "512m",
        "spark.driver.host": home.address,
        "spark.driver.bindAddress": home.address,
        "spark.task.maxFailures": "8",
        "spark.locality.wait": "0s",  # elements are small: any free executor may have them
        "spark.network.timeout": "30s",  # until an executor that is silent counts as lost
        "spark.network.timeoutInterval": "10s",
        "spark.executor.heartbeatInterval": "5s",
    }
    jvm = [
        HEAP,
        *QUICK,
        *OPENED.split(),
        *(f"-D{name}={value}" for name, value in properties.items()),
    ]
    engine = Engine(
        options=[
            *("--runner", "SparkRunner", "--", f"--spark_master_url={master}"),
            f"--spark_job_server_jar={daemons.tools.job_server('spark')}",
            *(f"--job_server_jvm_properties={option}" for option in jvm),
            *_external(pool),
        ],
        url=f"http://{home.address}:{ui}",
        pool=pool,
        master=master,
    )
    wait_for(lambda: len(engine.get("/json/")["workers"]) == len(hosts))
    yield engine


def with_job_server(daemons: Daemons, name: str, engine: Engine) -> Engine:
    """Start the job server of Flink or Spark, which then takes all jobs: each need not start it."""
    (port,) = free_ports(1)
    home = daemons.home
    jvm = "--job_server_jvm_properties="
    command = [
        *("java", *(word.removeprefix(jvm) for word in engine.options if word.startswith(jvm))),
        *("-jar", daemons.tools.job_server(name)),
        *(f"--{name}-master{'-url' * (name == 'spark')}", engine.master),
        *("--job-host", home.address, "--job-port", str(port), "--artifact-port", "0"),
        *("--expansion-port", "0", "--artifacts-dir", daemons.folder / f"{name}-staged"),
    ]
    java = daemons.java_options(home)
    daemons.start(f"{name}-job-server", home, command, JDK_JAVA_OPTIONS=java)
    wait_for(lambda: _listens(home.address, port))
    endpoint = f"--job_endpoint={home.address}:{port}"
    return replace(engine, options=[*engine.options, KEPT, endpoint])


@contextmanager
def prism(daemons: Daemons) -> Iterator[Engine]:
    """Prism, with a pool of Python workers."""
    port, pool = free_ports(2)
    home = daemons.home
    start_pool(daemons, home, pool, "prism")
    command = [daemons.tools.prism, f"--job_port={port}", "--serve_http=false"]
    daemons.start("prism", home, command)
    wait_for(lambda: _listens(home.address, port))
    endpoint = f"--job_endpoint={home.address}:{port}"
    external = ["--environment_type=EXTERNAL", f"--environment_config={home.address}:{pool}"]
    yield Engine(options=["--runner", "PortableRunner", "--", endpoint, *external], pool=pool)


def start_pool(daemons: Daemons, host: Host, port: int, engine: str = "flink") -> None:
    """Start the pool of a host."""
    boot = daemons.folder / "boot"
    boot.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.clusters.boot "$@"\n')
    boot.chmod(0o755)
    address = f"{host.address}:{port}"
    daemons.start(
        f"{engine}-pool-{host.name}",
        host,
        [sys.executable, "-m", "tests.clusters.pool", address, boot],
        PYTHONPATH=os.pathsep.join([*host.python_path, str(ROOT)]),
        OMP_NUM_THREADS="1",
    )
    wait_for(lambda: _listens(host.address, port))


def start_flink_jobmanager(daemons: Daemons, conf: Path) -> None:
    """Start (again) the JobManager."""
    _start_flink(daemons, "flink-jobmanager", daemons.home, JOB_MANAGER, conf)


def start_task_manager(daemons: Daemons, host: Host, conf: Path) -> None:
    """Start (again) the TaskManager of a host."""
    own = {
        "taskmanager.host": host.address,
        "taskmanager.bind-host": host.address,
        "taskmanager.resource-id": f"{host.name}-{time.time_ns()}",
        "io.tmp.dirs": str(daemons.folder / f"tmp-{host.name}"),
    }
    arguments = [word for name, value in own.items() for word in ("-D", f"{name}={value}")]
    _start_flink(daemons, f"flink-taskmanager-{host.name}", host, TASK_MANAGER, conf, *arguments)


JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"


def _start_flink(
    daemons: Daemons, name: str, host: Host, main: str, conf: Path, *arguments: str
) -> None:
    command = ["java", HEAP, *QUICK, "-XX:MaxDirectMemorySize=256m", *_flink_logging(conf)]
    classes = f"{daemons.tools.flink}/lib/*:{daemons.tools.job_server('flink')}"
    command += ["-cp", classes, main, "--configDir", str(conf), *arguments]
    daemons.start(name, host, command, JDK_JAVA_OPTIONS=daemons.java_options(host))


def _flink_logging(conf: Path) -> list[str]:
    return [f"-Dlog4j.configurationFile={conf / 'log4j.properties'}"]


def _flink_conf(daemons: Daemons, rest: int, rpc: int) -> Path:
    """Write Flink's configuration; its folder."""
    conf = daemons.folder / "flink-conf"
    conf.mkdir(exist_ok=True)
    home = daemons.home.address
    settings = {
        "jobmanager.rpc.address": home,
        "jobmanager.rpc.port": rpc,
        "jobmanager.bind-host": home,
        "rest.address": home,
        "rest.bind-address": home,
        "rest.port": rest,
        "heartbeat.interval": 2000,
        "heartbeat.timeout": 10000,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 8,
        "restart-strategy.fixed-delay.delay": "2 s",
        "taskmanager.numberOfTaskSlots": 1,
        "taskmanager.cpu.cores": 1.0,
        "taskmanager.memory.task.heap.size": "256m",
        "taskmanager.memory.task.off-heap.size": "64m",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        "taskmanager.memory.managed.size": "64m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "128m",
        "taskmanager.memory.jvm-overhead.max": "128m",
        "classloader.resolve-order": "parent-first",
    }
    lines = [f"{name}: {value}\n" for name, value in settings.items()]
    (conf / "config.yaml").write_text("".join(lines))
    (conf / "log4j.properties").write_text(
        "rootLogger.level = INFO\nrootLogger.appenderRef.console.ref = Console\n"
        "appender.console.name = Console\nappender.console.type = CONSOLE\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %d{HH:mm:ss} %-5p %c{1} %m%n\n"
    )
    return conf


def start_spark_worker(daemons: Daemons, host: Host, master: str) -> None:
    """Start (again) the worker of a host."""
    work = daemons.folder / f"spark-{host.name}"
    own = ["--cores", 1, "--memory", "512m", "--work-dir", work, "--webui-port", 0, master]
    start_spark(daemons, f"spark-worker-{host.name}", host, "worker.Worker", *own)


def start_spark(
    daemons: Daemons, name: str, host: Host, main: str, *arguments: str | int | Path
) -> None:
    """Start one of Spark's daemons."""
    command = ["java", HEAP, *QUICK, "-cp", f"{daemons.tools.spark}/jars/*"]
    command += [f"org.apache.spark.deploy.{main}", "--host", host.address, *map(str, arguments)]
    local = {
        "SPARK_HOME": str(daemons.tools.spark),
        "SPARK_LOCAL_IP": host.address,
        "SPARK_SCALA_VERSION": "2.12",
    }
    daemons.start(name, host, command, JDK_JAVA_OPTIONS=daemons.java_options(host), **local)


def _external(pool: int) -> list[str]:
    return [
        *("--environment_type=EXTERNAL", f"--environment_config={POOL}:{pool}"),
        "--environment_cache_millis=2000",
    ]


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens at now."""
    found = [socket.socket() for _ in range(count)]
    try:
        for opened in found:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in found]
    finally:
        for opened in found:
            opened.close()


def wait_for(ready: object, seconds: float = START_SECONDS) -> None:
    """Wait until a function returns something true; errors of the network count as not yet."""
    end = time.monotonic() + seconds
    while True:
        with suppress(OSError, ValueError):
            if ready():  # type: ignore[operator]
                return
        assert time.monotonic() < end, f"not ready after {seconds:.0f} s"
        time.sleep(0.3)


def _listens(address: str, port: int) -> bool:
    with socket.create_connection((address, port), timeout=2):
        return True


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
