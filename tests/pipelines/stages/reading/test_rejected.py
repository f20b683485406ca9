"""Bad data is kept apart, told with its place, and ends no run unless it is too much."""

from __future__ import annotations

import gzip
import json
import logging
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from apache_beam import Pipeline
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from numpy.typing import NDArray

from encoder.bag.encoder import BagEncoder
from pipelines.cli.mine import mine_corpus
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.run.beam import build
from pipelines.run.steps import steps_of
from pipelines.stages.encode import encode_block
from pipelines.stages.summary import read_summary
from tests.pipelines.conftest import Refused
from tests.pipelines.worlds import World, read_jsonl, write_lines

FUZZED = 10_000


def rejected(work_dir: Path, side: str = "source") -> list[dict]:
    return pq.read_table(work_dir / f"rejected/{side}.parquet").to_pylist()


def fuzzed_line(chance: random.Random) -> bytes:
    """Anything without a line's end; often text, sometimes the same again, sometimes very long."""
    kind = chance.random()
    if kind < 0.3:
        return chance.randbytes(chance.randrange(40)).replace(b"\n", b"")
    if kind < 0.4:
        return "".join(map(chr, chance.choices(range(32, 0xD7FF), k=20))).encode()
    if kind < 0.45:
        return chance.choice([b"", b" \t", b"\xe2\x80\xa8", b"\0", b"a\0b", b"\xed\xa0\x80"])
    if kind < 0.455:
        return b"x" * chance.choice([10_000, 10_001, 1 << 20, (1 << 20) + 1])
    return b"Satz %d " % chance.randrange(3000) + chance.choice([b"ja", b"nein", b"\xff"])


def account(told: dict) -> int:
    """What the summary of a side says has become of its records."""
    assert told["unique"] == told["searched"] + sum(told["dropped"].values())
    return told["unique"] + told["duplicates"] + sum(told["rejected"].values())


def test_of_fuzzed_lines_none_is_lost(tmp_path: Path, tiny_encoder: str) -> None:
    chance = random.Random(5)
    lines = [fuzzed_line(chance) for _ in range(FUZZED)]
    (tmp_path / "src.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    write_lines(tmp_path / "tgt.txt", ["ja", "nein", "Satz 5"])
    work_dir = tmp_path / "work"
    arguments = [str(tmp_path / name) for name in ("src.txt", "tgt.txt")]
    arguments += ["-o", str(tmp_path / "out.tsv"), "--encoder", tiny_encoder, "--index", "exact"]
    assert (
        mine_corpus([*arguments, "-q", "--input-format", "lines", "--work-dir", str(work_dir)]) == 0
    )
    told = read_summary(work_dir)["source"]
    assert told["read"] == FUZZED == account(told)
    found = rejected(work_dir)
    assert Counter(row["why"] for row in found) == Counter(told["rejected"]) + Counter(
        told["dropped"]
    )
    assert {"undecodable", "blank", "NUL", "too long"} <= told["rejected"].keys()
    for row in found:
        assert (row["file"], row["line"]) == ("src.txt", row["row"] + 1)
        shown = lines[row["row"]][:40_000].decode(errors="backslashreplace")[:10_000]
        assert row["text"] == shown.removesuffix("\r") or row["text"] == shown


def test_rejected_records_of_every_format_are_shown(world: World) -> None:
    def mined(name: str) -> list[tuple[int, str, str]]:
        work_dir = world.path(f"work-{name}")
        vectors = world.inputs()[2:]
        arguments = [str(world.path(name)), str(world.path("tgt.txt")), *vectors, "-q"]
        out = str(world.path("out.tsv"))
        assert mine_corpus([*arguments, "-o", out, "--work-dir", str(work_dir)]) == 0
        return [(row["line"], row["why"], row["text"]) for row in rejected(work_dir)]

    good = [f"{row}\tSatz {row}" for row in range(38)]
    write_lines(world.path("a.tsv"), ["first\tein Satz", "kein Satz", *good])
    assert mined("a.tsv") == [(2, "malformed", "kein Satz")]
    records = [json.dumps({"text": line}) for line in good]
    write_lines(world.path("a.jsonl"), [*records, '{"text": "\\ud800"}', "[]"])
    assert mined("a.jsonl") == [(39, "undecodable", '{"text": "\\ud800"}'), (40, "malformed", "[]")]
    import pyarrow as pa

    text = pa.array([line.encode() for line in good] + [b"\xff", None]).cast(pa.binary())
    pq.write_table(pa.table({"text": text.view(pa.string())}), world.path("a.parquet"))
    assert mined("a.parquet") == [(39, "undecodable", "\\xff"), (40, "malformed", "")]


def test_a_file_that_cannot_be_read_is_rejected_and_the_others_are_mined(
    world: World, tiny_encoder: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = world.path("many")
    folder.mkdir()
    write_lines(folder / "1.txt", world.source[:20])
    whole = gzip.compress("".join(f"{line}\n" for line in world.source[20:]).encode())
    (folder / "2.txt.gz").write_bytes(whole[:-9])
    write_lines(folder / "3.txt", ["der letzte Satz", "", "der allerletzte"])
    (folder / ".hidden").write_bytes(b"\xff")
    work_dir = world.path("work")
    arguments = [str(folder), str(world.path("tgt.txt")), "--encoder", tiny_encoder, "--all", "-q"]
    out = world.path("out.jsonl")
    assert mine_corpus([*arguments, "-o", str(out), "--work-dir", str(work_dir)]) == 0
    blank, broken = rejected(work_dir)  # files that cannot be read come last
    assert (broken["file"], broken["why"]) == ("2.txt.gz", "unreadable file")
    assert "is not a whole .gz file" in broken["text"]
    assert (blank["file"], blank["line"], blank["why"]) == ("3.txt", 2, "blank")
    told = read_summary(work_dir)["source"]
    assert told["read"] == account(told)
    assert told["unique"] == 22
    assert read_jsonl(out)


class FailingEncoder:
    """Fails on every batch that holds a sentence with a 7."""

    name, dim = "failing", 4

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        if any("7" in sentence for sentence in sentences):
            raise RuntimeError("no\nsevens")
        return np.array([[len(text), 1, 2, int(text)] for text in sentences], dtype=np.float32)


def test_only_the_sentences_that_an_encoder_fails_on_are_lost() -> None:
    encoder = FailingEncoder()
    texts = [str(number) for number in range(64)]
    block = encode_block(encoder, texts)
    sevens = [number for number in range(64) if "7" in str(number)]
    assert block.failed == dict.fromkeys(sevens, "RuntimeError: no sevens")
    assert np.isnan(block.vectors[sevens]).all()
    rest = np.delete(np.arange(64), sevens)
    np.testing.assert_array_equal(block.vectors[rest, 3], rest)


def test_a_batch_that_fails_as_a_whole_alone_loses_nothing() -> None:
    class Small(FailingEncoder):
        def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
            if len(sentences) > 5:
                raise RuntimeError("CUDA out of memory")
            return np.ones((len(sentences), 4), dtype=np.float32)

    block = encode_block(Small(), ["a"] * 64)
    assert not block.failed
    assert (block.vectors == 1).all()


@pytest.fixture
def failing_run(world: World, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> MiningOptions:
    """A run whose encoder fails for every sentence with a 7, and whose source has a blank line."""
    really_encode = BagEncoder.encode

    def encode(self: BagEncoder, sentences: Sequence[str]) -> NDArray[np.float32]:
        if any("7" in sentence for sentence in sentences):
            raise ValueError("sevens")
        return really_encode(self, sentences)

    monkeypatch.setattr(BagEncoder, "encode", encode)
    write_lines(world.path("src.txt"), [*world.source, ""])
    return MiningOptions(
        source=CorpusOptions(path=world.path("src.txt")),
        target=CorpusOptions(path=world.path("tgt.txt")),
        output=world.path("out.jsonl"),
        work_dir=world.path("work"),
        encoder=tiny_encoder,
        shards=3,
    )


def test_failing_batches_are_told_and_counted(
    failing_run: MiningOptions, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    failing_run.work_dir.mkdir()
    pipeline = Pipeline(runner=FnApiRunner())
    build(pipeline, steps_of(failing_run), job_of(failing_run))
    with caplog.at_level(logging.WARNING, logger="pipelines"):
        result = pipeline.run()
    counters = {
        counter.key.metric.name: counter.committed
        for counter in result.metrics().query()["counters"]
        if counter.key.metric.namespace == "sentences"
    }
    sevens = [row for row, text in enumerate(world.source) if "7" in text]
    other_sevens = [text for text in world.target if "7" in text]
    assert counters == {
        "read": 91,
        "unique": 90,
        "duplicates": 0,
        "rejected: blank": 1,
        "rejected: encoder failed": len(sevens) + len(other_sevens),
    }
    found = rejected(failing_run.work_dir)
    assert [(row["row"], row["line"], row["why"], row["text"]) for row in found[1:]] == [
        (row, row + 1, "encoder failed: ValueError: sevens", world.source[row]) for row in sevens
    ]
    assert (found[0]["row"], found[0]["why"], found[0]["text"]) == (40, "blank", "")
    told = read_summary(failing_run.work_dir)
    assert told["source"]["dropped"] == {"encoder failed": len(sevens)}
    assert account(told["source"]) == 41
    assert not any("7" in row["source_text"] for row in read_jsonl(failing_run.output))


def test_too_much_that_is_rejected(
    world: World, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(world.path("src.txt"), ["", " ", *world.source[2:]])
    run = [*world.inputs(), "-o", str(world.path("out.jsonl"))]
    error = refused([*run, "--max-rejected", "1"])
    assert "--max-rejected 1: 2 sentences were rejected (source 2, target 0)" in error
    assert "--max-rejected -1: must be at least 0" in refused([*run, "--max-rejected", "-1"])
    assert mine_corpus([*run, "--max-rejected", "2", "-q"]) == 0
