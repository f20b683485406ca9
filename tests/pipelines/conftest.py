"""Worlds, a tiny encoder, and a process that is left as it was found."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from encoder.bag.encoder import BagEncoder
from encoder.checkpoint import save_encoder
from encoder.tokenizer import Tokenizer, train_tokenizer
from miner.knn import exact
from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import World, make_world, one_line, snapshot

SAMPLE = Path(__file__).parents[2] / "eval" / "assets" / "sample"
OLD = b"an older result"
Refused = Callable[[list[str]], str]

LOGGERS = (None, "apache_beam", "encoder", "miner", "pipelines")


class Work:
    """What was done since it was last asked."""

    def __init__(self) -> None:
        self.sentences = 0
        self.similarities = 0

    def taken(self) -> tuple[int, int]:
        done = self.sentences, self.similarities
        self.sentences = self.similarities = 0
        return done


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work()
    really_encode, really_search = BagEncoder.encode, exact.search_unit_rows

    def encode(self: BagEncoder, sentences: Sequence[str]) -> NDArray[np.float32]:
        work.sentences += len(sentences)
        return really_encode(self, sentences)

    def search(source: NDArray, target: NDArray, **options: object) -> object:
        work.similarities += len(source) * len(target)
        return really_search(source, target, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(BagEncoder, "encode", encode)
    monkeypatch.setattr("pipelines.stages.searching.search.search_unit_rows", search)
    return work


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Undo what a command line may do to its process: signals, log levels, threads."""
    handler, threads = signal.getsignal(signal.SIGTERM), threading.excepthook
    levels = [logging.getLogger(name).level for name in LOGGERS]
    yield
    threading.excepthook = threads
    signal.signal(signal.SIGTERM, handler)
    for name, level in zip(LOGGERS, levels, strict=True):
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="module")
def one_faiss_thread() -> Iterator[None]:
    """FAISS's threads spin: on a busy machine, small work takes longer with more of them."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def run(world: World) -> list[str]:
    """A good command line of mine-corpus, whose output has been there before."""
    world.path("out.jsonl").write_bytes(OLD)
    return [*world.inputs(), "-o", str(world.path("out.jsonl"))]


@pytest.fixture
def refused(world: World, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs mine-corpus, which must refuse in one line and leave no trace; returns the line."""

    def refused(arguments: list[str]) -> str:
        before = snapshot(world.folder)
        capsys.readouterr()
        assert mine_corpus([*arguments, "-q"]) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert snapshot(world.folder) == before
        return one_line(error, "mine-corpus")

    return refused


@pytest.fixture(scope="session")
def sample_sentences() -> list[str]:
    """German and English sentences of the bundled sample, without their ids."""
    return [
        line.partition("\t")[2]
        for language in ("de", "en")
        for line in (SAMPLE / "de-en" / f"de-en.training.{language}")
        .read_text(encoding="utf-8")
        .split("\n")[:300]
    ]


@pytest.fixture(scope="session")
def tiny_encoders(
    tmp_path_factory: pytest.TempPathFactory, sample_sentences: list[str]
) -> tuple[Path, Path]:
    """Two encoders of one tokeniser; their vectors are random, and not the same."""
    folder = tmp_path_factory.mktemp("encoders")
    model = train_tokenizer(sample_sentences, vocabulary_size=400)
    random = np.random.default_rng(7)
    paths = folder / "one", folder / "two"
    for path in paths:
        table = random.standard_normal((len(Tokenizer(model)), 48), dtype=np.float32)
        save_encoder(path, table=table, tokenizer_model=model, facts={})
    return paths


@pytest.fixture(scope="session")
def tiny_encoder(tiny_encoders: tuple[Path, Path]) -> str:
    return str(tiny_encoders[0])
