"""What all tests share."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.s3 import ENVIRONMENT, S3, s3_server

# An example may be the first to load torch, on a machine that is busy: none has a deadline.
settings.register_profile("unhurried", deadline=None, print_blob=True)
settings.load_profile("unhurried")

LEVELS = {
    name: logging.getLogger(name).level
    for name in (None, "apache_beam", "encoder", "miner", "pipelines", "werkzeug")
}


@pytest.fixture(scope="session", autouse=True)
def unflushed() -> Iterator[None]:
    """No test cuts the power: none waits for the disk, which takes a third of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def log_levels() -> None:
    """A command sets the levels of loggers; each test finds them as they were at first."""
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with s3_server() as port:
        yield port


@pytest.fixture
def s3(s3_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> S3:
    """A folder of its own in a bucket; what is fetched from there lies in ``tmp_path/cache``."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ADIT_CACHE", str(tmp_path / "cache"))
    return S3(port=s3_port, folder=f"{tmp_path.parent.name}/{tmp_path.name}")
