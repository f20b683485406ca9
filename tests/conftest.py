"""What all tests share."""

import logging
from collections.abc import Iterator

import pytest

ROOMS = ("encoder", "miner", "pipelines")


@pytest.fixture(autouse=True)
def log_levels_stay() -> Iterator[None]:
    """A command sets the levels of our loggers; the next test finds them as they were."""
    yield
    for room in ROOMS:
        logging.getLogger(room).setLevel(logging.NOTSET)
