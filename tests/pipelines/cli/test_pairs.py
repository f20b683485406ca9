"""adit rate of one file of pairs, adit convert, and options from a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.cli.main import adit
from tests.pipelines.conftest import SAMPLE

PAIRS = 40
FILES = SAMPLE / "de-en" / "de-en.training"


def sample_pairs() -> list[tuple[str, str]]:
    texts = []
    for language in ("de", "en"):
        lines = Path(f"{FILES}.{language}").read_text(encoding="utf-8").splitlines()
        texts.append(dict(line.split("\t", 1) for line in lines))
    gold = Path(f"{FILES}.gold").read_text(encoding="utf-8").split()
    ids = zip(gold[::2], gold[1::2], strict=True)
    return [(texts[0][one], texts[1][other]) for one, other in ids][:PAIRS]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs in columns 2 and 4, a repeated pair, a blank line, a copy, and a short line."""
    lines = [f"{n}\t{s}\tx\t{t}" for n, (s, t) in enumerate(sample_pairs())]
    source, target = sample_pairs()[0]
    lines[5:5] = ["", "short", lines[2], f"9\t{source}\tx\t{source}", f"9\t \tx\t{target}"]
    path = tmp_path_factory.mktemp("table") / "in.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rate(*arguments: object) -> None:
    languages = ["--src-lang=de", "--tgt-lang=en", "-q"]
    assert adit(["rate", *map(str, arguments), *languages]) == 0


def cells_of(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [line.rsplit("\t", 3) for line in lines]


def test_each_line_comes_out_in_its_place(table: Path, tmp_path: Path) -> None:
    rate(table, "-o", tmp_path / "out.tsv")
    rate(table, "-o", tmp_path / "best.jsonl")
    lines, found = (
        table.read_text(encoding="utf-8").split("\n")[:-1],
        cells_of(tmp_path / "out.tsv"),
    )
    assert [line for line, *_ in found] == lines
    reasons = [reason for *_, reason in found]
    assert reasons[5:10] == ["blank", "has 1 column, expected 4", "", "identical", "blank"]
    assert {*reasons[:5], *reasons[10:]} == {""}
    assert found[7][1:3] == found[2][1:3]  # the repeated pair
    assert [cells[1:3] for cells in (found[5], found[6], found[9])] == [["", ""]] * 3
    best = map(json.loads, (tmp_path / "best.jsonl").read_text(encoding="utf-8").splitlines())
    scores = {pair["source_row"]: (pair["score"], pair["probability"]) for pair in best}
    assert len(scores) == PAIRS
    for row, both in scores.items():
        np.testing.assert_allclose([float(cell) for cell in found[row][1:3]], both, rtol=1e-5)


def test_lines_that_options_drop_have_the_reason(table: Path, tmp_path: Path) -> None:
    rate(table, "-o", tmp_path / "a.tsv", "--threshold=2", "--filters", "web,short")
    found = cells_of(tmp_path / "a.tsv")
    for _, score, _, reason in found:
        if score and reason not in ("identical", "length", "numbers"):
            assert (reason == "not kept") == (float(score) <= 2)
    assert {"not kept", ""} < {reason for *_, reason in found}


def test_filters_and_near_copies(table: Path, tmp_path: Path) -> None:
    lines = table.read_text(encoding="utf-8").split("\n")[:5]
    near = lines[1].split("\t")
    near[1], near[3] = f"{near[1]} Ja.", f"{near[3]} Yes."
    wrong = [*lines[0].split("\t")[:3], "Yes."]
    text = "\n".join([*lines, "\t".join(near), "\t".join(wrong)]) + "\n"
    (tmp_path / "in.tsv").write_text(text, encoding="utf-8")
    options = ("--near-duplicates", "--filters=length")
    rate(tmp_path / "in.tsv", "-o", tmp_path / "out.tsv", *options)
    reasons = [reason for *_, reason in cells_of(tmp_path / "out.tsv")]
    assert sorted([reasons[1], reasons[5]]) == ["", "near-copy"]
    assert reasons[6] == "length"


def test_a_header_and_two_files(table: Path, tmp_path: Path) -> None:
    pairs = sample_pairs()
    (tmp_path / "in").write_text(
        "source\ttarget\n" + "".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8"
    )
    rate(tmp_path / "in", "-o", tmp_path / "out.tsv")
    (header, *rest) = cells_of(tmp_path / "out.tsv")
    assert header == ["source\ttarget", "score", "probability", "reason"]
    for side, name in enumerate("ab"):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    rate(tmp_path / "a", tmp_path / "b", "--order=input", "-o", tmp_path / "two.tsv")
    assert cells_of(tmp_path / "two.tsv") == rest


def test_lines_that_are_not_utf_8_come_out_as_they_are(tmp_path: Path) -> None:
    lines = [f"{s}\t{t}".encode() for s, t in sample_pairs()]
    lines[3], lines[8] = b"caf\xe9\tcoffee", b"\xff\xfe"
    (tmp_path / "in.tsv").write_bytes(b"\n".join(lines))
    rate(tmp_path / "in.tsv", "-o", tmp_path / "out.tsv", "--repair")
    found = (tmp_path / "out.tsv").read_bytes().split(b"\n")[:-1]
    assert [line[: len(own)] for line, own in zip(found, lines, strict=True)] == lines
    assert found[8] == b"\xff\xfe\t\t\tundecodable\t\t"
    for side, name in enumerate("ab"):
        sides = [(line + b"\t").split(b"\t")[side] for line in lines]
        (tmp_path / name).write_bytes(b"\n".join(sides))
    rate(tmp_path / "a", tmp_path / "b", "--order=input", "-o", tmp_path / "two.tsv")
    assert cells_of(tmp_path / "two.tsv")[3] == ["caf\\xe9\tcoffee", "", "", "undecodable"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--order=input", "-o", "out.jsonl"],
            "out.jsonl: --order input writes TSV",
        ),
        (["--order=input", "--top=3", "-o", "out.tsv"], "--top conflicts with --order input"),
        (
            ["--unmatched-words", "-o", "out.tsv"],
            "--unmatched-words conflicts with --order input",
        ),
        (
            ["--unmatched-words", "--order=score", "-o", "out.tsv"],
            "out.tsv: this format has no field for --unmatched-words",
        ),
        (
            ["--unmatched-words", "--score=margin", "-o", "out.jsonl"],
            "--unmatched-words requires scores by words",
        ),
        (["{table}", "--columns=1,2", "-o", "out.tsv"], "--columns conflicts with TGT; omit one"),
        (
            ["--src-format=tsv", "-o", "out.tsv"],
            "--src-format requires TGT; omit --src-format: the format of pairs is recognised",
        ),
        (["--input-format=tsv", "-o", "out.tsv"], "--input-format requires TGT; omit"),
        (["--columns=1,x", "-o", "out.tsv"], "no column 'x'; choose --columns among 1 to 4"),
    ],
)
def test_what_cannot_be_rated(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    own = [argument.format(table=table) for argument in arguments]
    assert adit(["rate", str(table), *own]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert not [*tmp_path.iterdir()]


def test_repaired_texts_stand_beside_their_line(tmp_path: Path) -> None:
    pairs = [("SchÃ¶n&#39;s Haus", "That&#39;s a  house"), *sample_pairs()[:5]]
    (tmp_path / "in.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    rate(tmp_path / "in.tsv", "-o", tmp_path / "out.tsv", "--repair")
    lines = (tmp_path / "out.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    first = lines[0].split("\t")
    assert first[:2] == [*pairs[0]]
    assert first[-2:] == ["Schön's Haus", "That's a house"]
    assert [line.split("\t")[:2] for line in lines[1:]] == [[*pair] for pair in pairs[1:]]
    assert adit(["convert", str(tmp_path / "in.tsv"), "--repair", "-q", "-o", "-"]) == 0


def test_repaired_texts_of_two_files_with_ids(tmp_path: Path) -> None:
    pairs = sample_pairs()[:4]
    for side, name in enumerate(("a.tsv", "b.tsv")):
        rows = "".join(f"{name}{row}\t{pair[side]}\n" for row, pair in enumerate(pairs))
        (tmp_path / name).write_text(rows, encoding="utf-8")
    formats = ["--src-format=tsv", "--tgt-format=tsv"]
    inputs = tmp_path / "a.tsv", tmp_path / "b.tsv"
    rate(*inputs, *formats, "--repair", "-o", tmp_path / "out.jsonl", "--order=score")
    found = {(p["source_text"], p["target_text"]) for p in read_pairs_of(tmp_path / "out.jsonl")}
    assert found == set(pairs)


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "dataset"])
def test_repaired_pairs_keep_their_original_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr("miner.storage.pair_files.sides.BATCH_LINES", 7)
    pairs = [*sample_pairs()[:20], ("\u2028SchÃ¶n&#39;s  Haus", "That&#39;s a house\u2029")]
    lines = [f"{s}\t{t}" for s, t in pairs]
    lines[5:5] = ["", "one column", lines[2]]
    lines.append(f"{sample_pairs()[0][0]}\tYes.")
    (tmp_path / "in.tsv").write_text("\n".join(lines), encoding="utf-8")
    for side, name in enumerate("ab"):
        sides = [(line + "\t").split("\t")[side] + "\n" for line in lines]
        (tmp_path / name).write_text("".join(sides), encoding="utf-8")
    inputs = [tmp_path / "a", tmp_path / "b"]
    for corpora in ([tmp_path / "in.tsv"], inputs):
        rate(*corpora, "--repair", "--filters=length", "-o", tmp_path / f"out.{ending}")
        found, rejected = (
            read_pairs_of(tmp_path / f"out{part}.{ending}") for part in ("", ".rejected")
        )
        assert len(rejected) == 1
        for pair in (*found, *rejected):
            cells = lines[pair["source_row"]].split("\t")
            assert [pair["source_original"], pair["target_original"]] == cells
        repaired = next(pair for pair in found if "Haus" in pair["source_original"])
        assert (repaired["source_text"], repaired["target_text"]) == (
            "Schön's Haus",
            "That's a house",
        )
    rate(tmp_path / "in.tsv", "-o", tmp_path / f"out.{ending}")
    assert "source_original" not in read_pairs_of(tmp_path / f"out.{ending}")[0]
    command = ["convert", str(tmp_path / "in.tsv"), "-q", "-o", str(tmp_path / f"c.{ending}")]
    assert adit([*command, "--repair"]) == 0
    converted = read_pairs_of(tmp_path / f"c.{ending}")
    assert [(pair["source_original"], pair["target_original"]) for pair in converted] == [
        tuple(line.split("\t")) for line in lines if "\t" in line
    ]
    assert adit(command) == 0
    assert [*read_pairs_of(tmp_path / f"c.{ending}")[0]] == ["source_text", "target_text"]


def read_pairs_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pq.read_table(path / "pairs.parquet" if path.is_dir() else path).to_pylist()


@pytest.mark.parametrize("ending", ["tmx", "jsonl", "parquet", "tsv.gz", "dataset"])
def test_convert(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    languages = ["--src-lang=de", "--tgt-lang=en"]
    first, second = tmp_path / f"a.{ending}", tmp_path / "b.tsv"
    assert adit(["convert", str(table), "-o", str(first), *languages]) == 0
    error = capsys.readouterr().err
    assert "42 pairs written" in error
    assert "skipped: 3 lines (2 blank, 1 has 1 column, expected 4), first " in error
    assert adit(["convert", str(first), "-o", str(second), "-q"]) == 0
    lines = second.read_text(encoding="utf-8").split("\n")[:-1]
    expected = [line.split("\t") for line in table.read_text(encoding="utf-8").split("\n")]
    assert lines == [
        f"{cells[1]}\t{cells[3]}" for cells in expected if len(cells) == 4 and cells[1].strip()
    ]


def test_options_from_a_file(table: Path, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        f"""
        source = "{table}"
        src-lang = "de"
        tgt_lang = "en"
        order = "score"
        filters = ["length", "numbers"]
        all = true
        [[run]]
        output = "{tmp_path}/one.parquet"
        work-dir = "{tmp_path}/work"
        [[run]]
        output = "{tmp_path}/two.tmx"
        k = 2
        repair = true
        near-duplicates = true
        keep-identical = true
        """
    )
    assert adit(["rate", "--config", str(tmp_path / "run.toml"), "-q"]) == 0
    rate(table, "-o", tmp_path / "same.parquet", "--order=score", "--filters=length,numbers")
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("one", "same")]
    assert tables[0] == tables[1]
    assert b"|filters:length+numbers|" in tables[0].schema.metadata[b"signature"]
    signature = "|filters:length+numbers+near-duplicates|identical:kept|texts:repaired|kept:all|"
    tmx = (tmp_path / "two.tmx").read_text(encoding="utf-8")
    assert "|k:2|" in tmx and signature in tmx
    page = tmp_path / "page.html"
    assert adit(["report", str(tmp_path / "work"), "-o", str(page)]) == 0
    assert f"<h1>Mined pairs: {table.name}</h1>" in page.read_text(encoding="utf-8")
    before = (tmp_path / "one.parquet").read_bytes()
    (tmp_path / "one.parquet").unlink()
    stored = tmp_path / "work" / "run.toml"
    summary = json.loads((tmp_path / "work" / "run.json").read_text(encoding="utf-8"))
    assert stored.read_text(encoding="utf-8") == summary["config"]
    assert adit(["rate", "--config", str(stored), "-q"]) == 0
    assert (tmp_path / "one.parquet").read_bytes() == before
    # The same on new data: the command line's corpora replace those of the file.
    new, again = tmp_path / "new.tsv", tmp_path / "again.parquet"
    new.write_bytes(b"".join(table.read_bytes().splitlines(keepends=True)[10:]))
    for arguments in ([new, "--config", stored], ["--config", stored, new]):
        rate(*arguments, "-o", again, "--work-dir", tmp_path / "other")
        assert len(pq.read_table(again)) == PAIRS - 5 == len(tables[0]) - 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fdr 0.5", "run.toml: is not TOML ("),
        ("speed = 1", "run.toml: unknown option 'speed'; use one of source, target"),
        ("all = 1", "run.toml: all must be true or false, not 1"),
        ("run = 1", "run.toml: 'run' must be tables; write [[run]]"),
        ("run = []", "run.toml: 'run' must be tables; write [[run]]"),
    ],
)
def test_bad_files_of_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "run.toml").write_text(text)
    assert adit(["mine", "--config", str(tmp_path / "run.toml")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "dataset"])
def test_words_without_a_counterpart_are_written(tmp_path: Path, ending: str) -> None:
    pairs = [*sample_pairs()[:20], ("Das Haus ist rot.", "The house is blue.")]
    (tmp_path / "in.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    out = tmp_path / f"out.{ending}"
    rate(tmp_path / "in.tsv", "--unmatched-words", "-o", out)
    written = read_pairs_of(out)
    assert len(written) == len(pairs)
    changed = next(pair for pair in written if pair["target_text"] == pairs[-1][1])
    assert (changed["source_unmatched"], changed["target_unmatched"]) == ([], ["blue"])
    rate(tmp_path / "in.tsv", "-o", out)
    assert "source_unmatched" not in read_pairs_of(out)[0]
