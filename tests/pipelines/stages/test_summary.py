"""The account of a run: what is told at its end, and run.json."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from pipelines import progress
from pipelines.cli.mine import mine_corpus
from pipelines.stages.summary import describe, describe_estimates, next_steps
from tests.pipelines.worlds import World, read_jsonl


@pytest.fixture
def messy(world: World) -> World:
    """40 source lines: 3 repeated, 2 blank, 1 not UTF-8, 1 without a usable vector, 33 left."""
    lines = [text.encode() for text in world.source]
    lines[3], lines[4], lines[8], lines[9], lines[10], lines[20] = (
        *(b"", b"", b"\xff", lines[1], lines[1], lines[2]),
    )
    world.path("src.txt").write_bytes(b"\n".join(lines) + b"\n")
    vectors = world.source_vectors.copy()
    vectors[30] = 0
    np.save(world.path("src.npy"), vectors)
    return world


def test_everything_is_accounted_for(messy: World, capsys: pytest.CaptureFixture[str]) -> None:
    out, work_dir = messy.path("out.jsonl"), messy.path("work")
    arguments = [*messy.inputs(), "-o", str(out), "--work-dir", str(work_dir), "-k", "2"]
    assert mine_corpus([*arguments, "--src-lang", "de"]) == 0
    told = json.loads((work_dir / "run.json").read_bytes())
    side = told["source"]
    assert side == {
        "path": str(messy.path("src.txt")),
        "language": {"given": "de", "decided": "de", "share": None, "quality": None},
        "read": 40,
        "rejected": {"blank": 2, "undecodable": 1},
        "first_rejected": {"blank": 3, "undecodable": 8},
        "duplicates": 3,
        "unique": 34,
        "dropped": {"zero vector": 1},
        "searched": 33,
        "columns": [],
    }
    assert side["read"] == side["unique"] + side["duplicates"] + sum(side["rejected"].values())
    assert told["pairs"] == len(read_jsonl(out)) > 0
    assert told["candidates"] > told["pairs"]
    assert told["encoder"] == "precomputed"
    assert told["options"]["source"]["language"] == "de"
    assert (told["options"]["k"], told["options"]["threshold"]) == (2, None)

    error = capsys.readouterr().err
    assert (
        "source: 40 sentences read, 4 rejected (2 blank, first at line 4; "
        "1 undecodable, first at line 9; 1 zero vector), 3 duplicates, 33 searched\n"
        "target: 50 sentences read, 0 rejected, 0 duplicates, 50 searched\n"
        f"pairs: {told['pairs']} written, "
        f"from {told['candidates']} candidates (nearest neighbours)\n"
    ) in error
    closing = error[error.index("\ntime: ") :]
    assert "threshold: none" in closing
    assert f"adit report {work_dir} -o" in closing


def test_the_next_steps_can_be_typed() -> None:
    summary = {"options": {"threshold": 1.25, "fdr": None}}
    told = next_steps(summary, Path("a run"))
    assert "threshold: 1.25;" in told
    assert "adit report 'a run' -o" in told
    assert "rerun with --work-dir DIR" in next_steps(summary, None)
    assert "rerun" not in told


KEPT = {"by": "probability", "pairs": 120, "judged": 500, "wrong": 6.0}
NONE = {"by": "probability", "pairs": 0, "judged": 500, "wrong": 0.0}


@pytest.mark.parametrize(
    ("summary", "lines", "following"),
    [
        (
            {"kept": KEPT},
            [
                "estimated error rate: 5.0%",
                "not written: 380 pairs with a probability below 0.5; add --all to write them",
            ],
            "next: review the pairs with 'adit report run -o report.html'",
        ),
        (
            {"kept": {**KEPT, "judged": 120, "doubt": "half are alike"}},
            ["estimated error rate: 5.0%", "warning: half are alike"],
            "next: review the pairs with 'adit report run",
        ),
        (
            {"kept": {**KEPT, "by": "threshold", "threshold": 2.1}, "options": {"threshold": 1.5}},
            ["estimated error rate: 5.0%", "not written: 380 pairs with a score of at most 1.5"],
            "next: review",
        ),
        (
            {},
            [],
            "threshold: none, so sentences without a translation are also paired; margins are",
        ),
        (
            {"kept": {**NONE, "by": "fdr"}, "pairs": 0, "options": {"fdr": 0.05}},
            ["not written: 500 pairs; including them would exceed --fdr 0.05"],
            "next: increase --fdr, or omit it",
        ),
        (
            {"kept": NONE, "pairs": 0},
            ["not written: 500 pairs with a probability below 0.5; add --all to write them"],
            "next: add --all to write the pairs that are probably wrong",
        ),
        ({"pairs": 0, "options": {"threshold": 1.5}}, [], "next: lower --threshold"),
        ({"pairs": 0, "filters": {"short": 3}}, [], "next: omit --filters"),
        ({"pairs": 0}, [], "next: check that the encoder covers"),
    ],
)
def test_every_outcome_has_its_next_step(summary: dict, lines: list[str], following: str) -> None:
    whole: dict = {"pairs": 120, **summary}
    whole["options"] = {"threshold": None, "fdr": None, **summary.get("options", {})}
    assert describe_estimates(whole) == lines
    assert following in next_steps(whole, Path("run"))


def test_one_sentence_is_no_sentences() -> None:
    side = {"rejected": {}, "dropped": {}, "first_rejected": {}, "duplicates": 0, "searched": 1}
    sides = {"source": side | {"read": 1}, "target": side | {"read": 2}}
    summary = {**sides, "signature": "pairs|k:4"}
    lines = describe(summary | {"pairs": 1, "candidates": 1, "signature": ""}, {}, 0).splitlines()
    assert "1 sentence read" in lines[0]
    assert "2 sentences read" in lines[1]


def test_the_account_does_not_depend_on_what_was_there_already(messy: World) -> None:
    work_dir = messy.path("work")
    accounts = []
    for _ in range(2):
        messy.mine("out.jsonl", "--work-dir", str(work_dir))
        accounts.append((work_dir / "run.json").read_bytes())
    assert accounts[0] == accounts[1]


def test_quiet_prints_nothing(messy: World, capfd: pytest.CaptureFixture[str]) -> None:
    messy.mine("out.jsonl")
    assert capfd.readouterr() == ("", "")


def test_describe_writes_large_numbers_for_people() -> None:
    side = {
        "read": 1_234_567,
        "rejected": {"blank": 1000},
        "first_rejected": {"blank": 999},
        "dropped": {},
        "duplicates": 3567,
        "searched": 1_230_000,
    }
    sides = {"source": side, "target": side}
    summary = {**sides, "signature": "x", "pairs": 10_000, "candidates": 5_000_000}
    lines = describe(summary, {"read": 1.25, "search": 30.0}, 3 << 29).split("\n")
    assert lines == [
        "source: 1,234,567 sentences read, 1,000 rejected (1,000 blank, first at line 1000), "
        "3,567 duplicates, 1,230,000 searched",
        "target: 1,234,567 sentences read, 1,000 rejected (1,000 blank, first at line 1000), "
        "3,567 duplicates, 1,230,000 searched",
        "pairs: 10,000 written, from 5,000,000 candidates (nearest neighbours)",
        "signature: x",
        "time: read 1.2 s, search 30.0 s; peak memory: 1.50 GiB",
    ]


def test_progress_is_logged_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    monkeypatch.setattr("pipelines.progress.time.monotonic", lambda: now)
    monitor = progress.Monitor()
    with (
        caplog.at_level(logging.INFO, logger="pipelines"),
        monitor.stage("search", 10_000, "similarities") as meter,
    ):
        for now in (4.0, 9.0, 12.0, 21.0, 23.0):  # noqa: B007 - read by the clock above
            meter.advance(1000)
    assert [record.getMessage() for record in caplog.records] == [
        "search: 3,000 of 10,000 similarities, 250/s, 28 s left",
        "search: 5,000 of 10,000 similarities, 217/s, 23 s left",
        "search: 5,000 similarities in 23.0 s",
    ]


@pytest.mark.parametrize(
    ("count", "unit", "expected"),
    [
        (1, "sentences", "1 sentence"),
        (1, "similarities", "1 similarity"),
        (0, "pairs", "0 pairs"),
        (2000, "threads", "2,000 threads"),
    ],
)
def test_one_is_singular(count: int, unit: str, expected: str) -> None:
    assert progress.counted(count, unit) == expected


def test_the_rate_is_that_of_the_work_that_was_done_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After 100 seconds of preparation, and 600 steps of an earlier run."""
    now = 0.0
    monkeypatch.setattr("pipelines.progress.time.monotonic", lambda: now)
    with (
        caplog.at_level(logging.INFO, logger="pipelines"),
        progress.Monitor().stage("train", 1000, "steps") as meter,
    ):
        now = 100.0
        meter.begin(600)
        now = 110.0
        meter.advance(0)
        now = 120.0
        meter.advance(20)
    assert [record.getMessage() for record in caplog.records] == [
        "train: 600 of 1,000 steps, 0/s",
        "train: 620 of 1,000 steps, 1/s, 380 s left",
        "train: 20 steps in 20.0 s",
    ]


def test_a_stage_that_did_nothing_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, logger="pipelines"),
        pytest.raises(ValueError, match="no pairs"),
        progress.Monitor().stage("train", 1000, "steps"),
    ):
        raise ValueError("no pairs")
    assert not caplog.records


@pytest.mark.parametrize(("lowest", "shown"), [(0.4196, "0.41"), (0.5, "0.50"), (0.999, "0.99")])
def test_the_lowest_score_of_documents_is_a_threshold_for_all(lowest: float, shown: str) -> None:
    side = {"rejected": {}, "dropped": {}, "first_rejected": {}, "duplicates": 0, "searched": 1}
    documents = {"pairs": 3, "source": 4, "target": 4, "lowest": lowest}
    summary = {"source": side | {"read": 1}, "target": side | {"read": 2}, "documents": documents}
    text = describe(summary | {"pairs": 1, "candidates": 1, "signature": ""}, {}, 0)
    assert f"lowest score {shown}\n" in text
    assert float(shown) <= lowest


def test_what_was_left_out_by_number_and_as_identical() -> None:
    kept = {"by": "top", "pairs": 50, "judged": 586, "wrong": 1.5}
    assert describe_estimates({"kept": kept, "identical": 3883}) == [
        "estimated error rate: 3.0%",
        "not written: 536 pairs after the 50 best",
        "identical: 3,883 pairs; add --keep-identical to write them",
    ]
    nothing = {"kept": {**kept, "pairs": 0, "judged": 0}, "identical": 2, "pairs": 0}
    assert describe_estimates(nothing) == ["identical: 2 pairs; add --keep-identical to write them"]
    nothing["options"] = {"threshold": None, "fdr": None}
    assert "add --keep-identical" in next_steps(nothing, None)


def test_a_threshold_is_told_in_full() -> None:
    summary = {"options": {"threshold": 1.0512345678, "fdr": None}}
    assert "threshold: 1.0512345678;" in next_steps(summary, None)
