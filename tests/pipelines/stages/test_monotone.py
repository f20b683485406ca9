"""``--alignment monotone``: documents are aligned as the function aligns them, however they lie."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from miner.knn.core.rescore import unit_rows
from miner.monotone.align import align
from miner.monotone.blocks import joined, merged_blocks
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import ON_BEAM, one_line, read_jsonl

DOCUMENTS, DIM, K = 6, 16, 4


class Book:
    """Translated documents with merged and missing sentences; sentence 7 of the source is lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        random = np.random.default_rng(0)
        self.records: dict[str, list[dict]] = {"s": [], "t": []}
        vectors: dict[str, list[NDArray]] = {"s": [], "t": []}

        def add(side: str, document: int, vector: NDArray, length: int) -> None:
            row = len(vectors[side])
            text = " ".join([f"{side}{row}", *["word"] * length])
            record = {"id": f"{side}-{row}", "doc": f"{side}{document}", "text": text}
            self.records[side].append(record)
            vectors[side].append(vector)

        for document in range(DOCUMENTS):
            for sentence in range(12):
                one, other = random.standard_normal((2, DIM))
                noise = 0.2 * random.standard_normal((2, DIM))
                match (document + sentence) % 6:
                    case 0:  # two of the source are one of the target
                        add("s", document, one, 6)
                        add("s", document, other, 6)
                        add("t", document, unit_rows((one / 4 + other / 4)[None])[0], 12)
                    case 1:
                        add("s", document, unit_rows((one / 4 + other / 4)[None])[0], 14)
                        add("t", document, one, 7)
                        add("t", document, other, 7)
                    case 2:  # only in the target
                        add("t", document, one, 5)
                    case _:
                        add("s", document, one, 8)
                        add("t", document, one + noise[0], 8)
        self.vectors = {side: np.array(rows, dtype=np.float32) for side, rows in vectors.items()}
        self.vectors["s"][7] = 0
        for side in "st":
            lines = "".join(f"{json.dumps(record)}\n" for record in self.records[side])
            (folder / f"{side}.jsonl").write_text(lines, encoding="utf-8")
            np.save(folder / f"{side}.npy", self.vectors[side])
        pairs = [f"s{number}\tt{number}\n" for number in range(DOCUMENTS)]
        (folder / "pairs.tsv").write_text("".join([*pairs, "s9\tt9\n"]), encoding="utf-8")

    def mine(self, output: str, *options: str) -> Path:
        inputs = [str(self.folder / f"{side}.jsonl") for side in "st"]
        for side, name in (("src", "s"), ("tgt", "t")):
            inputs += [f"--{side}-embeddings", str(self.folder / f"{name}.npy")]
        out = self.folder / output
        listed = ["--document-pairs", str(self.folder / "pairs.tsv"), "--alignment", "monotone"]
        listed += ["--score", "margin"]
        assert mine_corpus([*inputs, "-q", "-o", str(out), *listed, *options]) == 0
        return out

    def rows(self, side: str, document: int) -> list[int]:
        name = f"{side}{document}"
        return [row for row, record in enumerate(self.records[side]) if record["doc"] == name]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    return Book(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="module")
def whole(book: Book) -> Path:
    return book.mine("whole.jsonl", "--work-dir", str(book.folder / "work"))


def expected(book: Book) -> Iterator[tuple]:
    """Rows of both sides and the score of each bead, by the function and by loops."""
    units = {}
    for side, vectors in book.vectors.items():
        units[side] = np.zeros_like(vectors)
        filled = vectors.any(axis=1)
        units[side][filled] = unit_rows(vectors[filled])
    for document in range(DOCUMENTS):
        rows = {side: book.rows(side, document) for side in "st"}
        table = units["s"][rows["s"]] @ units["t"][rows["t"]].T
        usable = units["s"][rows["s"]].any(axis=1)
        means = {
            "s": [np.sort(line)[-K:].mean() for line in table],
            "t": [np.sort(column)[-K:].mean() for column in table[usable].T],
        }
        blocks = [
            merged_blocks(
                units[side][rows[side]],
                np.array(
                    [
                        len(book.records[side][row]["text"]) if units[side][row].any() else 0
                        for row in rows[side]
                    ],
                    dtype=np.float64,
                ),
            )
            for side in "st"
        ]
        for own, other in align(*blocks).beads():
            own_means = [means["s"][place] for place in own if usable[place]]
            if not own_means or not other:
                continue
            sums = [
                units[side][[rows[side][place] for place in places]].sum(axis=0)
                for side, places in (("s", own), ("t", other))
            ]
            cosine = sums[0] @ sums[1] / np.linalg.norm(sums[0]) / np.linalg.norm(sums[1])
            near = np.mean(own_means) / 2 + np.mean([means["t"][place] for place in other]) / 2
            yield (
                [rows["s"][place] for place in own],
                [rows["t"][place] for place in other],
                cosine / near,
            )


def test_equals_the_function(book: Book, whole: Path) -> None:
    found = read_jsonl(whole)
    beads = sorted(expected(book), key=lambda bead: -bead[2])
    assert [record["score"] for record in found] == pytest.approx([bead[2] for bead in beads], 1e-5)
    assert sorted((record["source_rows"], record["target_rows"]) for record in found) == sorted(
        (own, other) for own, other, _ in beads
    )
    shapes = {(len(own), len(other)) for own, other, _ in beads}
    assert {(1, 1), (1, 2), (2, 1)} <= shapes


def test_texts_and_ids_are_merged(book: Book, whole: Path) -> None:
    for record in read_jsonl(whole):
        for side, letter in (("source", "s"), ("target", "t")):
            merged = [book.records[letter][row] for row in record[f"{side}_rows"]]
            assert record[f"{side}_ids"] == [one["id"] for one in merged]
            assert record[f"{side}_text"] == joined([one["text"] for one in merged])
            assert {record[f"{side}_doc"]} == {one["doc"] for one in merged}


@pytest.mark.parametrize("options", [["--shards", "7"], ["--shards", "2", *ON_BEAM]])
def test_shards_and_workers_change_no_byte(book: Book, whole: Path, options: list[str]) -> None:
    assert book.mine("cut.jsonl", *options).read_bytes() == whole.read_bytes()


def test_another_margin_aligns_nothing_again(book: Book, whole: Path) -> None:
    work = book.folder / "work"

    def seals() -> dict[str, int]:
        found = work.rglob("seal.json")
        return {path.parent.relative_to(work).as_posix(): path.stat().st_mtime_ns for path in found}

    before = seals()
    again = book.mine("again.jsonl", "--work-dir", str(work))
    assert again.read_bytes() == whole.read_bytes()
    assert seals() == before
    book.mine("other.jsonl", "--work-dir", str(work), "--margin", "distance")
    assert {name for name, at in seals().items() if before[name] != at} == {"pairs"}
    book.mine("whole.jsonl", "--work-dir", str(work))


def test_other_formats_and_a_threshold(book: Book, whole: Path) -> None:
    work = ["--work-dir", str(book.folder / "work")]
    records = read_jsonl(whole)
    texts = [(record["source_text"], record["target_text"]) for record in records]
    lines = book.mine("out.tsv", *work).read_text(encoding="utf-8").splitlines()
    assert [tuple(line.split("\t")[1:]) for line in lines] == texts
    assert pq.read_table(book.mine("out.parquet", *work)).to_pylist() == [
        {**record, "cosine": pytest.approx(record["cosine"])} for record in records
    ]
    codes = ["--src-lang", "de", "--tgt-lang", "en"]
    units = book.mine("out.tmx", *work, *codes).read_text(encoding="utf-8")
    ids = [*records[0]["source_ids"], *records[0]["target_ids"]]
    assert re.findall('<prop type="x-id">(.*?)</prop>', units.split("</tu>")[0]) == ids
    middle = records[len(records) // 2]["score"]
    above = read_jsonl(book.mine("above.jsonl", "--threshold", repr(middle)))
    assert above == [record for record in records if record["score"] > middle]


def test_a_finished_run_shows_merged_texts(
    book: Book, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from eval.runs.store import open_run

    run = open_run(book.folder / "work")
    assert run.texts == tuple(
        [record[f"{side}_text"] for record in read_jsonl(whole)] for side in ("source", "target")
    )
    first = read_jsonl(whole)[0]
    work = str(book.folder / "work")
    assert adit(["why", work, first["source_ids"][0], first["target_ids"][0]]) == 0
    assert capsys.readouterr().out.startswith("mined: pair 1 of")
    assert adit(["why", work, first["source_ids"][0], "t-0"]) == 0
    assert "not mined: no aligned pair starts with both sentences" in capsys.readouterr().out
    report = book.folder / "report.html"
    assert adit(["report", work, "-o", str(report)]) == 0
    assert report.stat().st_size


def test_the_command_aligns_alike(tmp_path: Path, tiny_encoder: str) -> None:
    words = "rain cloud wind bread butter cheese train station ticket".split()
    texts = [f"The {one} and the {other}." for one in words for other in words[::3]]
    sides = {"s": texts, "t": [*texts[:4], " ".join(texts[4:6]), *texts[7:], texts[0]]}
    for side, lines in sides.items():
        records = [{"doc": side, "text": line} for line in lines]
        path = tmp_path / f"{side}.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (tmp_path / "pairs.tsv").write_text("s\tt\n")
    inputs = [str(tmp_path / "s.jsonl"), str(tmp_path / "t.jsonl"), "--encoder", tiny_encoder]
    inputs += ["--document-pairs", str(tmp_path / "pairs.tsv")]
    out, aligned = tmp_path / "out.jsonl", tmp_path / "aligned.jsonl"
    assert adit(["align", *inputs, "-o", str(aligned)]) == 0
    assert (
        adit(["mine", *inputs, "--alignment", "monotone", "--keep-identical", "-o", str(out), "-q"])
        == 0
    )
    names = "source_ids", "target_ids", "source_text", "target_text"
    both = [
        sorted(tuple(map(str, (record[name] for name in names))) for record in read_jsonl(path))
        for path in (out, aligned)
    ]
    assert both[0] == [bead for bead in both[1] if "[]" not in bead]
    assert sum(record["source_text"] == texts[0] for record in read_jsonl(out)) >= 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--scope", "corpus"], "--alignment monotone requires --scope document"),
        (["--retrieval", "forward"], "--retrieval forward conflicts with --alignment"),
        (["--document-pairs", "TWICE"], "document 's0' is in 2 pairs"),
    ],
)
def test_bad_options(
    book: Book, capsys: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    twice = book.folder / "twice.tsv"
    twice.write_text("s0\tt0\ns0\tt1\n", encoding="utf-8")
    given = [str(twice) if option == "TWICE" else option for option in options]
    inputs = [str(book.folder / f"{side}.jsonl") for side in "st"]
    out = ["-o", str(book.folder / "no.jsonl"), "-q", "--alignment", "monotone"]
    assert mine_corpus([*inputs, *out, *given]) == 2
    assert expected in one_line(capsys.readouterr().err, "mine-corpus")
