"""Corpora, vectors, work folders and outputs in a bucket: the same bytes, and the same errors."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from encoder.bag.encoder import BagEncoder
from miner.storage import cache
from pipelines.cli.mine import embed_corpus, mine_corpus
from tests.pipelines.worlds import World, one_line, write_lines
from tests.s3 import S3


@dataclass(frozen=True)
class Local:
    """Corpora on this machine's disk, how they are mined, and what that gives."""

    folder: Path
    options: list[str]
    output: bytes


@pytest.fixture(scope="module")
def local(
    tmp_path_factory: pytest.TempPathFactory, sample_sentences: list[str], tiny_encoder: str
) -> Local:
    folder = tmp_path_factory.mktemp("local")
    write_lines(folder / "src.txt", [*sample_sentences[:60], "", sample_sentences[0]])
    write_lines(folder / "tgt.txt", sample_sentences[300:350])
    options = ["--encoder", tiny_encoder, "--shards", "2", "--filters", "short", "--all", "-q"]
    corpora = [str(folder / f"{side}.txt") for side in ("src", "tgt")]
    assert mine_corpus([*corpora, *options, "-o", str(folder / "out.jsonl")]) == 0
    output = (folder / "out.jsonl").read_bytes()
    assert output
    return Local(folder, options, output)


@pytest.fixture
def run(local: Local, s3: S3) -> list[str]:
    """The same with everything in the bucket."""
    corpora = [s3.put(f"{side}.txt", local.folder / f"{side}.txt") for side in ("src", "tgt")]
    return [*corpora, "-o", s3.uri("out.jsonl"), "--work-dir", s3.uri("work"), *local.options]


def output(s3: S3) -> bytes:
    return s3.path("out.jsonl").read_bytes()


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert mine_corpus(arguments) == 2
    return one_line(capsys.readouterr().err, "mine-corpus")


def test_the_whole_graph_gives_the_same_bytes(
    run: list[str],
    local: Local,
    s3: S3,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run[run.index(s3.uri("work"))] = s3.uri("work").replace("s3://", "s3://someone:hidden@")
    assert mine_corpus(run) == 0
    assert output(s3) == local.output
    assert s3.path("out.rejected.jsonl").is_file()
    names = s3.names("work")
    assert {"run.json", "rejected/source.parquet", "tiles/00001-00000/seal.json"} <= names
    assert ".lock" not in names
    assert not [name for name in names if ".adit-" in name]
    assert not any((tmp_path / "cache").iterdir()), "what was fetched goes with the run"

    for name in s3.names("work"):
        assert b"hidden" not in s3.path(f"work/{name}").read_bytes()
    summary = json.loads(s3.path("work/run.json").read_bytes())
    assert summary["options"]["work_dir"] == s3.told("work")
    assert summary["source"]["path"] == s3.told("src.txt")

    # Nothing is made again.
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("there was no need")

    with monkeypatch.context() as patch:
        patch.setattr(BagEncoder, "encode", refuse)
        patch.setattr("pipelines.stages.searching.search.search_unit_rows", refuse)
        assert mine_corpus(run) == 0
    assert output(s3) == local.output

    capsys.readouterr()
    work_dir = s3.uri("work")
    assert mine_corpus(["status", work_dir]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"{s3.told('work')}: finished"
    (tiles,) = (line for line in told if "search_tile" in line)
    assert "4 of       4 elements done" in tiles
    first = json.loads(local.output.splitlines()[0])
    assert mine_corpus(["why", work_dir, first["source_id"], first["target_id"]]) == 0
    assert "mined: pair 1 of" in capsys.readouterr().out
    assert mine_corpus(["report", work_dir, "-o", s3.uri("page.html")]) == 0
    assert b"</html>" in s3.path("page.html").read_bytes()
    assert mine_corpus(["clean", work_dir]) == 0
    assert {name.partition("/")[0] for name in s3.names("work")} == {
        *("progress", "rejected", "run.json", "run.toml"),
    }


@pytest.mark.slow
def test_worker_processes_share_what_is_fetched(run: list[str], local: Local, s3: S3) -> None:
    assert mine_corpus([*run, "--workers", "2"]) == 0
    assert output(s3) == local.output
    noted = [name for name in s3.names("work/progress") if name.endswith(".jsonl")]
    assert len({name.rpartition("-")[0] for name in noted}) == 2


@pytest.mark.slow
def test_an_interrupted_run_goes_on(
    run: list[str], local: Local, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, last = 0, 105
    really_encode = BagEncoder.encode
    monkeypatch.setattr("pipelines.stages.encode.ENCODE_ROWS", 16)
    monkeypatch.setattr("pipelines.stages.encode.WORTH_SEALING", 0)

    def encode(self: BagEncoder, sentences: list[str]) -> object:
        nonlocal encoded
        encoded += len(sentences)
        if encoded > last:
            raise KeyboardInterrupt
        return really_encode(self, sentences)

    monkeypatch.setattr(BagEncoder, "encode", encode)
    assert mine_corpus(run) == 2
    assert not s3.path("out.jsonl").exists()
    batches = [name for name in s3.names("work/embeddings") if "batches" in name]
    assert len([name for name in batches if name.endswith("seal.json")]) == 1
    last = 1000
    assert mine_corpus(run) == 0
    assert output(s3) == local.output
    assert 110 < encoded <= 110 + 16
    assert not [name for name in s3.names("work") if "batches" in name]


@pytest.mark.slow
def test_a_damaged_object_is_refused_by_name(
    run: list[str], local: Local, s3: S3, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mine_corpus(run) == 0
    folder = "work/embeddings/source/00000"
    name = f"{folder}/vectors.npy"
    whole = s3.path(name).read_bytes()
    others = {
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "truncated": whole[:-10],
        "swapped": s3.path("work/embeddings/target/00000/vectors.npy").read_bytes(),
    }
    advice = f"delete the folder {s3.told(folder)} to rebuild it"
    for content in others.values():
        s3.put(name, content)
        error = refused(run, capsys)
        assert f"{s3.told(name)}: was changed since it was written; {advice}" in error
    s3.path(name).unlink()
    assert f"{s3.told(name)}: file not found; {advice}" in refused(run, capsys)
    s3.put(name, whole)
    assert mine_corpus(run) == 0
    assert output(s3) == local.output


def test_one_run_at_a_time(
    run: list[str], s3: S3, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold(host: str, process: int, since: float) -> None:
        s3.put("work/.lock", json.dumps([host, process, since]).encode())

    monkeypatch.setattr("time.time", lambda: 10_000.0)
    hold("another", 1, 9_950.0)
    assert f"{s3.told('work')}: another run is using this work folder" in refused(run, capsys)
    assert mine_corpus(["clean", s3.uri("work")]) == 2
    hold(socket.gethostname(), 1, 9_950.0)
    assert "another run is using this work folder" in refused(run, capsys)
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("host", "process", "age"),
    [("another", 1, 91.0), (socket.gethostname(), 2**22 + 1, 0.0)],
)
def test_a_killed_run_keeps_nobody_out(s3: S3, host: str, process: int, age: float) -> None:
    from pipelines.run.state import exclusive_run, is_locked

    work_dir = s3.path("work")
    s3.put("work/.lock", json.dumps([host, process, time.time() - age]).encode())
    assert not is_locked(work_dir)
    with exclusive_run(work_dir):
        assert is_locked(work_dir)
        with (
            pytest.raises(ValueError, match="another run is using this work folder"),
            exclusive_run(work_dir),
        ):
            pass
    assert s3.names("work") == set()


def test_a_lock_is_renewed(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.run import state

    monkeypatch.setattr(state, "RENEWED_SECONDS", 0.05)
    with state.exclusive_run(s3.path("work")):
        before = s3.path("work/.lock").read_bytes()
        end = time.monotonic() + 30
        while s3.path("work/.lock").read_bytes() == before and time.monotonic() < end:
            time.sleep(0.05)
        assert s3.path("work/.lock").read_bytes() != before


def test_what_cannot_be_reached_is_told_in_one_line(
    run: list[str], s3: S3, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def changed(name: str, place: str) -> list[str]:
        return [place if argument == s3.uri(name) else argument for argument in run]

    nowhere = s3.uri("x.jsonl", bucket="nothing")
    error = refused(changed("out.jsonl", nowhere), capsys)
    assert "x.jsonl: cannot be written: " in error
    assert "The specified bucket does not exist" in error
    error = refused(changed("work", s3.uri("work", bucket="nothing")), capsys)
    assert "The specified bucket does not exist" in error
    assert "check the URI, its options and the credentials" in error
    expected = f"{s3.told('none.txt')}: file not found"
    assert expected in refused(changed("src.txt", s3.uri("none.txt")), capsys)
    error = refused(changed("src.txt", f"{s3.uri('src.txt')}&nonsense=1"), capsys)
    assert f"{s3.told('src.txt')}: Unexpected query parameter in S3 URI: 'nonsense'" in error
    error = refused(changed("out.jsonl", s3.uri("work/pairs/x.jsonl")), capsys)
    assert "is reserved for files of the work folder" in error
    error = refused(changed("tgt.txt", s3.uri("src.txt")), capsys)
    assert "SRC and TGT are the same file" in error
    outside = [argument for argument in run if argument not in ("--work-dir", s3.uri("work"))]
    error = refused([*outside, "--runner", "DirectRunner"], capsys)
    assert "--runner requires a --work-dir that all workers can reach" in error
    assert {*s3.path("").iterdir()} == {*map(s3.path, ("src.txt", "tgt.txt", "work"))}


def test_given_vectors_are_read_from_there(
    world: World, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = world.mine("local.jsonl").read_bytes()
    monkeypatch.setattr("pipelines.stages.encode.BLOCK_NUMBERS", 7 * 16)
    np.load(world.path("tgt.npy")).tofile(world.path("tgt.raw"))
    vectors = [s3.put(name, world.path(name)) for name in ("src.npy", "tgt.raw")]
    named = zip(("--src-embeddings", "--tgt-embeddings"), vectors, strict=True)
    run = [*world.inputs()[:2], *(part for pair in named for part in pair), "--dim", "16", "-q"]
    run += ["--work-dir", s3.uri("work"), "-o", s3.uri("out.jsonl"), "--score", "margin"]
    assert mine_corpus(run) == 0
    assert output(s3) == expected
    sealed = s3.path("work/embeddings/source/00000/seal.json")
    before = sealed.stat()
    assert mine_corpus(run) == 0
    assert sealed.stat() == before


def test_a_folder_of_files(
    local: Local, s3: S3, tmp_path: Path, sample_sentences: list[str]
) -> None:
    lines = (local.folder / "src.txt").read_bytes().splitlines(keepends=True)
    s3.put("src/1.txt", b"".join(lines[:20]))
    s3.put("src/2.txt", b"".join(lines[20:]))
    s3.put("src/.hidden", b"x")
    run = [s3.uri("src"), str(local.folder / "tgt.txt"), "-o", str(tmp_path / "out.jsonl")]
    assert mine_corpus([*run, *local.options]) == 0
    assert (tmp_path / "out.jsonl").read_bytes() == local.output


def test_embedding_a_corpus_there(s3: S3, tiny_encoder: str, sample_sentences: list[str]) -> None:
    s3.put("in.txt", "".join(f"{text}\n" for text in sample_sentences[:20]).encode())
    options = ["--encoder", tiny_encoder, "-q"]
    assert embed_corpus([s3.uri("in.txt"), "-o", s3.uri("out.npy"), *options]) == 0
    path = s3.path("out.npy")
    assert path.stat().st_size == 128 + 20 * 48 * 4
    assert cache.cache_folder().is_dir()
