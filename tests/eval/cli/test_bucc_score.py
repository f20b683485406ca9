"""The command line of bucc-score: what it prints, writes and refuses."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval.cli.bucc_score import bucc_score
from miner.commandline import product_version

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "bucc_py"
GOLDEN_SIDES = [
    *("--src-texts", str(GOLDEN / "texts.de"), "--src-ids", str(GOLDEN / "ids.de")),
    *("--tgt-texts", str(GOLDEN / "texts.en"), "--tgt-ids", str(GOLDEN / "ids.en")),
]
GOLDEN_RUN = [str(GOLDEN / "candidates.tsv"), *GOLDEN_SIDES]
WITH_GOLD = [*GOLDEN_RUN, "--gold", str(GOLDEN / "gold")]

RECORDS = [
    {"score": 1.3, "source_id": "d1", "target_id": "e1"},
    {"score": 1.2, "source_id": "d2", "target_id": "e9", "target_duplicates": ["e2"]},
    {"score": 1.1, "source_id": "d3", "target_id": "e4"},
    {"score": 1.0, "source_id": "d4", "target_id": "e3"},
]
GOLD = "d1\te1\nd2\te2\nd5\te5\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with pairs.jsonl, the same as pairs.tsv, sentences and gold."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    Path("gold").write_text(GOLD)
    Path("de").write_text("".join(f"d{n}\tSatz {n}\n" for n in range(1, 6)))
    english = {**{n: f"sentence {n}" for n in range(1, 6)}, 9: "sentence 2"}
    Path("en").write_text("".join(f"e{n}\t{text}\n" for n, text in english.items()))
    with Path("pairs.tsv").open("w") as file:
        for record in RECORDS:
            text = english[int(record["target_id"][1:])]
            file.write(f"{record['score']}\tSatz {record['source_id'][1:]}\t{text}\n")
    return tmp_path


def sha(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]


def test_optimized(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score(["pairs.jsonl", "--gold", "gold", "--optimize"]) == 0
    line, signature = capsys.readouterr().out.splitlines()
    assert line == (
        "P=100.00% R=66.67% F1=80.00% threshold=1.15 extracted=2 correct=2 found=2 gold=3"
    )
    assert signature == (
        f"bucc|gold:3|gold_sha256:{sha('gold')}|pairs:4|pairs_sha256:{sha('pairs.jsonl')}|"
        f"threshold:optimized|ties:grouped|repeats:any|compat:none|v:{product_version()}"
    )


def test_every_pair_without_a_threshold(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score(["pairs.jsonl", "--gold", "gold"]) == 0
    line, signature = capsys.readouterr().out.splitlines()
    assert line == (
        "P=50.00% R=66.67% F1=57.14% threshold=-inf extracted=4 correct=2 found=2 gold=3"
    )
    assert "|threshold:none|" in signature


def test_a_threshold_is_strict(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score(["pairs.jsonl", "--gold", "gold", "--threshold", "1.2"]) == 0
    line, signature = capsys.readouterr().out.splitlines()
    assert line == (
        "P=100.00% R=33.33% F1=50.00% threshold=1.2 extracted=1 correct=1 found=1 gold=3"
    )
    assert "|threshold:1.2|" in signature


def test_tsv_scores_as_the_records_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score(["pairs.jsonl", "--gold", "gold", "--optimize"]) == 0
    expected = capsys.readouterr().out.splitlines()[0]
    sides = ["--src", "de", "--tgt", "en"]
    assert bucc_score(["pairs.tsv", "--gold", "gold", "--optimize", *sides]) == 0
    line, signature = capsys.readouterr().out.splitlines()
    assert line == expected
    assert f"|source_sha256:{sha('de')}|target_sha256:{sha('en')}|threshold:" in signature


def test_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score(["pairs.jsonl", "--gold", "gold", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record.pop("signature").startswith("bucc|gold:3|")
    assert record.pop("f1") == pytest.approx(4 / 7)
    assert record == {
        "precision": 0.5,
        "recall": 2 / 3,
        "threshold": None,
        "extracted": 4,
        "correct": 2,
        "found": 2,
        "gold": 3,
        "pairs": 4,
    }


def test_output(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score(["pairs.jsonl", "--gold", "gold", "--optimize", "--output", "out"]) == 0
    assert Path("out").read_bytes() == b"d1\te1\nd2\te9\n"
    assert bucc_score(["pairs.jsonl", "--threshold", "1.2", "--output", "out"]) == 0
    assert Path("out").read_bytes() == b"d1\te1\n"
    line, signature = capsys.readouterr().out.splitlines()[2:]
    assert line == "threshold=1.2 extracted=1"
    assert signature.startswith("bucc|gold:none|pairs:4|")
    assert sorted(path.name for path in here.iterdir()) == sorted(
        ["pairs.jsonl", "pairs.tsv", "gold", "de", "en", "out"]
    )


def test_the_gold_of_other_pairs_is_remarked_on(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("gold").write_text("e1\td1\n")
    assert bucc_score(["pairs.jsonl", "--gold", "gold"]) == 0
    assert capsys.readouterr().err == (
        "bucc-score: note: no source id of the gold occurs in the pairs, whose first is 'd1'; "
        "check that the gold belongs to these pairs, source first\n"
    )


def test_no_pairs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pairs.jsonl").write_text("")
    assert bucc_score(["pairs.jsonl", "--gold", "gold", "--optimize"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("P=0.00% R=0.00% F1=0.00% threshold=inf extracted=0 correct=0")


def test_golden_laser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "extracted"
    assert bucc_score([*WITH_GOLD, "--compat", "laser", "--output", str(output)]) == 0
    captured = capsys.readouterr()
    assert captured.out == (GOLDEN / "expected.txt").read_text()
    assert output.read_bytes() == (GOLDEN / "extracted.tsv").read_bytes()
    assert captured.err.startswith("bucc|gold:60|gold_sha256:218369ca|pairs:410|pairs_sha256:464b0")
    assert "|threshold:optimized|ties:split|repeats:dropped|compat:laser|v:" in captured.err


def test_golden_laser_extraction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "extracted"
    arguments = ["--compat", "laser", "--threshold", "1.10", "--output", str(output)]
    assert bucc_score([*GOLDEN_RUN, *arguments]) == 0
    assert output.read_bytes() == (GOLDEN / "extracted.th1.10.tsv").read_bytes()
    assert capsys.readouterr().out == "threshold=1.1 extracted=109\n"


def test_golden_laser_at_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    assert bucc_score([*WITH_GOLD, "--compat", "laser", "--threshold", "1.18219"]) == 0
    line = capsys.readouterr().out
    assert line == "- threshold=1.182190: precision=80.85, recall=63.33, F1=71.03\n"
    assert bucc_score([*WITH_GOLD, "--compat", "laser", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["extracted"], record["correct"], record["found"]) == (47, 38, 38)


def test_golden_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    """The same candidates by our rules: the repeated sentence takes part, as one more candidate."""
    assert bucc_score([*WITH_GOLD, "--optimize"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "P=79.17% R=63.33% F1=70.37% threshold=1.1821898652940348 "
        "extracted=48 correct=38 found=38 gold=60"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl", "--gold", "gold"], "missing.jsonl: file not found"),
        (["pairs.jsonl", "--gold", "missing"], "missing: file not found"),
        (["pairs.tsv", "--gold", "gold"], "pairs.tsv: pairs have texts but no ids; pass the files"),
        (["gold", "--gold", "gold"], "gold line 1: no score"),
        (["pairs.jsonl"], "missing --gold; pass it, or both --threshold and --output"),
        (["pairs.jsonl", "--optimize", "--output", "o"], "missing --gold; pass it, or both"),
        (["pairs.jsonl", "--threshold", "1"], "missing --gold; pass it, or both --threshold"),
        (["pairs.jsonl", "--gold", "gold", "--compat", "laser"], "pairs.jsonl: --compat laser"),
        (
            ["pairs.tsv", "--gold", "gold", "--compat", "laser"],
            "pairs.tsv: pairs have texts but no ids",
        ),
        (
            ["pairs.jsonl", "--gold", "gold", "--src", "en", "--tgt", "de"],
            "gold: the source id 'd1' is not among the source sentences (such ids: 3)",
        ),
        (
            ["pairs.tsv", "--gold", "gold", "--src", "en", "--tgt", "de"],
            "pairs.tsv line 1: the source text 'Satz 1' is not among the source sentences",
        ),
        (["pairs.jsonl", "--gold", "gold", "--output", "no/out"], "no/out: cannot be written"),
        (
            ["pairs.jsonl", "--src", "de"],
            "missing --tgt; pass the sentences of both sides, or of neither",
        ),
        (
            ["pairs.jsonl", "--src-texts", "de"],
            "--src-texts requires --src-ids; pass both files",
        ),
        (
            ["pairs.jsonl", "--tgt", "en", "--tgt-ids", "e"],
            "--tgt conflicts with --tgt-ids; omit one of them",
        ),
    ],
)
def test_bad_input_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert bucc_score(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"bucc-score: error: {message}")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", "1", "--optimize"], "--optimize: not allowed with argument --threshold"),
        (["--threshold", "high"], "argument --threshold: expected a number, not 'high'"),
        (["--threshold", "nan"], "argument --threshold: expected a number, not 'nan'"),
        (["--compat", "sacrebleu"], "invalid choice: 'sacrebleu'"),
    ],
)
def test_bad_command_lines(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        bucc_score(["pairs.jsonl", "--gold", "gold", *arguments])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "command"),
    [("eval.cli.bucc_score", "bucc_score"), ("eval.cli.encoder", "eval_encoder")],
)
def test_help_loads_nothing_heavy(module: str, command: str) -> None:
    code = f"""
import sys
from {module} import {command}
try:
    {command}(["--help"])
except SystemExit as stop:
    heavy = {{"numpy", "pyarrow", "torch", "faiss", "apache_beam"}} & sys.modules.keys()
    sys.exit(stop.code or ", ".join(heavy) or None)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"usage: {command.replace('_', '-')}")
