"""Ids that come twice, from every format and in every way of reading; documents of one name."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval.cli.runs import why
from miner.storage.artefacts import SEAL
from miner.storage.corpus.records import CorpusError
from miner.storage.documents.split import (
    SplitCounts,
    document_files,
    read_documents,
    split_documents,
)
from pipelines.cli.align_documents import align_documents
from pipelines.cli.mine import mine_corpus
from pipelines.context import RunContext
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.stages.reading.read import read_side
from pipelines.stages.reading.split import SplitCorpus

TEXTS = [f"Der {number}. Satz steht hier." for number in range(6)]


def context(path: Path, **options: object) -> RunContext:
    own = {name: options.pop(name) for name in ("input_format", "escapes") if name in options}
    corpus = CorpusOptions(path=path, **own)  # type: ignore[arg-type]
    out, work = path.parent / "out.jsonl", path.parent / "work"
    given = {"source": corpus, "target": corpus, "output": out, "work_dir": work, **options}
    return RunContext(job_of(MiningOptions(**given)))  # type: ignore[arg-type]


def write(path: Path, ids: list[object], texts: list[str] = TEXTS) -> Path:
    rows = list(zip(ids, texts, strict=False))
    if path.suffix == ".parquet":
        table = {"id": [own for own, _ in rows], "text": [text for _, text in rows]}
        pq.write_table(pa.table(table), path)
    elif path.suffix == ".jsonl":
        lines = [json.dumps({"id": own, "text": text}) for own, text in rows]
        path.write_text("\n".join(lines))
    else:
        path.write_text("".join(f"{own}\t{text}\n" for own, text in rows))
    return path


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("a.tsv", ["a", "b", "c", "d", " b", "a"]),
        ("a.jsonl", [7, "2", 9, 1, 2, 7]),
        ("a.jsonl", ["x", "5", "y", "z", None, "5"]),
        ("a.parquet", [10, 20, 30, 40, 20, 10]),
        ("a.txt", ["de-000000001", "de-000000002", *["de-000000003"] * 3]),
    ],
)
@pytest.mark.parametrize("options", [{}, {"shards": 3}, {"keep_duplicates": True}])
def test_an_id_that_comes_twice(
    tmp_path: Path, name: str, ids: list[object], options: dict[str, object]
) -> None:
    path = write(tmp_path / name, ids)
    names = [str(own or row).strip() for row, own in enumerate(ids, 1)]
    again = next(row for row, own in enumerate(names) if own in names[:row])
    first = names.index(names[again])
    places = f"is in line {first + 1} and again in line {again + 1}; give each record its own id"
    with pytest.raises(CorpusError, match=f"{name}: the id '{names[again]}' {places}"):
        read_side(context(path, **options), "source")
    assert not (tmp_path / "work" / "sentences" / "source" / SEAL).exists()


def test_files_and_lines_that_were_added(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder / "a.tsv", ["a", "b"])
    write(folder / "b.tsv", ["c", "d"], TEXTS[2:])
    assert sum(shard.rows for shard in read_side(context(folder), "source")) == 4
    with (folder / "b.tsv").open("a") as file:
        file.write("a\tEin neuer Satz.\n")
    with pytest.raises(CorpusError, match=r"the id 'a' is in a.tsv line 1 and again in b.tsv line"):
        read_side(context(folder), "source")
    # A line without an id is called by its number, which another one may have.
    (folder / "b.tsv").unlink()
    (folder / "b.jsonl").write_text('{"text": "Neu."}\n{"id": 1, "text": "Noch neuer."}\n')
    with pytest.raises(CorpusError, match=r"the id '1' is in b.jsonl line 1 and again in b.jsonl"):
        read_side(context(folder), "source")


def test_lines_that_are_not_read_have_no_id(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", ["a", "b", "a"], ["Ja.", "", " "])
    assert read_side(context(path), "source")[0].rows == 1


def test_runs_of_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "de.tsv", ["a", "b", "c", "d"])
    target = write(tmp_path / "en.tsv", [1, 2, 3, 4])
    work = tmp_path / "work"
    given = [str(source), str(target), "-o", str(tmp_path / "out.tsv"), "--work-dir", str(work)]
    assert mine_corpus([*given, "-q", "--all"]) == 0
    assert why([str(work), "a", "1"]) == 0
    seal = work / "sentences" / "source" / SEAL
    old = json.loads(seal.read_text())
    del old["facts"]["unique_ids"]
    seal.write_text(json.dumps(old))
    assert why([str(work), "a", "1"]) == 0
    [shard] = (work / "sentences" / "source").glob("*0.parquet")
    table = pq.read_table(shard)
    ids = pa.array(["a", "b", "a", "d"])
    pq.write_table(table.set_column(table.schema.get_field_index("id"), "id", ids), shard)
    from miner.storage.artefacts import file_digest

    old["files"][shard.name] = file_digest(shard)
    seal.write_text(json.dumps(old))
    capsys.readouterr()
    assert why([str(work), "b", "1"]) == 2
    error = capsys.readouterr().err
    assert "de.tsv: the source id 'a' occurs more than once; give each record its own id" in error


def test_aligned_documents_have_unique_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [str(write(tmp_path / name, ["a", "b", "a"])) for name in ("de.tsv", "en.tsv")]
    assert align_documents([*sides, "-o", str(tmp_path / "out.jsonl")]) == 2
    assert "de.tsv: the id 'a' is in line 1 and again in line 3" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


DOCUMENTS = [("a", "Eins. Zwei."), ("b", "Drei."), ("a", "Vier."), ("a", "Fünf."), ("b", "")]


@pytest.mark.parametrize("part", [1, 2, 4096])
def test_documents_of_one_name_are_numbered(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pipelines.stages.reading.split.PART_DOCUMENTS", part)
    folder = tmp_path / "documents"
    folder.mkdir()
    lines = [json.dumps({"id": name, "text": text}) for name, text in DOCUMENTS]
    (folder / "x.jsonl").write_text("\n".join(lines[:3]))
    (folder / "y.jsonl").write_text("\n".join(lines[3:]))
    run = context(folder, input_format="documents")
    corpus = SplitCorpus(run, "source")
    records = [
        each for batch in corpus for each in zip(batch.docs, batch.ids(), batch.texts, strict=True)
    ]
    assert len(caplog.messages) == 1
    assert "2 documents with the name of an earlier document" in caplog.messages[0]
    assert [(doc, own) for doc, own, _ in records] == [
        ("a", "a#char=0,5"),
        ("a", "a#char=6,11"),
        ("b", "b#char=0,5"),
        ("a (2)", "a (2)#char=0,5"),
        ("a (3)", "a (3)#char=0,5"),
        ("b", "b"),
    ]
    assert sum(shard.rows for shard in read_side(run, "source")) == 5
    tables = split_documents(read_documents(document_files(folder)), SplitCounts())
    split = [own for table in tables for own in table["id"].to_pylist()]
    assert split == [own for _, own, text in records if text]
    shutil.rmtree(tmp_path / "work")


def test_trimmed_ids_are_told_where_entities_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "a.tsv", ["a", " b", "c"], ["That&#39;s it.", "It&#39;s.", "I&#39;m."])
    [shard] = read_side(context(path, escapes=1), "source")
    [batch] = shard.batches(["id", "text"], 9)
    assert batch["id"].to_pylist() == ["a", "b", "c"]
    assert batch["text"].to_pylist() == ["That's it.", "It's.", "I'm."]
    assert "removed spaces around ids or documents, first in line 2" in caplog.text
