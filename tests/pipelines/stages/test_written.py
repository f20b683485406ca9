"""Every figure of a run is of what was written, and pairs of the same text are not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eval.report.sections import assess, overview
from eval.runs.explain import explain
from eval.runs.store import Run, open_run
from miner.same_text import same_texts
from miner.storage.layout import PAIRS, SIDES
from pipelines.cli.main import adit
from tests.pipelines.conftest import SAMPLE
from tests.pipelines.worlds import ON_BEAM, one_line, read_jsonl, write_lines

Captured = pytest.CaptureFixture[str]

# Of each side; a copy differs in case, marks or white space.
COPIES = [
    ("Angela Merkel", "Angela Merkel"),
    ("2010", "2010."),
    ("OK", "ok"),
    ("if (x > 3) { return y; }", "if (x > 3)  { return y; }"),
    ("The council approved the new budget.", "The council approved the new budget."),
    ("Der Zoo hat drei junge Tiger.", "DER ZOO HAT DREI JUNGE TIGER!"),
]


def texts(language: str) -> list[str]:
    path = SAMPLE / "de-en" / f"de-en.training.{language}"
    return [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command line without its output: news of which a third is not translated."""
    folder = tmp_path_factory.mktemp("mixed")
    news = texts("en")[:60]
    copies = [[*(pair[side] for pair in COPIES), *news] for side in (0, 1)]
    source = write_lines(folder / "a.de", [*texts("de")[:300], *copies[0]])
    target = write_lines(folder / "b.en", [*copies[1], *texts("en")[300:600]])
    return [str(source), str(target), "--work-dir", str(folder / "work"), "--src-lang=de"]


def mined(command: list[str], out: Path, *options: str) -> tuple[list[dict], dict]:
    """The pairs of a run, and its summary."""
    assert adit(["mine", *command, "--tgt-lang=en", "-o", str(out), *options]) == 0
    return read_jsonl(out), json.loads((Path(command[3]) / "run.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--all",
        "--top 9",
        "--top 100000",
        "--fdr 0.2",
        "--fdr 0.2 --top 5",
        "--threshold 2.5",
        "--filters length,numbers --top 30",
        "--filters length --near-duplicates --fdr 0.3",
        "--all --keep-identical",
        "--keep-identical --top 120 --filters length",
        "--score margin --top 12",
        "--score margin --threshold 1.2 --filters copied --top 20",
    ],
)
def test_all_figures_are_of_what_is_written(
    mixed: list[str], tmp_path: Path, capsys: Captured, options: str
) -> None:
    pairs, told = mined(mixed, tmp_path / "out.jsonl", *options.split())
    lines = capsys.readouterr().err.splitlines()
    run = open_run(Path(mixed[3]))
    assert told["pairs"] == len(pairs) == len(run.pairs)
    candidates = f"{told['candidates']:,} candidates (nearest neighbours)"
    assert f"pairs: {len(pairs):,} written, from {candidates}" in lines
    assert run.pairs.score.tolist() == [pair["score"] for pair in pairs]
    if top := re.search(r"--top (\d+)", options):
        assert len(pairs) <= int(top[1])
    page = overview(run, assess(run))
    assert page["cards"][0][1] == f"{len(pairs):,}"
    if "margin" not in options:
        check_estimates(told, pairs, lines, page)
    check_why(run, pairs)
    rejected = tmp_path / "out.rejected.jsonl"
    assert rejected.exists() is ("--filters" in options)
    left = [read_jsonl(rejected) if rejected.exists() else []]
    chosen = pq.read_metadata(Path(mixed[3]) / "pairs" / PAIRS).num_rows
    if "margin" not in options:
        by_filters = [pair for pair in left[0] if pair["reason"] != "identical"]
        below = told["kept"]["judged"] - len(pairs)
        copies = told.get("near_copies", 0)
        assert chosen == told["identical"] + len(by_filters) + copies + below + len(pairs)


def check_estimates(told: dict, pairs: list[dict], lines: list[str], page: dict) -> None:
    wrong = sum(1 - pair["probability"] for pair in pairs)
    assert told["kept"]["wrong"] == pytest.approx(wrong)
    share = f"{wrong / len(pairs):.1%}"
    assert f"estimated error rate: {share}" in lines
    assert page["cards"][1][1] == share
    threshold = told["kept"]["threshold"]
    assert threshold is None or threshold < pairs[-1]["score"]
    is_same = same_texts(*([pair[f"{side}_text"] for pair in pairs] for side in SIDES))
    if told["identical"]:
        assert not is_same.any()
        assert (
            f"identical: {told['identical']:,} pairs; add --keep-identical to write them" in lines
        )
    else:
        assert is_same.sum() >= len(COPIES)


def check_why(run: Run, pairs: list[dict]) -> None:
    """Each chosen pair is either said to be mined, at its place, or not."""
    places = {(pair["source_row"], pair["target_row"]): at for at, pair in enumerate(pairs, 1)}
    chosen = run.chosen.pairs
    rows = list(zip(chosen.source.tolist(), chosen.target.tolist(), strict=True))
    for pair in [*rows[:9], *rows[9:40:8], *rows[-3:]]:
        verdict = explain(run, *pair).verdict
        if pair in places:
            assert verdict.startswith(f"mined: pair {places[pair]} of {len(pairs)} by the ")
        else:
            assert verdict.startswith(
                ("not written: ", "identical text: ", "not mined: rejected by")
            )
            assert "its source was paired" not in verdict


def test_identical_pairs_are_named(mixed: list[str], tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out.jsonl"
    pairs, told = mined(mixed, out, "--filters", "length", "--all")
    rejected = [pair for pair in read_jsonl(tmp_path / "out.rejected.jsonl")]
    identical = [pair for pair in rejected if pair["reason"] == "identical"]
    assert len(identical) == told["identical"] >= len(COPIES) + 50
    assert {(pair["source_text"], pair["target_text"]) for pair in identical} >= set(COPIES)
    # What a copy was left out with is not paired with anything else.
    for side in ("source_row", "target_row"):
        assert not {pair[side] for pair in identical} & {pair[side] for pair in pairs}
    one = identical[0]
    capsys.readouterr()
    assert adit(["why", mixed[3], one["source_id"], one["target_id"]]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("identical text: not written; add --keep-identical to write it\n")
    every, told = mined(mixed, out, "--all", "--keep-identical")
    assert told["identical"] == 0
    assert len(every) == len(pairs) + len(rejected)
    # Neither their number nor their scores change what is said of the others.
    likely = {(pair["source_id"], pair["target_id"]): pair["probability"] for pair in every}
    for pair in [*pairs, *rejected]:
        assert likely[pair["source_id"], pair["target_id"]] == pair["probability"]


def test_the_estimate_is_that_without_copies(mixed: list[str], tmp_path: Path) -> None:
    """A third of untranslated lines hides no translation."""
    both = [Path(name).read_text(encoding="utf-8").splitlines() for name in mixed[:2]]
    source, target = both[0][:300], both[1][len(COPIES) + 60 :]
    inputs = [str(write_lines(tmp_path / "a", source)), str(write_lines(tmp_path / "b", target))]
    clean = [*inputs, "--work-dir", str(tmp_path / "work"), "--src-lang=de"]
    without, _ = mined(clean, tmp_path / "without.jsonl", "-q")
    pairs, _ = mined(mixed, tmp_path / "with.jsonl", "-q")
    found, expected = (
        {(pair["source_text"], pair["target_text"]) for pair in some} for some in (pairs, without)
    )
    assert len(expected) > 20
    assert len(found & expected) > 0.8 * max(len(found), len(expected))


def test_margins_write_all(mixed: list[str], tmp_path: Path) -> None:
    """As LASER does."""
    pairs, told = mined(mixed, tmp_path / "out.jsonl", "--score", "margin", "-q")
    assert {(pair["source_text"], pair["target_text"]) for pair in pairs} >= set(COPIES)
    assert "identical" not in told


def test_rate_leaves_copies_out(tmp_path: Path, capsys: Captured) -> None:
    german, english = texts("de")[:40], texts("en")[:40]
    lines = [*zip(german, english, strict=True), *COPIES, *zip(german, german, strict=True)]
    inputs = [
        str(write_lines(tmp_path / name, [line[side] for line in lines]))
        for side, name in enumerate(("a", "b"))
    ]
    out = tmp_path / "out.jsonl"
    assert adit(["rate", *inputs, "--src-lang=de", "--tgt-lang=en", "-o", str(out)]) == 0
    assert sorted(pair["source_row"] for pair in read_jsonl(out)) == list(range(40))
    assert (
        f"identical: {len(COPIES) + 40} pairs; add --keep-identical to write them"
        in capsys.readouterr().err
    )
    arguments = ["--src-lang=de", "--tgt-lang=en", "--keep-identical", "-q", "-o", str(out)]
    assert adit(["rate", *inputs, *arguments]) == 0
    assert len(read_jsonl(out)) == len(lines)


def test_two_corpora_of_the_same_text(tmp_path: Path, capsys: Captured) -> None:
    """In one language, a sentence's best match is its copy: nothing is left, and a line says so."""
    inputs = [str(write_lines(tmp_path / name, texts("en")[:50])) for name in ("a", "b")]
    out, work = tmp_path / "out.jsonl", str(tmp_path / "work")
    languages = ["--src-lang=en", "--tgt-lang=en", "--work-dir", work]
    assert adit(["mine", *inputs, *languages, "-o", str(out)]) == 0
    assert read_jsonl(out) == []
    lines = capsys.readouterr().err.splitlines()
    assert "identical: 50 pairs; add --keep-identical to write them" in lines
    assert "next: add --keep-identical to write the pairs with the same text on both sides" in lines
    assert not any(line.startswith("estimated") for line in lines)
    for options in ([], ["--fdr", "0.1"]):
        assert adit(["calibrate", work, "-o", str(tmp_path / "good.jsonl"), *options]) == 2
        assert "the run wrote no pairs" in one_line(capsys.readouterr().err, "adit calibrate")
    assert adit(["why", work, "1", "1"]) == 0
    assert capsys.readouterr().out.startswith("identical text: not written;")


@pytest.mark.parametrize("options", [["--shards", "3"], ON_BEAM])
def test_the_same_bytes_for_any_shards_and_workers(
    mixed: list[str], tmp_path: Path, options: list[str]
) -> None:
    more = ["--filters", "length", "--top", "30", "-q"]
    once, again = tmp_path / "once.jsonl", tmp_path / "again.jsonl"
    mined(mixed, once, *more)
    other = [*mixed[:3], str(tmp_path / "work"), *mixed[4:]]
    mined(other, again, *more, *options)
    assert again.read_bytes() == once.read_bytes()
    rejected = [path.with_suffix(".rejected.jsonl").read_bytes() for path in (once, again)]
    assert rejected[0] == rejected[1]


@pytest.mark.parametrize("rule", ["", "--fdr 0.1", "--top 20"])
def test_the_threshold_that_is_told_writes_the_same(
    mixed: list[str], tmp_path: Path, rule: str
) -> None:
    pairs, told = mined(mixed, tmp_path / "a.jsonl", *rule.split(), "-q")
    threshold = repr(told["kept"]["threshold"])
    again, _ = mined(mixed, tmp_path / "b.jsonl", "--threshold", threshold, "-q")
    assert again == pairs


def test_thresholds_of_calibrate_write_what_they_say(
    mixed: list[str], tmp_path: Path, capsys: Captured
) -> None:
    for rule in ([], ["--all"], ["--score", "margin", "--top", "60"]):
        mined(mixed, tmp_path / "all.jsonl", "-q", *rule)
        marks = []
        if "margin" in rule:
            rows = read_jsonl(tmp_path / "all.jsonl")[:40]
            known = [
                f"{pair['source_id']}\t{pair['target_id']}\t{'wrong' if at % 9 else 'right'}"
                for at, pair in enumerate(rows)
            ]
            marks = ["--known", str(write_lines(tmp_path / "marks.tsv", known))]
        capsys.readouterr()
        command = ["calibrate", mixed[3], "-o", str(tmp_path / "good.jsonl"), *marks]
        assert adit(command) == 0
        table = [line.split() for line in capsys.readouterr().out.splitlines()[1:-1]]
        for _, threshold, kept, *_ in table:
            if threshold != "inf":
                score = ["--score", "margin"] if "margin" in rule else []
                options = ["-q", "--threshold", threshold, *score]
                pairs, _ = mined(mixed, tmp_path / "out.jsonl", *options)
                assert len(pairs) == int(kept)
