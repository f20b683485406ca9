"""Folders of documents need no options; what is asked for is not overruled."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from pipelines.cli.arguments import mine_parser
from pipelines.cli.documents import decide_documents
from pipelines.cli.mine import mine_corpus
from tests.pipelines.worlds import read_jsonl

SUBJECTS = ("rain clouds wind storm", "bread butter cheese milk", "trains stations tickets tracks")


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Pages, one of them with another number on the other side, which has a sentence twice."""
    for name, order in (("one", (0, 1, 2)), ("two", (1, 2, 0))):
        (tmp_path / name).mkdir()
        for place, subject in enumerate(order):
            words = SUBJECTS[subject].split()
            sentences = [f"The {word} and the {words[0]} were old." for word in words]
            items = "".join(f"<li>{sentence}</li>" for sentence in [*sentences, sentences[0]])
            page = f"<html><body><main><h1>{words[0]}</h1><ul>{items}</ul></main></body></html>"
            (tmp_path / name / f"{place}.html").write_text(page)
    return [str(tmp_path / "one"), str(tmp_path / "two")]


def test_folders_of_documents_are_paired_and_aligned(folders: list[str], tmp_path: Path) -> None:
    out, work = tmp_path / "out.jsonl", tmp_path / "work"
    arguments = [*folders, "-o", str(out), "-q", "--work-dir", str(work), "--keep-identical"]
    assert mine_corpus(arguments) == 0
    options = json.loads((work / "run.json").read_text())["options"]
    assert (options["scope"], options["alignment"]) == ("document", "monotone")
    records = read_jsonl(out)
    assert all(record["source_text"] == record["target_text"] for record in records)
    found = {(record["source_doc"], record["target_doc"]) for record in records}
    assert found == {("0.html", "2.html"), ("1.html", "0.html"), ("2.html", "1.html")}
    assert sum("The bread and the bread" in record["source_text"] for record in records) == 2


@pytest.mark.parametrize(
    ("options", "scope", "alignment"),
    [
        ([], "document", "monotone"),
        (["--input-format", "documents"], "document", "monotone"),
        (["--scope", "corpus"], "corpus", "free"),
        (["--scope", "document"], "document", "free"),
        (["--document-pairs", "auto"], "document", "free"),
        (["--alignment", "free"], "corpus", "free"),
        (["--retrieval", "forward"], "corpus", "free"),
        (["--index", "cells"], "corpus", "free"),
        (["--plan"], "corpus", "free"),
    ],
)
def test_what_is_asked_for_is_not_overruled(
    folders: list[str],
    caplog: pytest.LogCaptureFixture,
    options: list[str],
    scope: str,
    alignment: str,
) -> None:
    args = mine_parser("adit mine").parse_args([*folders, "-o", "out.tsv", *options])
    with caplog.at_level(logging.INFO):
        decide_documents(args, [args.source, args.target])
    assert (args.scope, args.alignment) == (scope, alignment)
    assert ("--scope corpus" in caplog.text) == (args.alignment == "monotone")


def test_files_that_look_like_documents_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines, page = tmp_path / "lines.txt", tmp_path / "page.txt"
    lines.write_text("One sentence.\nAnother one.\n")
    page.write_text("One sentence. Another one. And a third.\n\nAnd more. And so on.\n")
    args = mine_parser("adit mine").parse_args([str(lines), str(page), "-o", "out.tsv"])
    decide_documents(args, [lines, page])
    assert (args.scope, args.input_format) == ("corpus", "auto")
    [line] = caplog.messages
    assert line.startswith(f"{page}: looks like a document")
