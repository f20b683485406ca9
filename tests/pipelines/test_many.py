"""Many languages in one run: the pairs of single runs, and each language encoded once."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from encoder.bag.encoder import BagEncoder
from eval.runs.store import open_run
from pipelines.cli.mine import mine_corpus
from tests.pipelines.conftest import Work
from tests.pipelines.worlds import ON_BEAM, one_line, read_jsonl, snapshot, write_lines

LANGUAGES = {"de": (0, 60), "en": (300, 370), "fr": (40, 110), "zh": (330, 400)}
Mine = Callable[..., dict[str, bytes]]


@pytest.fixture
def folder(tmp_path: Path, sample_sentences: list[str]) -> Path:
    """A folder with a corpus for each language, named in each of the ways."""
    folder = tmp_path / "corpora"
    (folder / "zh").mkdir(parents=True)
    names = {"de": "de.txt", "en": "news.en", "fr": "fr", "zh": "zh/part-1.txt"}
    for language, (start, end) in LANGUAGES.items():
        write_lines(folder / names[language], sample_sentences[start:end])
    write_lines(folder / "README.md", ["about it"])
    return folder


@pytest.fixture
def mine(tmp_path: Path, folder: Path, tiny_encoder: str) -> Mine:
    def mine(output: str, *options: str, corpora: Path = folder) -> dict[str, bytes]:
        out = tmp_path / output
        run = ["--languages", str(corpora), "-o", str(out), "--encoder", tiny_encoder, "-q"]
        assert mine_corpus([*run, "--format", "jsonl", *options]) == 0
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}

    return mine


def single(folder: Path, one: str, other: str, encoder: str, *options: str) -> bytes:
    """The output of a run of two languages alone."""
    corpora = {"de": "de.txt", "en": "news.en", "fr": "fr", "zh": "zh"}
    sides = [str(folder / corpora[language]) for language in (one, other)]
    out = folder.parent / "single.jsonl"
    languages = ["--src-lang", one, "--tgt-lang", other]
    assert (
        mine_corpus([*sides, *languages, "-o", str(out), "--encoder", encoder, "-q", *options]) == 0
    )
    return out.read_bytes()


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        (["--all"], []),
        (["--all", "--shards", "3", "--align", "--filters", "short"], []),
        (["--all"], ["--runner", "DirectRunner"]),
    ],
)
def test_the_pairs_of_single_runs(
    folder: Path, mine: Mine, work: Work, tiny_encoder: str, options: list[str], engine: list[str]
) -> None:
    """On an engine as of single runs without one."""
    found = mine("out", *options, *engine)
    sizes = {language: end - start for language, (start, end) in LANGUAGES.items()}
    pairs = [(one, other) for one in sizes for other in sizes if one < other]
    similarities = sum(sizes[one] * sizes[other] for one, other in pairs)
    assert work.taken() == (sum(sizes.values()), similarities)
    assert "summary.tsv" in found
    assert {f"{one}-{other}.jsonl" for one, other in pairs} == {
        name for name in found if name.endswith(".jsonl") and "rejected" not in name
    }
    for one, other in pairs:
        expected = single(folder, one, other, tiny_encoder, *options)
        assert expected
        assert found[f"{one}-{other}.jsonl"] == expected


@pytest.mark.slow
def test_workers_mine_the_same(folder: Path, tmp_path: Path, mine: Mine) -> None:
    """Each language is encoded once, by whichever worker."""
    work = tmp_path / "work"
    options = ["--work-dir", str(work), "--shards", "2", *ON_BEAM]
    assert mine("workers", *options) == mine("alone")
    done = [
        json.loads(line)
        for file in (work / "progress").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    encoded = [one["element"] for one in done if one["stage"] == "embed_shard"]
    assert len(encoded) == len(set(encoded)) == 2 * len(LANGUAGES)


def test_a_language_more_costs_its_own_encoding_and_searches(
    folder: Path, tmp_path: Path, mine: Mine, work: Work, sample_sentences: list[str]
) -> None:
    kept = ["--work-dir", str(tmp_path / "work")]
    mine("out", "--pairs", "en-de", *kept)
    assert work.taken() == (60 + 70, 60 * 70)
    found = mine("out", *kept)
    assert work.taken() == (
        70 + 70,
        60 * 70 + (60 + 70) * 70 + (60 + 70 + 70) * 70,  # en-de is not de-en
    )
    assert mine("out", *kept) == found
    assert work.taken() == (0, 0)
    write_lines(folder / "zh" / "part-2.txt", sample_sentences[410:420])
    grown = mine("out", *kept)
    assert work.taken() == (10, 10 * (60 + 70 + 70))
    scratch = mine("scratch")
    assert scratch == {name: text for name, text in grown.items() if name != "en-de.jsonl"}


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "jsonl.gz"])
def test_a_corpus_that_names_its_languages(
    folder: Path, tmp_path: Path, mine: Mine, work: Work, sample_sentences: list[str], kind: str
) -> None:
    """Languages take turns in it; a record without a language is left out."""
    rows = [
        {"id": f"{language}{row}", "doc": None, "text": sample_sentences[row], "language": language}
        for row in range(400)
        for language, (start, end) in LANGUAGES.items()
        if start <= row < end
    ]
    rows.insert(7, {"id": "none", "doc": None, "text": "Ein Satz", "language": None})
    corpus = tmp_path / f"all.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), corpus)
    else:
        import gzip

        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        corpus.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    expected = mine("folder")
    work.taken()
    kept = ["--work-dir", str(tmp_path / "work")]
    found = mine("column", *kept, corpora=corpus)
    assert work.taken()[0] == sum(end - start for start, end in LANGUAGES.values())
    names = [name for name in expected if name.endswith(".jsonl")]
    assert [name for name in found if name.endswith(".jsonl")] == names
    for name in names:
        texts = [
            [(pair["score"], pair["source_text"], pair["target_text"]) for pair in of_run]
            for of_run in (
                read_jsonl(tmp_path / "folder" / name),
                read_jsonl(tmp_path / "column" / name),
            )
        ]
        assert texts[0] == texts[1]
        ids = [pair["source_id"] for pair in read_jsonl(tmp_path / "column" / name)]
        assert all(own.startswith(name[:2]) for own in ids)


def test_an_interrupted_run_goes_on(
    tmp_path: Path,
    mine: Mine,
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = mine("scratch")
    work.taken()
    really_encode = BagEncoder.encode

    def encode(self: BagEncoder, sentences: Sequence[str]) -> NDArray:
        if work.sentences > 100:
            raise KeyboardInterrupt
        return really_encode(self, sentences)

    kept = ["--work-dir", str(tmp_path / "work")]
    with monkeypatch.context() as patch:
        patch.setattr(BagEncoder, "encode", encode)
        with pytest.raises(AssertionError):
            mine("out", *kept)
    assert "; rerun the same command to resume from" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    encoded = work.taken()[0]
    assert mine("out", *kept) == expected
    assert 0 < encoded < 270
    assert work.taken()[0] == 270 - encoded


def test_a_finished_run_can_be_asked_and_cleaned(
    tmp_path: Path, mine: Mine, capsys: pytest.CaptureFixture[str]
) -> None:
    work_dir = tmp_path / "work"
    found = mine("out", "--all", "--work-dir", str(work_dir))
    run = open_run(work_dir / "mined" / "de-zh")
    record = json.loads(found["de-zh.jsonl"].splitlines()[0])
    assert run.texts[0][0] == record["source_text"]
    assert run.texts[1][0] == record["target_text"]
    assert mine_corpus(["status", str(work_dir)]) == 0
    first, *stages = capsys.readouterr().out.splitlines()
    assert first == f"{work_dir}: finished"
    done = {line.split()[0]: line.split()[1:4] for line in stages}
    assert done["embed_shard"] == ["4", "of", "4"]
    assert done["export_pairs"] == ["6", "of", "6"]
    assert mine_corpus(["clean", str(work_dir)]) == 0
    kept = [name for name, content in snapshot(work_dir).items() if content is not None]
    assert {Path(name).name.partition("-")[0] for name in kept if "progress" not in name} == {
        *(".lock", "run.json", "run.toml", "source.parquet", "target.parquet"),
    }


def test_what_is_shown_and_summed_up(
    tmp_path: Path,
    folder: Path,
    tiny_encoder: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = ["--languages", str(folder), "-o", str(tmp_path / "out"), "--encoder", tiny_encoder]
    with caplog.at_level(logging.INFO, logger="pipelines"):
        assert mine_corpus([*run, "--pairs", "de-en,fr-en"]) == 0
    error = capsys.readouterr().err
    assert f"{folder}: reads de.txt, fr, news.en, zh; skips 1 entry (README.md)" in caplog.messages
    count = {
        pair: len((tmp_path / "out" / f"{pair}.tsv").read_text(encoding="utf-8").splitlines())
        for pair in ("de-en", "fr-en")
    }
    assert f"de-en  60 x 70 sentences, {count['de-en']} pairs; not written: " in error
    lines = (tmp_path / "out" / "summary.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[:3] for line in lines] == [
        ["pair", "source", "target"],
        ["de-en", "60", "70"],
        ["fr-en", "70", "70"],
    ]
    assert [line.split("\t")[4] for line in lines[1:]] == [str(count[pair]) for pair in count]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("de-en.tsv", "fr-en.tsv", "summary.tsv"),
    ]


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_a_table_of_all_languages(folder: Path, tmp_path: Path, ending: str, mine: Mine) -> None:
    """Languages that share sentences are clustered by them, each once in a cluster."""
    by_margin = ["--score", "margin", "--threshold", "1.05"]
    found = mine("out", "--multiway", "--format", ending, *by_margin)
    lines = found[f"multiway.{ending}"].decode().splitlines()
    names = sorted(LANGUAGES)
    pairs = {
        (one, other): {
            tuple(line.split("\t")[1:])
            if ending == "tsv"
            else (json.loads(line)["source_text"], json.loads(line)["target_text"])
            for line in found[f"{one}-{other}.{ending}"].decode().splitlines()
        }
        for one in names
        for other in names
        if one < other
    }
    if ending == "tsv":
        assert lines.pop(0).split("\t") == ["languages", "links", "score", *names]
        rows = [line.split("\t") for line in lines]
        table = [
            (int(row[0]), int(row[1]), float(row[2]), dict(zip(names, row[3:], strict=True)))
            for row in rows
        ]
    else:
        table = [
            (
                *(record[name] for name in ("languages", "links", "score")),
                {name: sentence["text"] for name, sentence in record["sentences"].items()},
            )
            for record in map(json.loads, lines)
        ]
    order = [(-size, -score) for size, _, score, _ in table]
    assert order == sorted(order)
    for size, links, score, sentences in table:
        there = {name: text for name, text in sentences.items() if text}
        assert len(there) == size >= 2
        within = sum(
            (there[one], there[other]) in texts
            for (one, other), texts in pairs.items()
            if one in there and other in there
        )
        assert size - 1 <= links == within
        assert score > 1.05
    # de and fr, en and zh have sentences in common.
    both = [(sentences.get("de"), sentences.get("fr")) for *_, sentences in table]
    assert sum(one == other for one, other in both if one) == 20


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--pairs", "de-xx"], "--pairs 'de-xx': is not a pair of de, en, fr, zh; write pairs"),
        (["--pairs", "de-de"], "--pairs 'de-de': is not a pair of"),
        (["--pairs", "de-en,en-de"], "--pairs en-de: is given twice"),
        (["--format", "doc"], "de-en.doc: unknown output format"),
        (["--src-lang", "de"], "--src-lang conflicts with --languages"),
        (["--plan"], "--plan conflicts with --languages"),
    ],
)
def test_what_cannot_be_mined(
    folder: Path,
    tmp_path: Path,
    options: list[str],
    line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = snapshot(tmp_path)
    run = ["--languages", str(folder), "-o", str(tmp_path / "out"), "-q"]
    assert mine_corpus([*run, *options]) == 2
    assert line in one_line(capsys.readouterr().err, "mine-corpus")
    assert snapshot(tmp_path) == before


def test_folders_without_languages(
    tmp_path: Path, sample_sentences: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    corpora = tmp_path / "corpora"
    corpora.mkdir()

    def refused(place: Path) -> str:
        assert mine_corpus(["--languages", str(place), "-o", str(tmp_path / "out"), "-q"]) == 2
        assert not (tmp_path / "out").exists()
        return one_line(capsys.readouterr().err, "mine-corpus")

    assert "file or folder not found" in refused(tmp_path / "none")
    assert "contains 0 languages; pass a folder of at least two" in refused(corpora)
    write_lines(corpora / "de.txt", sample_sentences[:5])
    assert "contains 1 language; pass a folder of at least two" in refused(corpora)
    write_lines(corpora / "news.de", sample_sentences[:5])
    assert "news.de: a second corpus of de next to de.txt; put" in refused(corpora)
    write_lines(tmp_path / "all.jsonl", ['{"text": "Ein Satz"}'])
    assert "no record has a field 'language'" in refused(tmp_path / "all.jsonl")


def test_options_of_many_languages_need_them(
    run: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        mine_corpus([*run, "--pairs", "de-en"])
    assert ended.value.code == 2
    assert "--pairs requires --languages" in capsys.readouterr().err
