r"""Lines to records: which format a text file has, and how each format's lines are read.

=========  =========================================================================
lines      a sentence a line
bucc       id TAB text (the text may hold further tabs)
tsv        id TAB text, or id TAB document TAB text; the first line says which
jsonl      an object a line: ``text``; ``id`` and ``doc`` (string or integer) if known
documents  raw documents, whose sentences are the records: ``miner.storage.documents.formats``
=========  =========================================================================
"""

import json
import re
from collections.abc import Callable, Sequence

from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.places import AnyPath

# What only documents are kept in; files of other suffixes may as well hold a sentence a line.
DOCUMENT_SUFFIXES = (".html", ".htm", ".xhtml", ".warc", ".wet", ".xml")

INPUT_FORMATS = ("auto", "lines", "bucc", "tsv", "jsonl", "parquet", "documents")

FORMAT_BY_SUFFIX = {
    **dict.fromkeys(DOCUMENT_SUFFIXES, "documents"),
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tsv": "tsv",
}

Columns = tuple[list[str], list[str], Sequence[str]]
"""Ids, documents and texts; an empty id or document is one that is not known."""

LineParser = Callable[[Sequence[str], dict[int, Rejection]], Columns]
"""Reads lines into columns as long; enters the positions of those it cannot read."""

# The ids of the BUCC shared task's files, such as de-000000001.
_BUCC_ID = re.compile(r"[a-z]{2,3}-\d{9}\t")

_NO_RECORD = ("", "", "")


def sniff_format(lines: Sequence[str]) -> str:
    """Tell ``jsonl``, ``bucc`` or ``lines`` by the first line that is not blank."""
    first = _first_filled(lines)[1]
    if _BUCC_ID.match(first):
        return "bucc"
    return "jsonl" if isinstance(json_object(first).get("text"), str) else "lines"


def line_parser(path: AnyPath, text_format: str, lines: Sequence[str]) -> LineParser:
    """Return the parser of a text format for the file that begins with ``lines``.

    Raises:
        CorpusError: it is ``tsv`` and the first line that is not blank has neither two columns
            nor three.
    """
    parsers = {"lines": _parse_lines, "bucc": _parse_bucc, "jsonl": _parse_jsonl}
    return _tsv_parser(path, lines) if text_format == "tsv" else parsers[text_format]


def _parse_lines(lines: Sequence[str], rejected: dict[int, Rejection]) -> Columns:
    nothing = [""] * len(lines)
    return nothing, nothing, lines


def _parse_bucc(lines: Sequence[str], rejected: dict[int, Rejection]) -> Columns:
    ids, texts = [], []
    for position, line in enumerate(lines):
        own, tab, text = line.partition("\t")
        if not tab:
            _reject_malformed(position, line, rejected)
            own = ""
        ids.append(own)
        texts.append(text)
    return ids, [""] * len(lines), texts


def _tsv_parser(path: AnyPath, lines: Sequence[str]) -> LineParser:
    number, first = _first_filled(lines)
    columns = first.count("\t") + 1 if first else 2
    if columns not in (2, 3):
        plural = "column" if columns == 1 else "columns"
        raise CorpusError(
            f"{path}: line {number} has {columns} {plural}, expected id TAB text or "
            "id TAB document TAB text; if it is plain sentences, use --input-format lines"
        )

    def parse(lines: Sequence[str], rejected: dict[int, Rejection]) -> Columns:
        records = []
        for position, line in enumerate(lines):
            cells = line.split("\t")
            if len(cells) != columns:
                _reject_malformed(position, line, rejected)
                records.append(_NO_RECORD)
            else:
                records.append((cells[0], cells[1] if columns == 3 else "", cells[-1]))
        return _transposed(records)

    return parse


def _parse_jsonl(lines: Sequence[str], rejected: dict[int, Rejection]) -> Columns:
    records = []
    for position, line in enumerate(lines):
        record = json_object(line)
        own, doc, text = _name(record.get("id")), _name(record.get("doc")), record.get("text")
        if own is None or doc is None or not isinstance(text, str):
            _reject_malformed(position, line, rejected)
            records.append(_NO_RECORD)
        elif "\\u" in line and not _is_encodable(own + doc + text):
            rejected.setdefault(position, Rejection.UNDECODABLE)
            records.append(_NO_RECORD)
        else:
            records.append((own, doc, text))
    return _transposed(records)


def json_object(line: str) -> dict[str, object]:
    """Return the object in a line; an empty one where there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # The latter for brackets nested some thousand deep.
        return {}
    return record if isinstance(record, dict) else {}


def _name(value: object) -> str | None:
    """An id or a document as a string, empty if missing; None if it is neither text nor integer."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _is_encodable(text: str) -> bool:
    r"""Return whether it is text: JSON's ``\ud800`` is half a character, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reject_malformed(position: int, line: str, rejected: dict[int, Rejection]) -> None:
    """Reject a line that is no record; a blank one is left to be rejected as blank."""
    if line and not line.isspace():
        rejected.setdefault(position, Rejection.MALFORMED)


def _first_filled(lines: Sequence[str]) -> tuple[int, str]:
    """Number (from 1) and content of the first line that is not blank; 1 and "" if all are."""
    filled = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    return next(filled, (1, ""))


def _transposed(records: list[tuple[str, str, str]]) -> Columns:
    ids, docs, texts = (list(column) for column in zip(*records, strict=True))
    return ids, docs, texts
