"""A run that ended anywhere goes on from there: nothing is lost, and hardly anything done twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from numpy.typing import NDArray

from encoder.bag.encoder import BagEncoder
from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import one_line, write_lines

BATCH = 16


class Encoded:
    """Counts what the encoder is given; at ``last`` sentences the run is interrupted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.last: int | None = None
        really_encode = BagEncoder.encode

        def encode(encoder: BagEncoder, sentences: Sequence[str]) -> NDArray:
            self.count += len(sentences)
            if self.last is not None and self.count >= self.last:
                self.last = None
                raise KeyboardInterrupt
            return really_encode(encoder, sentences)

        monkeypatch.setattr(BagEncoder, "encode", encode)
        monkeypatch.setattr("pipelines.stages.encode.ENCODE_ROWS", BATCH)
        monkeypatch.setattr("pipelines.stages.encode.WORTH_SEALING", 0)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Encoded:
    return Encoded(monkeypatch)


@pytest.fixture
def run(tmp_path: Path, sample_sentences: list[str], tiny_encoder: str) -> Callable[[str], list]:
    """Makes a command line with a work folder; both sides have 100 sentences in 2 shards."""
    for name, start in (("src.txt", 0), ("tgt.txt", 300)):
        write_lines(tmp_path / name, sample_sentences[start : start + 100])

    def run(work_dir: str) -> list[str]:
        places = [str(tmp_path / name) for name in ("src.txt", "tgt.txt")]
        places += [
            "-o",
            str(tmp_path / f"{work_dir}.jsonl"),
            "--work-dir",
            str(tmp_path / work_dir),
        ]
        return [*places, "--encoder", tiny_encoder, "--shards", "2", "-q"]

    return run


def test_no_batch_is_encoded_twice_but_the_one_in_flight(
    tmp_path: Path, run: Callable[[str], list], encoded: Encoded
) -> None:
    assert mine_corpus(run("whole")) == 0
    assert encoded.count == 200
    assert not list((tmp_path / "whole").rglob("batches"))
    encoded.count = 0
    for interrupted in range(1, 6):
        encoded.last = 30 * interrupted
        assert mine_corpus(run("parts")) == 2
    assert mine_corpus(run("parts")) == 0
    assert 200 < encoded.count <= 200 + 5 * BATCH
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not list((tmp_path / "parts").rglob("batches"))


def test_batches_that_are_soon_encoded_are_not_sealed(
    tmp_path: Path,
    run: Callable[[str], list],
    encoded: Encoded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.stages.encode.WORTH_SEALING", 1000)
    encoded.last = 70  # in the second of four shards of 50
    assert mine_corpus(run("work")) == 2
    assert not list((tmp_path / "work").rglob("batches"))
    encoded.count = 0
    assert mine_corpus(run("work")) == 0
    assert encoded.count == 150


@pytest.mark.parametrize("damage", ["flipped", "truncated", "swapped"])
def test_a_damaged_batch_is_refused_by_name(
    tmp_path: Path,
    run: Callable[[str], list],
    encoded: Encoded,
    damage: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encoded.last = 3 * BATCH  # two of the first shard's batches are sealed
    assert mine_corpus(run("work")) == 2
    first, second = sorted((tmp_path / "work").rglob("batches/*/vectors.npy"))
    content = bytearray(first.read_bytes())
    if damage == "flipped":
        content[-1] ^= 1
    elif damage == "truncated":
        del content[-10:]
    else:
        content[:] = second.read_bytes()
    first.write_bytes(content)
    capsys.readouterr()
    assert mine_corpus(run("work")) == 2
    error = one_line(capsys.readouterr().err, "mine-corpus")
    assert f"{first}: was changed since it was written" in error


class Killed(BaseException):
    """Ends a run as a signal would, where it happens to be."""


def test_whenever_a_run_is_killed_the_next_one_gives_the_same(
    tmp_path: Path, run: Callable[[str], list], encoded: Encoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends each run some files later than the one before, half of them before they are renamed."""
    assert mine_corpus(run("whole")) == 0
    expected = (tmp_path / "whole.jsonl").read_bytes()
    really_replace = os.replace
    countdown = kills = encoded.count = 0

    def replace(source: str, target: str) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0 and kills % 2:
            raise Killed
        really_replace(source, target)
        if countdown == 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", replace)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        while True:
            countdown = 3 + 2 * kills
            try:
                assert mine_corpus(run("parts")) == 0
                break
            except Killed:
                kills += 1
    assert mine_corpus(run("parts")) == 0
    assert (tmp_path / "parts.jsonl").read_bytes() == expected
    assert kills > 5
    assert 200 <= encoded.count <= 200 + kills * BATCH
    assert not list((tmp_path / "parts").rglob(".adit-*"))
