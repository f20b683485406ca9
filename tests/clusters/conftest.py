"""The engines, each started for its tests and ended after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest

from tests.clusters.cluster import (
    Daemons,
    Engine,
    cluster,
    flink,
    prism,
    spark,
    with_job_server,
)
from tests.clusters.downloads import NotToBeHadError, Tools, fetch
from tests.s3 import ENVIRONMENT

Need: TypeAlias = Callable[[str], Tools]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process of pytest have all that is on Flink, and another the rest (loadgroup)."""
    for item in items:
        if item.get_closest_marker("clusters"):
            others = "spark" in item.name or "prism" in item.name
            item.add_marker(pytest.mark.xdist_group("others" if others else "flink"))


@pytest.fixture(scope="session")
def need() -> Iterator[Need]:
    """What an engine is made of; without it, its tests are skipped.

    All is fetched from the beginning: the tests of the engine that is there first do not wait.
    """
    with ThreadPoolExecutor() as at_once:
        fetching = {
            name: at_once.submit(fetch, name) for name in ("flink", "operator", "spark", "prism")
        }

        def wait(name: str) -> Tools:
            try:
                return fetching[name].result()
            except NotToBeHadError as error:
                pytest.skip(str(error))

        yield wait


@pytest.fixture(scope="session")
def daemons(need: Need, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():  # as the workers' hosts have them
            patch.setenv(name, value)
        with cluster(need("flink"), tmp_path_factory.mktemp("cluster")) as daemons:
            yield daemons


@pytest.fixture(scope="session")
def on_flink(daemons: Daemons) -> Iterator[Engine]:
    with flink(daemons, parallelism=2) as engine:  # a part for each host
        yield engine


@pytest.fixture(scope="session")
def on_spark(daemons: Daemons, need: Need) -> Iterator[Engine]:
    need("spark")
    with spark(daemons) as engine:
        yield engine


@pytest.fixture(scope="module", params=["flink", "spark", "prism"])
def engine(daemons: Daemons, need: Need, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine, with a job server that is there before the jobs."""
    if request.param == "prism":
        need("prism")
        with prism(daemons) as engine:
            yield engine
    else:
        engine = request.getfixturevalue(f"on_{request.param}")
        yield with_job_server(daemons, request.param, engine)
        daemons.end(f"{request.param}-job-server")
