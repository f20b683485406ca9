"""adit rate --score texts: each line is rated while the input is read."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encoder import load_encoder
from miner.judge.features import RunStatistics, compute_features, read_texts
from miner.judge.model import bundled_judge
from miner.storage.pair_files.base import FilePair
from miner.threads import using_threads
from pipelines.cli.main import adit
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.run import texts
from tests.pipelines.cli.test_pairs import cells_of, sample_pairs, table

__all__ = ["table"]

TEXTS = ("--score=texts", "--src-lang=de", "--tgt-lang=en")
Captured = pytest.CaptureFixture[str]


def rate(*arguments: object) -> None:
    assert adit(["rate", *map(str, arguments), *TEXTS, "-q"]) == 0


def test_lines_come_out_as_in_the_full_method(table: Path, tmp_path: Path) -> None:
    rate(table, "-o", tmp_path / "out.tsv", "--filters=numbers,length")
    full = ["--src-lang=de", "--tgt-lang=en", "--filters=numbers,length", "-q"]
    assert adit(["rate", str(table), "-o", str(tmp_path / "full.tsv"), *full]) == 0
    found, expected = (cells_of(tmp_path / f"{name}.tsv") for name in ("out", "full"))
    assert [[line, reason] for line, *_, reason in found] == [
        [line, reason] for line, *_, reason in expected
    ]
    assert [bool(cells[1]) for cells in found] == [bool(cells[1]) for cells in expected]
    assert found[7][1:3] == found[2][1:3]  # the repeated pair
    assert float(found[2][2]) > 0.9


def test_scores_are_of_the_texts_only(tmp_path: Path) -> None:
    pairs = sample_pairs()
    pairs[3] = pairs[3][0], "Nobody has read this book."
    write_table(tmp_path / "in.tsv", pairs)
    rate(tmp_path / "in.tsv", "-o", tmp_path / "out.tsv")
    source, target = map(list, zip(*pairs, strict=True))
    makers, languages = [load_encoder("mini")] * 2, ("de", "en")
    read = read_texts(makers, source, target, languages=languages, is_given=True)
    features = compute_features(read, None, RunStatistics.of(read, is_given=True))
    scores = bundled_judge(is_given=True).scores(features)
    likely = bundled_judge(is_given=True).probabilities([scores]).predict(scores)
    found = np.array([cells[1:3] for cells in cells_of(tmp_path / "out.tsv")], dtype=float)
    np.testing.assert_allclose(found, np.stack([scores, likely], axis=1), rtol=1e-5)
    assert found[3].argmin() == found[:, 0].argmin() or found[3, 1] < 0.1


def write_table(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    path.write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")


def test_later_lines_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the blocks and threads: the first lines decide."""
    monkeypatch.setattr(texts, "FIRST_LINES", 25)
    pairs = sample_pairs()
    write_table(tmp_path / "all.tsv", pairs)
    write_table(tmp_path / "some.tsv", pairs[:30])
    rate(tmp_path / "all.tsv", "-o", tmp_path / "a.tsv", "--filters=web")
    monkeypatch.setattr(texts, "PAIRS_PER_THREAD", 3)
    for threads in (1, 3):
        with using_threads(threads):
            rate(tmp_path / "all.tsv", "-o", tmp_path / "b.tsv", "--filters=web")
            rate(tmp_path / "some.tsv", "-o", tmp_path / "c.tsv", "--filters=web")
        assert (tmp_path / "b.tsv").read_bytes() == (tmp_path / "a.tsv").read_bytes()
        assert cells_of(tmp_path / "c.tsv") == cells_of(tmp_path / "a.tsv")[:30]


HOSTILE = st.text(st.sampled_from('a\t\r\0\x85\u2028\u202e\ufeff&;"]>|, é中'), max_size=12)
BYTES = HOSTILE.map(str.encode) | st.binary(max_size=8).map(lambda line: line.replace(b"\n", b""))


@settings(max_examples=15)
@given(st.lists(BYTES, max_size=30))
def test_line_i_is_line_i(hostile: list[bytes]) -> None:
    """For ``cut``, ``paste`` and ``awk``, whatever the lines contain."""
    lines = [*("\t".join(pair).encode() for pair in sample_pairs()), *hostile]
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "in.tsv", Path(folder) / "out.tsv"
        files[0].write_bytes(b"".join(line + b"\n" for line in lines))
        rate(files[0], "-o", files[1])
        *found, last = files[1].read_bytes().split(b"\n")
    cells = [line.rsplit(b"\t", 3) for line in found]
    assert [line for line, *_ in cells] == [line.removesuffix(b"\r") for line in lines]
    assert all(
        bool(score) != bool(reason) or b"identical" in reason for *_, score, _, reason in cells
    )
    assert last == b""


def test_no_more_than_two_blocks_are_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "PAIRS_PER_THREAD", 5)
    drawn = itertools.count()

    def lines() -> Iterator[FilePair]:
        for source, target in itertools.cycle(sample_pairs()):
            next(drawn)
            yield FilePair(place="", texts=(source, target))

    source, target = (CorpusOptions(path=Path(name), language=name) for name in ("de", "en"))
    options = MiningOptions(
        source=source, target=target, output=Path("o"), work_dir=Path(), encoder="mini"
    )
    rater = texts.TextRater.fit(options, list(itertools.islice(lines(), 20)), name="in.tsv")
    with using_threads(2):
        rated = rater.rate_lines(lines())
        assert [line.pair.texts for line in itertools.islice(rated, 25)] == sample_pairs()[:25]
    assert next(drawn) <= 20 + 25 + 3 * 10


@pytest.mark.parametrize("command", [("rate", *TEXTS), ("convert",)])
def test_the_first_lines_come_out_of_an_endless_pipe(command: Sequence[str]) -> None:
    lines = b"Rot.\tRed.\nBlau.\tBlue.\nJa.\tYes.\nNein.\tNo.\n"
    code = "import sys; from pipelines.cli.main import adit; sys.exit(adit())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command, "-", "-q"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr

    def write() -> None:
        assert process.stdin
        try:
            while True:
                process.stdin.write(1000 * lines)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    found = [process.stdout.readline() for _ in range(8)]
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()
    writer.join()
    assert [line.split(b"\t")[:2] for line in found] == [
        line.split(b"\t")[:2] for line in 2 * lines.splitlines(command == ("convert",))
    ]
    assert found[:4] == found[4:]


def test_standard_input(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    rate(table, "-o", tmp_path / "out.tsv")
    expected = (tmp_path / "out.tsv").read_bytes()
    for data in (table.read_bytes(), gzip.compress(table.read_bytes())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        rate("-")
        assert capfdbinary.readouterr().out == expected
    named = tmp_path / "named"
    os.mkfifo(named)
    writer = threading.Thread(target=lambda: named.write_bytes(table.read_bytes()))
    writer.start()
    rate(named, "-o", "-")
    writer.join()
    assert capfdbinary.readouterr().out == expected


def test_other_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pairs = sample_pairs()
    write_table(tmp_path / "in.tsv", pairs)
    rate(tmp_path / "in.tsv", "-o", tmp_path / "out.tsv.gz")
    expected = gzip.decompress((tmp_path / "out.tsv.gz").read_bytes())
    columns = dict(zip(("source", "target"), zip(*pairs, strict=True), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    data = (tmp_path / "in.parquet").read_bytes()  # which is read from its end
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    rate("-")
    assert capfdbinary.readouterr().out == expected
    for side, name in enumerate("ab"):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    rate(tmp_path / "a", tmp_path / "b")
    assert capfdbinary.readouterr().out == expected


def test_repaired_texts_and_the_summary(tmp_path: Path, capsys: Captured) -> None:
    pairs = [("SchÃ¶n&#39;s Haus", "That&#39;s a  house"), *sample_pairs()[:5], ("Ja.", "Ja.")]
    write_table(tmp_path / "in.tsv", [*pairs, (" ", "No.")])
    arguments = ["rate", str(tmp_path / "in.tsv"), "-o", str(tmp_path / "out.tsv"), *TEXTS]
    assert adit([*arguments, "--repair", "--filters", "length"]) == 0
    first = (tmp_path / "out.tsv").read_text(encoding="utf-8").split("\n")[0].split("\t")
    assert first[:2] + first[-2:] == [*pairs[0], "Schön's Haus", "That's a house"]
    error = capsys.readouterr().err
    assert "lines: 8 read, 6 kept, 1 identical, 1 blank\nestimated error rate: " in error
    assert "|retrieval:lines|first:10000|filters:length|texts:repaired|kept:all|v:" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fdr=0.1"], "--fdr conflicts with --score texts, which rates lines as they"),
        (["--near-duplicates"], "--near-duplicates conflicts with --score texts"),
        (["--work-dir=w"], "--work-dir conflicts with --score texts"),
        (["--top=3"], "--top conflicts with --score texts"),
        (["-k=3"], "-k conflicts with --score texts"),
        (["--order=score"], "--order score conflicts with --score texts"),
        (["--filters=length,hub"], "--filters hub conflicts with --score texts"),
        (["--filters=colour"], "--filters 'colour' is unknown"),
        (["--threshold=nan"], "--threshold nan: no pair can score above it"),
        (["--columns=1,1,1"], "--columns: expected two columns"),
        (["-o", "out.jsonl"], "out.jsonl: --score texts writes TSV"),
        (["-o", "{table}"], "output would overwrite an input; pass another file"),
    ],
)
def test_what_needs_all_lines(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    arguments: Sequence[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = table.read_bytes()
    own = [argument.format(table=table) for argument in arguments]
    assert adit(["rate", str(table), "-o", "out.tsv", *TEXTS, *own]) == 2
    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
    assert table.read_bytes() == before


def test_few_and_repeated_pairs(tmp_path: Path) -> None:
    """Mispaired sentences, by which probabilities are fitted, are not translations."""
    pairs = sample_pairs()
    for lines in (pairs[:1], 40 * pairs[:2], 9 * [*pairs[:4], *pairs[:4]]):
        write_table(tmp_path / "in.tsv", lines)
        rate(tmp_path / "in.tsv", "-o", tmp_path / "out.tsv")
        assert all(float(chance) > 0.9 for *_, chance, _ in cells_of(tmp_path / "out.tsv"))


def test_files_without_pairs(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "in.tsv").write_text(" \tb\n" * 31)
    (tmp_path / "a").write_text("One.\nTwo.\n")
    (tmp_path / "b").write_text("One.\n")
    for arguments, message in (
        (
            ["in.tsv", "--columns=1,2"],
            "in.tsv: no pairs found in the first 31 lines (line 1: blank); correct",
        ),
        (["a", "b"], "b: ends after line 1, but "),
    ):
        files = [argument if "=" in argument else tmp_path / argument for argument in arguments]
        assert adit(["rate", *map(str, files), "-o", str(tmp_path / "o.tsv"), *TEXTS, "-q"]) == 2
        assert message in capsys.readouterr().err
