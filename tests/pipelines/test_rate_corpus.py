"""adit rate: lines of a parallel corpus scored against the neighbourhoods in both sides."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.report.sections import pair_table
from eval.runs.store import open_run
from pipelines.cli.main import adit
from pipelines.stages.summary import read_summary
from tests.miner.test_given import slow_score
from tests.pipelines.conftest import SAMPLE
from tests.pipelines.worlds import ON_BEAM, read_jsonl, write_lines

COUNT, DIM = 90, 16


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Repeated sentences, a repeated pair, a blank line, and a sentence without a vector."""
    random = np.random.default_rng(1)
    texts = [[f"{side} {row}" for row in range(COUNT)] for side in ("one", "other")]
    x = random.standard_normal((COUNT, DIM)).astype(np.float32)
    y = x + random.standard_normal((COUNT, DIM)).astype(np.float32)
    x, y = x + 1, y + 1
    for side, lines, vectors in ((0, (7, 20, 41), x), (1, (7, 33), y)):
        for row in lines:  # 7 repeats the pair of line 2
            texts[side][row], vectors[row] = texts[side][2], vectors[2]
    texts[0][50], texts[1][51] = " ", ""
    y[60] = 0
    for name, lines, vectors in (("src", texts[0], x), ("tgt", texts[1], y)):
        write_lines(tmp_path / f"{name}.txt", lines)
        np.save(tmp_path / f"{name}.npy", vectors)
    return tmp_path


def rated(folder: Path, name: str, *options: str) -> Path:
    output = folder / name
    vectors = [f"--{side}-embeddings={folder / side}.npy" for side in ("src", "tgt")]
    corpora = [str(folder / f"{side}.txt") for side in ("src", "tgt")]
    assert adit(["rate", *corpora, *vectors, "-q", "-o", str(output), *options]) == 0
    return output


def slowly_rated(folder: Path, margin: str, k: int) -> dict[tuple[int, int], float]:
    """The score of each different pair, by the first line that has it."""
    firsts, kept, units = [], [], []
    for side in ("src", "tgt"):
        lines = (folder / f"{side}.txt").read_text().split("\n")[:-1]
        vectors = np.load(folder / f"{side}.npy").astype(float)
        good = [row for row in range(COUNT) if lines[row].strip() and vectors[row].any()]
        firsts.append({row: lines.index(lines[row]) for row in good})
        kept.append(sorted(set(firsts[-1].values())))
        units.append(vectors[kept[-1]])
    found: dict[tuple[int, int], float] = {}
    seen = set()
    for row in range(COUNT):
        if all(row in first for first in firsts):
            pair = firsts[0][row], firsts[1][row]
            places = [rows.index(one) for rows, one in zip(kept, pair, strict=True)]
            if pair not in seen:
                found[row, row] = slow_score(*units, *places, k, margin)
            seen.add(pair)
    return found


@pytest.mark.parametrize(("margin", "k"), [("ratio", 4), ("distance", 1), ("csls", 200)])
def test_each_different_pair_has_its_score(corpus: Path, margin: str, k: int) -> None:
    output = rated(corpus, "out.jsonl", "--score", "margin", "--margin", margin, "-k", str(k))
    pairs = read_jsonl(output)
    expected = slowly_rated(corpus, margin, k)
    assert len(pairs) == len(expected) == COUNT - 4
    found = {(pair["source_row"], pair["target_row"]): pair["score"] for pair in pairs}
    assert found == pytest.approx(expected, abs=1e-5)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    repeated = {pair["source_row"]: pair for pair in pairs}
    assert repeated[2]["source_duplicates"] == ["8", "21", "42"]  # ids are numbers of lines
    assert repeated[20]["source_id"] == repeated[20]["target_id"] == "21"
    assert repeated[20]["source_duplicates"] == ["3", "8", "42"]
    assert repeated[33]["target_duplicates"] == ["3", "8"]


LINES = st.lists(st.tuples(st.sampled_from("Ja. Nein. Ach!".split()), st.sampled_from("abc")))


@settings(max_examples=8)
@given(LINES.filter(bool))
def test_pairs_are_those_of_their_lines(lines: list[tuple[str, str]]) -> None:
    """In every format, whatever repeats: the first line with a pair, by id and row."""
    ids = [[f"{side}{row}" for row in range(len(lines))] for side in "st"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpora = []
        for side, name in enumerate(("s", "t")):
            records = zip(ids[side], lines, strict=True)
            rows = [json.dumps({"id": own, "text": line[side]}) for own, line in records]
            corpora.append(str(write_lines(folder / f"{name}.jsonl", rows)))
        outputs = [folder / f"out.{ending}" for ending in ("jsonl", "parquet", "tmx", "tsv")]
        work = ["--src-lang=de", "--tgt-lang=en", "--work-dir", str(folder / "work")]
        for output in outputs:
            assert adit(["rate", *corpora, "-q", "--keep-identical", "-o", str(output), *work]) == 0
        pairs, table = read_jsonl(outputs[0]), pq.read_table(outputs[1]).to_pylist()
        units = outputs[2].read_text(encoding="utf-8")
        run = open_run(folder / "work")
        assert run.pair_ids() == tuple(
            [[pair[f"{side}_id"]] for pair in pairs] for side in ("source", "target")
        )
        calibrated = folder / "calibrated.jsonl"
        assert adit(["calibrate", str(folder / "work"), "-o", str(calibrated)]) == 0
        again = read_jsonl(calibrated)
    assert len(pairs) == len(set(lines))
    for pair, row, one in zip(pairs, table, again, strict=True):
        texts = pair["source_text"], pair["target_text"]
        first = lines.index(texts)
        assert (pair["source_row"], pair["target_row"]) == (first, first)
        assert (pair["source_id"], pair["target_id"]) == (f"s{first}", f"t{first}")
        for side in (0, 1):
            others = {ids[side][at] for at, line in enumerate(lines) if line[side] == texts[side]}
            name = ("source", "target")[side]
            assert {*pair[f"{name}_duplicates"], pair[f"{name}_id"]} == others
            assert f'<prop type="x-id">{ids[side][first]}</prop>' in units
            assert one[f"{name}_id"] == pair[f"{name}_id"]
        assert {name: row[name] for name in pair if name != "cosine"} == {
            name: value for name, value in pair.items() if name != "cosine"
        }


def test_why_and_the_report_name_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "a", ["Ja.", "Das Haus ist rot.", "Ja.", "Gute Nacht!", "Ja."])
    write_lines(tmp_path / "b", ["Yes.", "The house is red.", "Yes, of course.", "No.", "Yes."])
    work, page = tmp_path / "work", tmp_path / "page.html"
    inputs = [str(tmp_path / name) for name in "ab"]
    arguments = ["-q", "--work-dir", str(work), "-o", str(tmp_path / "o.tsv")]
    assert adit(["rate", *inputs, "--src-lang=de", "--tgt-lang=en", *arguments]) == 0
    for ids, line in ((("3", "3"), 3), (("1", "3"), 3), (("5", "1"), 1)):
        assert adit(["why", str(work), *ids]) == 0
        out = capsys.readouterr().out
        assert out.startswith("mined: pair")
        assert f"\n{line}  Ja.\n" in out
        assert f"; line {line}\n" in out
    assert adit(["why", str(work), "2", "1"]) == 0
    assert "not written: no line has both" in capsys.readouterr().out
    assert adit(["report", str(work), "-o", str(page)]) == 0
    assert ("3", "3") in {tuple(ids.split("\n")) for ids in pair_table_ids(work)}


def pair_table_ids(work: Path) -> list[str]:
    run = open_run(work)
    return [row[-1] for row in pair_table(run, range(len(run.pairs))).rows]


def test_the_same_bytes_whatever_the_shards_and_engines(corpus: Path) -> None:
    options = ("--score", "margin", "--threshold", "1.1")
    once = rated(corpus, "once.jsonl", *options).read_bytes()
    assert 10 < once.count(b"\n") < COUNT - 4
    on_beam = ["--work-dir", str(corpus / "work"), *ON_BEAM]
    for name, more in (("shards", ["--shards", "4"]), ("workers", on_beam)):
        assert rated(corpus, f"{name}.jsonl", *options, *more).read_bytes() == once


def test_what_became_of_the_lines(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = corpus / "work"
    rated(corpus, "out.tsv", "--score", "margin", "--work-dir", str(work))
    summary = read_summary(work)
    assert summary["lines"] == {"read": COUNT, "unusable": 3, "repeated": 1}
    assert summary["candidates"] == summary["pairs"] == COUNT - 4
    assert adit(["why", str(work), "1", "2"]) == 0
    assert "not written: no line has both" in capsys.readouterr().out
    # Another margin searches nothing again.
    seals = {path: path.stat().st_mtime_ns for path in (work / "tiles").rglob("seal.json")}
    rated(corpus, "out.tsv", *("--score", "margin", "--margin", "csls", "--work-dir", str(work)))
    assert seals == {path: path.stat().st_mtime_ns for path in seals} and seals


def test_corpora_of_different_lengths_are_refused(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (corpus / "tgt.txt").read_text().split("\n")[:-1]
    write_lines(corpus / "tgt.txt", lines[:-1])
    np.save(corpus / "tgt.npy", np.load(corpus / "tgt.npy")[:-1])
    arguments = [str(corpus / "src.txt"), str(corpus / "tgt.txt"), "-o", str(corpus / "out.tsv")]
    assert adit(["rate", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"src.txt: the number of lines is {COUNT}, but {COUNT - 1} in " in error
    assert not (corpus / "out.tsv").exists()


def test_words_filters_and_probabilities(tmp_path: Path, sample_sentences: list[str]) -> None:
    """Copies stand for translations here: of a third, the target is another sentence."""
    sentences = list(dict.fromkeys(sample_sentences[300:]))  # the English ones
    wrong = range(0, len(sentences), 3)
    targets = [f"Well, {sentence}" for sentence in sentences]
    turned = [targets[row] for row in wrong]
    for row, other in zip(wrong, turned[1:] + turned[:1], strict=True):
        targets[row] = other
    write_lines(tmp_path / "a.en", sentences)
    write_lines(tmp_path / "b.en", targets)
    output = tmp_path / "out.jsonl"
    arguments = ["rate", str(tmp_path / "a.en"), str(tmp_path / "b.en"), "-q", "-o", str(output)]
    languages = ["--src-lang", "en", "--tgt-lang", "en"]
    assert adit([*arguments, *languages, "--fdr", "0.05", "--filters", "numbers"]) == 0
    pairs = read_jsonl(output)
    rejected = (tmp_path / "out.rejected.jsonl").read_text().splitlines()
    kept = [pair["source_row"] for pair in pairs]
    right = set(range(len(sentences))) - set(wrong)
    assert len(set(kept) & right) > 0.9 * len(right) - len(rejected)
    assert len(set(kept) - right) <= 0.1 * len(kept)
    assert all(json.loads(line)["reason"] == "numbers" for line in rejected)
    assert all(0 <= pair["probability"] <= 1 and "margin" in pair for pair in pairs)


def other_numbers(text: str) -> str:
    return re.sub(r"\d", lambda digit: str(9 - int(digit[0])), text)


SPANISH = [
    (
        "Der Bürgermeister eröffnete am Montag die neue Brücke.",
        "El alcalde inauguró el lunes el nuevo puente.",
    ),
    (
        "Die Schule bleibt wegen des Schnees geschlossen.",
        "La escuela permanece cerrada a causa de la nieve.",
    ),
    (
        "Die Ärzte raten dazu, mehr Wasser zu trinken.",
        "Los médicos aconsejan beber más agua.",
    ),
    (
        "Der Zug aus Hamburg hatte zwei Stunden Verspätung.",
        "El tren de Hamburgo llegó con dos horas de retraso.",
    ),
    (
        "Das Museum zeigt Bilder von jungen Malern.",
        "El museo expone cuadros de pintores jóvenes.",
    ),
    (
        "Die Polizei sucht nach einem gestohlenen Auto.",
        "La policía busca un coche robado.",
    ),
    (
        "Im Winter füttern die Kinder die Vögel im Park.",
        "En invierno los niños dan de comer a los pájaros del parque.",
    ),
    (
        "Der Preis für Brot ist wieder gestiegen.",
        "El precio del pan ha vuelto a subir.",
    ),
    (
        "Viele Gäste kamen zum Fest auf dem Marktplatz.",
        "Muchos invitados acudieron a la fiesta en la plaza del mercado.",
    ),
    (
        "Die Firma baut eine Fabrik am Rand der Stadt.",
        "La empresa construye una fábrica en las afueras de la ciudad.",
    ),
    (
        "Mein Bruder arbeitet als Lehrer in einem Dorf.",
        "Mi hermano trabaja como maestro en un pueblo.",
    ),
    (
        "Die Mannschaft verlor das letzte Spiel der Saison.",
        "El equipo perdió el último partido de la temporada.",
    ),
    (
        "Am Abend las die Großmutter ein Märchen vor.",
        "Por la noche la abuela leyó un cuento en voz alta.",
    ),
]


@pytest.mark.parametrize("kind", ["nearly a copy", "other numbers", "in another language"])
def test_copies_other_languages_and_other_numbers_are_likely_wrong(
    tmp_path: Path, kind: str
) -> None:
    sides = [
        dict(
            line.split("\t", 1)
            for line in (SAMPLE / "de-en" / f"de-en.training.{language}")
            .read_text(encoding="utf-8")
            .splitlines()
        )
        for language in ("de", "en")
    ]
    gold = (SAMPLE / "de-en" / "de-en.training.gold").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in gold]
    texts = [[side[pair[place]] for pair in pairs] for place, side in enumerate(sides)]
    rows = [row for row in range(0, len(pairs), 2) if re.search(r"\d", texts[1][row])]
    spoil = {
        "nearly a copy": lambda row: f"{texts[0][row]} ({row})",
        "other numbers": lambda row: other_numbers(texts[1][row]),
        "in another language": lambda row: SPANISH[row % len(SPANISH)][1],
    }
    for row in rows:
        texts[1][row] = spoil[kind](row)
        if kind == "in another language":
            texts[0][row] = SPANISH[row % len(SPANISH)][0]
    for name, lines in zip(("de", "en"), texts, strict=True):
        write_lines(tmp_path / name, lines)
    command = ["rate", str(tmp_path / "de"), str(tmp_path / "en"), "-q", "--all"]
    languages = ["--src-lang", "de", "--tgt-lang", "en"]
    assert adit([*command, *languages, "-o", str(tmp_path / "out.jsonl")]) == 0
    found = {pair["source_row"]: pair["probability"] for pair in read_jsonl(tmp_path / "out.jsonl")}
    rows = [row for row in rows if row in found]  # the others repeat a pair
    assert len(rows) > 10
    assert np.mean([found[row] >= 0.5 for row in rows]) < 0.02
    clean = [chance >= 0.5 for row, chance in found.items() if row not in rows]
    assert not clean or np.mean(clean) > 0.9
