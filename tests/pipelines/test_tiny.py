"""adit mine and rate on corpora of one to three sentences, and with k past their sizes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner import mine
from miner.knn.cells import find_floors, join_cells
from miner.knn.exact import search_both, search_documents
from pipelines.cli.main import adit
from tests.pipelines.worlds import read_jsonl, write_lines

GERMAN = ["Der Hund schläft im Garten.", "Wir fahren morgen nach Hause.", "Es gibt 7 Äpfel."]
ENGLISH = ["The dog sleeps in the garden.", "We go home tomorrow.", "There are 7 apples."]
HUGE = 5_000_000_000


def mined(folder: Path, sizes: tuple[int, int], *options: str, command: str = "mine") -> list[dict]:
    source = write_lines(folder / "src.txt", GERMAN[: sizes[0]])
    target = write_lines(folder / "tgt.txt", ENGLISH[: sizes[1]])
    output, languages = folder / "out.jsonl", ["--src-lang", "de", "--tgt-lang", "en"]
    arguments = [str(source), str(target), "-o", str(output), *languages, "-q", *options]
    assert adit([command, *arguments]) == 0
    return read_jsonl(output)


sizes = st.integers(1, 3)


@settings(max_examples=8)
@given(
    sources=sizes,
    targets=sizes,
    k=st.sampled_from([1, 2, 3, 4, HUGE]),
    score=st.sampled_from(["words", "margin"]),
    retrieval=st.sampled_from(["max", "intersect", "forward", "backward"]),
    index=st.sampled_from(["exact", "cells", "cells2:probes=1", "cells1"]),
    more=st.sampled_from([[], ["--shards", "2"], ["--shards=3", "--filters=hub,length"]]),
)
def test_every_tiny_size_gives_the_pairs_of_the_library(
    sources: int, targets: int, k: int, score: str, retrieval: str, index: str, more: list[str]
) -> None:
    options = ["-k", str(k), "--retrieval", retrieval, "--index", index, *more]
    with tempfile.TemporaryDirectory() as folder:
        pairs = mined(Path(folder), (sources, targets), "--score", score, "--all", *options)
    may_miss = index == "cells2:probes=1"  # both sides' only sentence may be in other cells
    assert (0 if may_miss else 1) <= len(pairs) <= max(sources, targets)
    if index == "exact" and not more:
        assert len(pairs) == len(expected(sources, targets, k, retrieval))


def expected(sources: int, targets: int, k: int, retrieval: str) -> set[tuple[int, int]]:
    from encoder import load_encoder

    encoder = load_encoder()
    vectors = [
        encoder.for_language(language).encode(texts)
        for language, texts in (("de", GERMAN[:sources]), ("en", ENGLISH[:targets]))
    ]
    pairs = mine(*vectors, k=k, retrieval=retrieval)
    return set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))


@pytest.mark.parametrize("command", ["mine", "rate"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_k_is_cut_to_the_sentences(tmp_path: Path, command: str, count: int) -> None:
    """More neighbours than there are sentences are all of them."""
    found = [
        mined(tmp_path, (count, count), "--all", "-k", str(k), command=command)
        for k in (count, count + 1, 1000, HUGE, 10**30)
    ]
    assert found[0]
    assert all(pairs == found[0] for pairs in found)


def test_a_line_says_that_k_was_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for k, said in ((5, True), (2, False)):
        source, target = (write_lines(tmp_path / name, GERMAN) for name in ("a", "b"))
        write_lines(target, ENGLISH[:2])
        arguments = [str(source), str(target), "-o", str(tmp_path / "o.tsv"), "-k", str(k)]
        assert adit(["mine", *arguments]) == 0
        assert ("-k 5: a side has 2 sentences, all neighbours of each" in caplog.text) is said
        caplog.clear()


@pytest.mark.slow
def test_k_past_memory_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = write_lines(tmp_path / "a", GERMAN), write_lines(tmp_path / "b", ENGLISH)
    arguments = [str(source), str(target), "-o", str(tmp_path / "o.tsv"), "-k", str(HUGE)]
    assert adit(["mine", *arguments, "--plan"]) == 0
    assert "3 neighbours per line" in capsys.readouterr().out


def documents(path: Path, texts: list[str], docs: list[str]) -> Path:
    records = zip(texts, docs, strict=True)
    return write_lines(
        path, [json.dumps({"id": text, "doc": doc, "text": text}) for text, doc in records]
    )


@pytest.mark.parametrize("shards", ["1", "3"])
@pytest.mark.parametrize("alignment", ["free", "monotone"])
def test_documents_of_one_sentence(tmp_path: Path, shards: str, alignment: str) -> None:
    """Shards without a document in common have no neighbours: lists are as wide all the same."""
    source = documents(tmp_path / "a.jsonl", GERMAN, ["x", "y", "y"])
    target = documents(tmp_path / "b.jsonl", ENGLISH, ["x", "y", "y"])
    pairs = write_lines(tmp_path / "pairs", ["x\tx", "y\ty"])
    output, work = tmp_path / "out.jsonl", tmp_path / "work"
    arguments = [str(source), str(target), "-o", str(output), "--document-pairs", str(pairs)]
    arguments += ["--scope=document", "--shards", shards, "--alignment", alignment]
    assert adit(["mine", *arguments, "--all", "-q", "--work-dir", str(work)]) == 0
    assert 2 <= len(read_jsonl(output)) <= 3
    assert adit(["report", str(work), "-o", str(tmp_path / "page.html")]) == 0
    assert adit(["why", str(work), GERMAN[0], ENGLISH[1]]) == 0


@settings(max_examples=20)
@given(st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 2, 3, 7, HUGE]))
def test_searches_cut_k(rows: int, columns: int, k: int) -> None:
    random = np.random.default_rng(rows)
    x, y = (random.standard_normal((count, 4)).astype(np.float32) for count in (rows, columns))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    forward, backward = search_both(x, y, k=k)
    assert forward.ids.shape == (rows, min(k, columns))
    assert backward.ids.shape == (columns, min(k, rows))
    same = [(np.arange(rows), np.arange(columns))]
    assert search_documents(x, y, same, k=k)[0].ids.shape == forward.ids.shape
    if rows and columns:
        cells = np.zeros((rows, 1), np.int16), np.zeros((columns, 1), np.int16)
        joined = join_cells((x, y), cells, part=range(1), k=k)
        assert joined[0].ids.tolist() == forward.ids.tolist()
        floors = find_floors((x, y), cells, part=range(1), k=k)
        assert [len(floor) for floor in floors] == [rows, columns]
