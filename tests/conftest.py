"""What all tests share."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import encoder
from encoder import Encoder, loading
from encoder.training import curves
from encoder.use import encoder as use
from miner.knn import cost_model
from pipelines.run import estimate
from tests.s3 import ENVIRONMENT, S3, s3_server

# An example may be the first to load torch, on a machine that is busy: none has a deadline.
settings.register_profile("unhurried", deadline=None, print_blob=True)
settings.load_profile("unhurried")

ROOT = Path(__file__).parents[1]
MEMORY, ROOM = Path("/dev/shm"), 8 << 30

LEVELS = {
    name: logging.getLogger(name).level
    for name in (None, "apache_beam", "encoder", "miner", "pipelines", "werkzeug")
}


def pytest_configure(config: pytest.Config) -> None:
    """Have temporary files in memory if there is room: on a disk they take most of a run's time.

    They are gone at the end; where TMPDIR is set, they lie there, and those of failed tests stay.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    state = os.statvfs(MEMORY)
    if state.f_bavail * state.f_frsize >= ROOM and not state.f_flag & os.ST_NOEXEC:
        folder = tempfile.mkdtemp(prefix="adit-tests-", dir=MEMORY)
        os.environ["TMPDIR"] = tempfile.tempdir = folder  # of xdist's processes, too
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.fixture(scope="session", autouse=True)
def unflushed() -> Iterator[None]:
    """No test cuts the power: none waits for the disk, which takes a third of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def undrawn() -> Iterator[None]:
    """Trainings draw no curves but where these are tested: it takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curves, "draw_curves", lambda history, titles: b"")
        yield


@pytest.fixture(scope="session", autouse=True)
def light() -> Iterator[None]:
    """Runs use the bundled encoder by default: the best one takes three times as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "best_encoder", lambda: encoder.BUNDLED)
        yield


@pytest.fixture
def best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs use the best encoder by default, as a user's do."""
    monkeypatch.setattr(encoder, "best_encoder", lambda: encoder.JOINED)


@pytest.fixture(scope="session", autouse=True)
def loaded_once() -> Iterator[None]:
    """This repository's encoders are loaded once: it is a third of a small run."""
    really_load = loading._load_base
    load = cache(really_load)

    def load_base(folder: Path, *given: Any) -> Encoder:
        return (load if folder.is_relative_to(ROOT) else really_load)(folder, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_load_base", load_base)
        patch.setattr(use, "load_use", cache(use.load_use))
        yield


@pytest.fixture(scope="session", autouse=True)
def brief_plans() -> Iterator[None]:
    """Plans measure this machine once, and try a few lines: a plan takes seconds otherwise."""
    measured = cache(lambda: cost_model.measure_machine(dim=48, k=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "measure_machine", lambda **sizes: measured())
        patch.setattr(estimate, "TRIAL_LINES", (20, 40, 40))
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
