"""The engines, each started for its tests and ended after them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.cluster import Daemons, Engine, cluster, flink, prism, spark
from tests.clusters.downloads import NotToBeHadError, Tools, fetch
from tests.s3 import ENVIRONMENT


@pytest.fixture(scope="session")
def tools() -> Tools:
    """What the clusters are made of; without it, their tests are skipped."""
    try:
        return fetch()
    except NotToBeHadError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def daemons(
    tools: Tools, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemons]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():  # as the workers' hosts have them
            patch.setenv(name, value)
        with cluster(tools, tmp_path_factory.mktemp("cluster")) as daemons:
            yield daemons


@pytest.fixture(scope="module", params=["flink", "spark", "prism"])
def engine(daemons: Daemons, request: pytest.FixtureRequest) -> Iterator[Engine]:
    with {"flink": flink, "spark": spark, "prism": prism}[request.param](daemons) as engine:
        yield engine
    daemons.end()


@pytest.fixture(scope="module")
def on_flink(daemons: Daemons) -> Iterator[Engine]:
    with flink(daemons) as engine:
        yield engine
    daemons.end()
