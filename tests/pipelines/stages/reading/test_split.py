"""The split stage: documents once to sentences, whatever the groups and parts, and after a kill."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from miner.storage.corpus.filesets import CorpusReader
from miner.storage.documents.records import Document, RawDocument
from miner.storage.documents.split import is_documents
from pipelines.cli.mine import mine_corpus
from pipelines.context import RunContext
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.stages.reading import split
from pipelines.stages.reading.language import only_language
from pipelines.stages.reading.read import read_side
from pipelines.stages.reading.split import SplitCorpus
from tests.pipelines.worlds import ON_BEAM, read_jsonl

DOCUMENTS = 23


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of documents, two of which are broken and one damaged."""
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    for number in range(4):
        texts = [f"Sentence {n} is here. It is of {number}!\n\nAnd {n}." for n in range(4)]
        lines = [json.dumps({"id": f"{number}-{n}", "text": text}) for n, text in enumerate(texts)]
        (folder / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "1.jsonl").write_text('{"text": "First."}\n[\n{"text": "Last."}', encoding="utf-8")
    (folder / "2a.jsonl").write_bytes(b"")
    (folder / "3.txt").write_text("It rains. It pours.", encoding="utf-8")
    (folder / "deep" / "4.txt").write_bytes(b"caf\xe9")
    (folder / "deep" / "5.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x."}\n' * 50)[:-9])
    return folder


def context(folder: Path, work: Path) -> RunContext:
    corpus = CorpusOptions(path=folder, input_format="documents")
    out = work.parent / "out.jsonl"
    options = MiningOptions(source=corpus, target=corpus, output=out, work_dir=work)
    return RunContext(job_of(options))


def rows(run: RunContext) -> tuple[list[tuple], list[int]]:
    corpus = SplitCorpus(run, "source")
    found = [
        (batch.first_row + place, *record, batch.rejected.get(place))
        for batch in corpus
        for place, record in enumerate(zip(batch.ids(), batch.docs, batch.texts, strict=True))
    ]
    return found, corpus.starts


def test_parts_and_groups_change_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows(context(folder, tmp_path / "one"))
    assert [row for row, *_ in expected[0]] == list(range(len(expected[0])))
    reasons = [why for *_, why in expected[0] if why]
    assert reasons == ["malformed", "undecodable", "unreadable file"]
    for parts, files in ((1, 2), (3, 1), (4, 100)):
        monkeypatch.setattr(split, "PART_DOCUMENTS", parts)
        monkeypatch.setattr(split, "GROUP_FILES", files)
        assert rows(context(folder, tmp_path / f"{parts}-{files}")) == expected


def test_files_begin_where_they_do_when_they_are_read_as_they_are(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "2a.jsonl").unlink()  # empty: unreadable there, and without documents here
    corpus = SplitCorpus(context(folder, tmp_path / "work"), "source")
    batches = [(batch.ids(), batch.texts) for batch in corpus]
    reader = CorpusReader([*zip(corpus.names, corpus.files, strict=True)], input_format="documents")
    plain = [(batch.ids(), batch.texts) for batch in reader]
    assert corpus.starts == reader.starts
    assert [text for _, texts in batches for text in texts][:-4] == [
        text for _, texts in plain for text in texts
    ][:-4]


def test_a_run_that_was_killed_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "PART_DOCUMENTS", 2)
    expected = rows(context(folder, tmp_path / "one"))
    read: list[str] = []

    class Killed(BaseException):
        pass

    really_find = split.find_documents

    def find(files: Sequence, *, is_only_file: bool) -> Iterator[tuple[int, RawDocument]]:
        def extract(name: str, found: Document) -> Document:
            if len(read) == 7:
                raise Killed
            read.append(name)
            return found

        for number, found in really_find(files, is_only_file=is_only_file):
            yield number, RawDocument(name=found.name, content=found, extract=extract)  # type: ignore[arg-type]

    monkeypatch.setattr(split, "find_documents", find)
    with pytest.raises(Killed):
        SplitCorpus(context(folder, tmp_path / "two"), "source")
    assert len(read) == 7
    read.append("the kill")
    assert rows(context(folder, tmp_path / "two")) == expected
    twice = [name for name, count in Counter(read).items() if count > 1]
    assert twice == [read[6]]  # the first of the part that was not finished


def test_every_record_is_accounted_for(folder: Path, tmp_path: Path) -> None:
    run = context(folder, tmp_path / "work")
    facts = read_side(run, "source")[0].corpus.facts
    assert facts["read"] == len(rows(run)[0])
    assert facts["read"] == facts["unique"] + facts["duplicates"] + sum(facts["rejected"].values())
    assert facts["rejected"] == {"malformed": 1, "undecodable": 1, "unreadable file": 1}


@pytest.mark.parametrize("options", [["--shards", "3", "--memory", "64GB"], ON_BEAM])
def test_the_same_bytes_for_any_shards_and_workers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setattr(split, "PART_DOCUMENTS", 3)
    other = shutil.copytree(folder, tmp_path / "other")
    outputs = []
    for number, own in enumerate(([], options)):
        out = tmp_path / f"{number}.jsonl"
        paths = [str(folder), str(other), "-o", str(out), "-q", "--work-dir", f"{out}.work"]
        assert mine_corpus([*paths, "--input-format", "documents", "--keep-identical", *own]) == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    first = read_jsonl(tmp_path / "0.jsonl")[0]
    assert first["source_id"].startswith(f"{first['source_doc']}#char=")


def test_quotes_make_no_other_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    quotes = ("\u201c\u201d\u2019", '""\'', "«»'")
    texts = [f"He said {one}Yes{other}, didn{third}t he?" for one, other, third in quotes]
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text, encoding="utf-8")
    (shard,) = read_side(context(folder, tmp_path / "work"), "source")
    assert shard.read(["text"])["text"].to_pylist() == texts[:1]  # as it was written
    assert shard.corpus.facts["duplicates"] == 2


def test_which_corpora_are_documents(tmp_path: Path) -> None:
    def found(*names: str, input_format: str = "auto") -> bool:
        folder = tmp_path / "-".join(names)
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        return is_documents(folder, input_format)

    assert found("a.html", "b.htm.gz")
    assert not found("a.html", "b.txt")
    assert not found("a.txt")
    assert found("a.txt", "c.txt", input_format="documents")
    assert not found("x.warc", "y.warc", input_format="lines")


GERMAN = "Das Paket wird bei der nächsten Aktualisierung entfernt, wenn es niemand mehr braucht."
ENGLISH = "The package will be removed by the next upgrade when nobody needs it any longer."


def test_text_in_another_language_is_rejected_and_listed(tmp_path: Path) -> None:
    folder, other = tmp_path / "docs" / "de", tmp_path / "docs" / "en"
    for place in (folder, other):
        place.mkdir(parents=True)
    for number in range(3):
        parts = [f"# {number}. Paket", GERMAN, ENGLISH, f"{GERMAN} {number}", "`code`"]
        (folder / f"{number}.md").write_text("\n\n".join(parts), encoding="utf-8")
        (other / f"{number}.md").write_text(f"{ENGLISH}\n\n{number}.", encoding="utf-8")
    (folder / "logo.png").write_bytes(b"\x89PNG\xff")
    (folder / "style.css").write_text("a { b: c }", encoding="utf-8")
    out, work = tmp_path / "pairs.jsonl", tmp_path / "work"
    mine_corpus(
        [
            str(folder),
            str(other),
            "-o",
            str(out),
            "--work-dir",
            str(work),
            "--all",
            "--scope",
            "corpus",
        ]
    )
    rejected = pq.read_table(work / "rejected" / "source.parquet").to_pylist()
    assert [(row["why"], row["text"]) for row in rejected] == [("in another language", ENGLISH)] * 3
    assert pq.read_table(work / "rejected" / "target.parquet").num_rows == 0
    assert not {row["source_text"] for row in read_jsonl(out)} & {ENGLISH, "code", "a { b: c }"}


def test_what_language_documents_are_mined_in(tmp_path: Path) -> None:
    def found(shares: dict[str, float], name: str = "a", **given: str) -> str | None:
        own = CorpusOptions(path=tmp_path / name, shares=shares, **given)
        other = CorpusOptions(path=tmp_path / "b", shares={"en": 1.0})
        options = MiningOptions(source=own, target=other, output=tmp_path, work_dir=tmp_path)
        return only_language(options, "source")

    assert found({"de": 0.8, "en": 0.2}) == "de"
    assert found({"no": 0.8}, language="nb") == "no"
    assert found({"de": 0.4, "fr": 0.3}) is None  # not seen
    assert found({"en": 0.8, "de": 0.2}) is None  # that of the other side, too
    assert found({"en": 0.8, "de": 0.2}, name="de-AT") == "de"
    assert found({"en": 0.95, "de": 0.05}, name="de-AT") is None
    assert found({"de": 0.95, "fr": 0.05}, language="fr") == "fr"  # given, although hardly seen
    assert found({"de": 0.9}, language="gsw") is None  # not known
