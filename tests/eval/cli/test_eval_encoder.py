"""The command line of eval-encoder: what it prints, writes and refuses."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from eval.cli.bucc_score import bucc_score
from eval.cli.encoder import encoder_parser, eval_encoder
from eval.data.languages import iso_639_3
from eval.tasks import TASKS, load_task
from eval.tasks.arguments import LANGUAGES
from miner.commandline import product_version
from tests.eval.conftest import NumberEncoder

pytestmark = pytest.mark.usefixtures("number_encoder")

COLUMNS = "pair role split source target gold P R F1 95% interval threshold oracle F1 seconds"
Captured = pytest.CaptureFixture[str]


def run_bucc(*arguments: str | Path) -> int:
    return eval_encoder(["bucc", *map(str, arguments), "--encoder", "numbers"])


def rows_of(out: str) -> list[list[str]]:
    """The words of each line, with the seconds, which only the machine decides, as S."""
    lines = [re.sub(r" \d+\.\d$", " S", line) for line in out.splitlines()]
    return [line.split() for line in lines]


def test_bucc(bucc_dir: Path, capsys: Captured) -> None:
    assert run_bucc(bucc_dir, "--pair", "de-en") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    header, tune, test, *signatures = rows_of(captured.out)
    assert header == [*COLUMNS.split(), "F1", "at", ".5"]
    # Twelve numbers are on both sides, and gold has eleven of them.
    assert tune[:9] == "de-en tune training 24 24 11 91.67% 100.00% 95.65%".split()
    assert test[:6] == "de-en test sample 24 24 11".split()
    assert test[-2:] == ["95.65%", "S"]
    assert tune[10] == test[10]  # the threshold
    files = (bucc_dir / "de-en" / f"de-en.sample.{suffix}" for suffix in ("gold", "de", "en"))
    gold, source, target = (hashlib.sha256(file.read_bytes()).hexdigest()[:8] for file in files)
    assert signatures[1] == [
        f"bucc|pair:de-en|split:sample|gold:11|gold_sha256:{gold}|source_sha256:{source}|"
        f"target_sha256:{target}|encoder:numbers|k:4|margin:ratio|retrieval:max|"
        "align:no|threshold:optimized-on-training|ties:grouped|repeats:any|compat:none|"
        "interval:bootstrap-1000|"
        f"v:{product_version()}"
    ]
    assert signatures[0][0].startswith("bucc|pair:de-en|split:training|")
    assert "|threshold:optimized|" in signatures[0][0]
    assert len(signatures) == 2


def test_bucc_all_pairs(bucc_dir: Path, capsys: Captured) -> None:
    assert run_bucc(bucc_dir, "--pair", "all", "-k", "2", "--margin", "csls") == 0
    captured = capsys.readouterr()
    lines = rows_of(captured.out)
    assert [line[:3] for line in lines[1:5]] == [
        ["de-en", "tune", "training"],
        ["de-en", "test", "sample"],
        ["fr-en", "tune", "dev"],
        ["fr-en", "test", "test"],
    ]
    f1 = [float(line[8].rstrip("%")) for line in lines[1:5]]
    means = lines[5:7]
    assert [mean[:2] for mean in means] == [["mean", "tune"], ["mean", "test"]]
    assert float(means[0][4].rstrip("%")) == pytest.approx((f1[0] + f1[2]) / 2, abs=0.01)
    assert float(means[1][4].rstrip("%")) == pytest.approx((f1[1] + f1[3]) / 2, abs=0.01)
    assert all("|k:2|margin:csls|" in line for (line,) in lines[7:])
    assert len(lines) == 11
    assert "fr-en is tuned on 'dev' and tested on 'test'" in captured.err


def test_bucc_json_and_output_dir(bucc_dir: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "new" / "out"
    assert run_bucc(bucc_dir / "de-en", "--json", "--output-dir", out) == 0
    record = json.loads(capsys.readouterr().out)
    assert json.loads((out / "report.json").read_text()) == record
    assert list(record) == ["task", "pairs", "mean"]
    tune, test = record["pairs"]["de-en"]["tune"], record["pairs"]["de-en"]["test"]
    assert (tune["split"], tune["gold"], tune["source_sentences"]) == ("training", 11, 24)
    assert (tune["f1"], tune["oracle_f1"]) == (pytest.approx(22 / 23), tune["f1"])
    assert test["threshold"] == tune["threshold"] != test["oracle_threshold"]
    assert record["mean"]["test"]["f1"] == test["f1"]
    assert test["signature"].startswith("bucc|pair:de-en|split:sample|")
    assert sorted(path.name for path in out.iterdir()) == [
        "de-en.sample.extracted",
        "de-en.sample.tsv",
        "de-en.training.extracted",
        "de-en.training.tsv",
        "report.json",
    ]
    # What was mined can be scored again, to the same figures.
    stem = bucc_dir / "de-en" / "de-en.training"
    arguments = ["--src", f"{stem}.de", "--tgt", f"{stem}.en", "--gold", f"{stem}.gold"]
    pairs = str(out / "de-en.training.tsv")
    extracted = str(out / "again")
    again = [pairs, *arguments, "--optimize", "--json", "--output", extracted]
    assert bucc_score(again) == 0
    assert (out / "again").read_text() == (out / "de-en.training.extracted").read_text()
    again = json.loads(capsys.readouterr().out)
    assert {key: tune[key] for key in ("precision", "recall", "f1", "threshold", "found")} == {
        key: again[key] for key in ("precision", "recall", "f1", "threshold", "found")
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pair", "xx-en"], "has no language pair 'xx-en'; choose one of de-en, fr-en"),
        (["--tune", "dev", "--pair", "de-en"], "for the split 'dev'; choose one of s"),
        (["--encoder", "letters"], "no encoder 'letters'"),
    ],
)
def test_bad_input_is_one_line(
    bucc_dir: Path, capsys: Captured, arguments: list[str], message: str
) -> None:
    assert eval_encoder(["bucc", str(bucc_dir), "--encoder", "numbers", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if ": note: " not in line]
    assert len(errors) == 1
    assert errors[0].startswith("eval-encoder: error: ")
    assert message in errors[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: TASK"),
        (["bucc", ".", "-k", "0"], "argument -k: expected a whole number above 0, not '0'"),
        (["bucc", ".", "-k", "four"], "argument -k: expected a whole number above 0, not 'four'"),
        (["retrieval", ".", "--others", "few"], "expected a whole number above 0, not 'few'"),
        (["xsim", ".", "--matrix", "wide"], "invalid choice: 'wide'"),
        (["bucc", ".", "--margin", "wide"], "invalid choice: 'wide'"),
        (["bucc", ".", "--retrieval", "fwd"], "invalid choice: 'fwd'"),
        (["ysim", "."], "invalid choice: 'ysim'"),
    ],
)
def test_bad_command_lines(capsys: Captured, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as caught:
        eval_encoder(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("task", TASKS)
def test_help_of_a_task(task: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        eval_encoder([task, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "%%" not in text
    assert "%(" not in text
    assert ("--encoder" in text) == (task != "compare")  # which names several by position
    said = " ".join((load_task(task).__doc__ or "").split())
    assert task == "compare" or said in " ".join(text.split())  # which lists its suites, too


def test_only_the_task_asked_for_is_imported(capsys: Captured) -> None:
    parsers = encoder_parser("adit evaluate", ["sts"])
    assert parsers.parse_args(["sts", "x"]).encoder == "mini"
    with pytest.raises(SystemExit):
        parsers.parse_args(["xsim", "x"])


@pytest.fixture
def tatoeba_dir(tmp_path: Path) -> Path:
    for language in LANGUAGES:
        stem = f"tatoeba.{iso_639_3(language)}-eng"
        (tmp_path / f"{stem}.eng").write_text("one 1\ntwo 2\nthree 3\nfour 4\n")
        # In German the last two are swapped.
        foreign = "1\n2\n4\n3\n" if language == "de" else "1\n2\n3\n4\n"
        (tmp_path / f"{stem}.{iso_639_3(language)}").write_text(foreign)
    return tmp_path


def run_tatoeba(*arguments: str | Path) -> int:
    return eval_encoder(["tatoeba", *map(str, arguments), "--encoder", "numbers"])


def test_tatoeba(tatoeba_dir: Path, capsys: Captured) -> None:
    assert run_tatoeba(tatoeba_dir, "--lang", "de", "fra") == 0
    lines = capsys.readouterr().out.splitlines()
    header, *rows = (line[:64].rstrip() for line in lines[:4])
    assert header == "language    sentences   xx->en   en->xx     mean  95% interval"
    assert [row[:48] for row in rows] == [
        "de                  4   50.00%   50.00%   50.00%",
        "fra                 4    0.00%    0.00%    0.00%",
        "mean                    25.00%   25.00%   25.00%",
    ]
    assert [row[48:].strip() for row in rows] == ["0.00-100.00%", "0.00-0.00%", "0.00-50.00%"]
    assert lines[4] == (
        "tatoeba|languages:de,fra|sentences:8|similarity:cosine|encoder:numbers|"
        f"interval:bootstrap-1000|v:{product_version()}"
    )


def test_published_figures_stand_beside_the_same_task_only(
    tatoeba_dir: Path, capsys: Captured
) -> None:
    """German has 1000 sentences in the paper, Tamil 307; here one has as many."""
    sentences = "".join(f"{n}\n" for n in range(1000))
    for code, text in (("deu", sentences), ("tam", "1\n2\n")):
        for suffix in (code, "eng"):
            (tatoeba_dir / f"tatoeba.{code}-eng.{suffix}").write_text(text)
    assert run_tatoeba(tatoeba_dir, "--lang", "de", "tam", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["figures"]["de"]["beside"]["LASER"] == pytest.approx(0.0095)
    assert record["figures"]["tam"]["beside"]["LASER"] is None
    assert record["mean"]["beside"]["LASER"] is None
    assert run_tatoeba(tatoeba_dir, "--lang", "de") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("LASER")
    assert lines[1].endswith(" 0.95%")
    assert "tables 1 and 9" in lines[-1]


def test_tatoeba_languages(tatoeba_dir: Path, capsys: Captured) -> None:
    assert run_tatoeba(tatoeba_dir) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == [*LANGUAGES, "mean"]
    assert run_tatoeba(tatoeba_dir, "--lang", "all") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-3]] == sorted(
        iso_639_3(language) for language in LANGUAGES
    )


def test_tatoeba_json(tatoeba_dir: Path, capsys: Captured) -> None:
    assert run_tatoeba(tatoeba_dir, "--lang", "de", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    beside = {"xx->en": 0.5, "en->xx": 0.5, "LASER": None}
    found = {"units": 4, "value": 0.5, "interval": [0.0, 1.0], "beside": beside}
    assert record["figures"] == {"de": found}
    assert "mean" not in record
    assert record["signature"].startswith("tatoeba|languages:de|")


def test_tatoeba_missing_language(
    tatoeba_dir: Path, capsys: Captured, number_encoder: NumberEncoder
) -> None:
    number_encoder.encode = lambda sentences: pytest.fail("encoded before all was loaded")
    assert run_tatoeba(tatoeba_dir, "--lang", "de", "swe") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no language 'swe'; choose one of ces, cmn, deu" in captured.err
