"""What all tests share."""

import logging

import pytest

LEVELS = {
    name: logging.getLogger(name).level
    for name in (None, "apache_beam", "encoder", "miner", "pipelines")
}


@pytest.fixture(autouse=True)
def log_levels() -> None:
    """A command sets the levels of loggers; each test finds them as they were at first."""
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)
