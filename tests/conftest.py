"""What all tests share."""

import logging
from collections.abc import Iterator

import pytest

LOGGERS = (None, "apache_beam", "encoder", "miner", "pipelines")


@pytest.fixture(autouse=True)
def log_levels_stay() -> Iterator[None]:
    """A command sets the levels of loggers; the next test finds them as they were."""
    levels = [logging.getLogger(name).level for name in LOGGERS]
    yield
    for name, level in zip(LOGGERS, levels, strict=True):
        logging.getLogger(name).setLevel(level)
