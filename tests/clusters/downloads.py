"""What the test clusters are made of, fetched once into a folder: daemons, job servers, Prism.

They come by the ordinary clients of the registries of Python, Maven and Go, as these are set up.
The folder is ``ADIT_CLUSTERS``, else ``~/.cache/adit-clusters``; it takes about 1.3 GB.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from apache_beam.version import __version__ as BEAM  # noqa: N812

FLINK, SPARK, OPERATOR = "1.19.3", "3.5.0", "1.10.0"
JOB_SERVERS = Path(__file__).parent / "job_servers" / "pom.xml"
PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism"
# Python before 3.11.4 cannot check members.
FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
NEEDED = {"java": "a JDK of version 17", "mvn": "Maven", "go": "Go"}


class NotToBeHadError(Exception):
    """What a cluster needs and cannot be had here, in one line."""


@dataclass(frozen=True)
class Tools:
    """Where everything is."""

    folder: Path

    @property
    def flink(self) -> Path:
        """The folder of Flink's ``lib``."""
        return self.folder / f"flink-{FLINK}" / "deps"

    @property
    def spark(self) -> Path:
        """The folder of Spark's ``jars``."""
        return self.folder / f"spark-{SPARK}" / "deps"

    def job_server(self, engine: str) -> Path:
        """Beam's job server for ``flink`` or ``spark``."""
        return self.folder / f"job-server-{engine}-{_pom_version()}" / "job-server.jar"

    @property
    def operator_api(self) -> Path:
        """The classes and definitions of Flink's Kubernetes operator."""
        name = f"flink-kubernetes-operator-api-{OPERATOR}"
        return self.folder / name / f"{name}.jar"

    @property
    def prism(self) -> Path:
        """Beam's runner in Go."""
        return self.folder / f"prism-{BEAM}" / "prism"


def fetch(*engines: str) -> Tools:
    """Return the tools, fetching what is missing of some engines, or of all.

    Raises:
        NotToBeHadError: a program is not installed, or a registry does not answer.
    """
    for program, what in NEEDED.items():
        if shutil.which(program) is None:
            raise NotToBeHadError(f"the test clusters need {what}: install {program}")
    tools = Tools(Path(os.environ.get("ADIT_CLUSTERS", Path.home() / ".cache" / "adit-clusters")))
    tools.folder.mkdir(parents=True, exist_ok=True)
    parts = {
        "flink": [
            (tools.flink.parent, partial(_pip, f"apache-flink-libraries=={FLINK}")),
            (tools.job_server("flink").parent, partial(_maven, "flink")),
        ],
        "spark": [
            (tools.spark.parent, partial(_pip, f"pyspark=={SPARK}")),
            (tools.job_server("spark").parent, partial(_maven, "spark")),
        ],
        "prism": [(tools.prism.parent, _go)],
        "operator": [(tools.operator_api.parent, _copy_operator_api)],
    }
    with ThreadPoolExecutor() as at_once:
        wanted = [part for engine in engines or parts for part in parts[engine]]
        for done in [at_once.submit(_once, *part) for part in wanted]:
            done.result()
    return tools


def _pom_version() -> str:
    import hashlib

    return hashlib.sha256(JOB_SERVERS.read_bytes()).hexdigest()[:8]


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """Keep out others, who may be fetching, too."""
    with (folder / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _once(folder: Path, make: Callable[[Path], None]) -> None:
    with _alone(folder.parent, folder.name):
        if folder.exists():
            return
        unfinished = folder.with_name(f".{folder.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        make(unfinished)
        unfinished.rename(folder)


def _pip(requirement: str, to: Path) -> None:
    """Download a source distribution and take its folder ``deps``: pip would pack it anew first."""
    _run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", to, requirement])
    (archive,) = to.iterdir()
    with tarfile.open(archive) as packed:
        for member in packed:
            member.name = member.name.partition("/")[2]
            if member.name.startswith("deps/"):
                packed.extract(member, to, **FILTER)
    archive.unlink()


def _maven(engine: str, to: Path) -> None:
    _run_maven(to, "-f", JOB_SERVERS, f"-P{engine}", f"-Dto={to}", "package")
    for path in to.iterdir():  # what the jar was made of
        if path.name != "job-server.jar":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _copy_operator_api(to: Path) -> None:
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    artifact = f"org.apache.flink:flink-kubernetes-operator-api:{OPERATOR}"
    _run_maven(to, copy, f"-Dartifact={artifact}", f"-DoutputDirectory={to}")


def _run_maven(to: Path, *words: str | Path) -> None:
    with _alone(to.parent, "maven"):  # several would write the same files of its own folder
        _run(["mvn", "-B", "-q", *words])


def _go(to: Path) -> None:
    _run(["go", "install", f"{PRISM}@v{BEAM}"], GOBIN=str(to))


def _run(command: list[str | Path], **environment: str) -> None:
    done = subprocess.run(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line.upper()]
        cause = (lines or done.stdout.splitlines() or ["it says nothing"])[0]
        raise NotToBeHadError(f"the test clusters need what {command[0]} cannot fetch: {cause}")
