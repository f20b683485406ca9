"""The workers' image that `make image` has built, in the container engine that answers here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipelines.cli.mine import mine_corpus
from tests.clusters.test_engines import corpora

pytestmark = [pytest.mark.slow, pytest.mark.clusters]

IMAGE = "adit-worker"


def answers(*command: str) -> bool:
    """Return whether a program is here and does what it is called for."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def engine() -> str:
    for engine in ("docker", "podman"):
        if answers(engine, "info"):
            if not answers(engine, "image", "inspect", IMAGE):
                pytest.skip(f"{engine} has no image {IMAGE}: make image")
            return engine
    pytest.skip("no container engine answers: neither docker nor podman")


def test_the_image_mines_the_same_bytes(engine: str, tmp_path: Path) -> None:
    source, target = map(Path, corpora(tmp_path, 100))
    mine = [source.name, target.name, "--format", "jsonl", "-q", "-o"]
    run = [engine, "run", "--rm", "--volume", f"{tmp_path}:/corpora:ro", "--workdir", "/corpora"]
    done = subprocess.run(
        [*run, "--entrypoint", "adit", IMAGE, "mine", *mine, "-"],
        capture_output=True,
        check=True,
    )
    out = tmp_path / "out.jsonl"
    assert mine_corpus([str(source), str(target), "-q", "-o", str(out)]) == 0
    assert out.stat().st_size
    assert done.stdout == out.read_bytes()
