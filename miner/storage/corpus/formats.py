"""Formats of text files, and the parsers of their lines.

=========  =========================================================================
lines      one sentence per line
bucc       id TAB text (the text may contain further tabs)
tsv        id TAB text, or id TAB document TAB text, as in the first line
jsonl      one object per line: ``text``; ``id`` and ``doc`` (string or integer) are optional
documents  raw documents, whose sentences are the records: ``miner.storage.documents.records``
=========  =========================================================================
"""

import re
from collections.abc import Callable, Sequence

from miner.storage.corpus.records import Columns, CorpusError, Rejected, Rejection
from miner.storage.places import AnyPath
from miner.storage.recognition import check_lines, json_object
from miner.storage.streams import split_compression

# Suffixes of documents only. Files with other suffixes may have one sentence per line.
DOCUMENT_SUFFIXES = (".html", ".htm", ".xhtml", ".warc", ".wet", ".xml")

INPUT_FORMATS = ("auto", "lines", "bucc", "tsv", "jsonl", "parquet", "documents")

FORMAT_BY_SUFFIX = {
    **dict.fromkeys(DOCUMENT_SUFFIXES, "documents"),
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tsv": "tsv",
}

Record = tuple[str, str, str]
"""Id, document and text, as in ``Columns``."""

LineParser = Callable[[Sequence[str], Rejected], Columns]
"""Parses lines into columns of the same length, and rejects malformed lines by position."""

# The ids of the BUCC shared task's files, such as de-000000001.
_BUCC_ID = re.compile(r"[a-z]{2,3}-\d{9}\t")


def format_of(path: AnyPath, input_format: str) -> str:
    """Return ``input_format``, or for ``auto`` the format of a path's suffix.

    A suffix of a compression is ignored. An unknown suffix returns ``auto``.
    """
    if input_format != "auto":
        return input_format
    return FORMAT_BY_SUFFIX.get(split_compression(path)[0], "auto")


def line_parser(
    path: AnyPath, text_format: str, lines: Sequence[str], *, is_given: bool = True
) -> LineParser:
    """Return the parser of a text format for a file.

    It turns lines (one or more) into ``Columns``, and adds malformed, filled positions to a dict.
    ``check_lines`` raises CorpusError, as does a first filled ``tsv`` line without 2 or 3 columns.

    Args:
        path: Names the file in errors.
        text_format: ``lines``, ``bucc``, ``tsv``, ``jsonl``, or ``auto``, for which the first line
            that is not blank decides between ``bucc``, ``jsonl`` and ``lines``.
        lines: The first lines of the file.
        is_given: Whether the user passed the format. If not, ``check_lines`` checks lines and TSV.
    """
    filled = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, first = next(filled, (1, ""))
    if text_format == "auto":
        is_json = isinstance(json_object(first).get("text"), str)
        text_format = "bucc" if _BUCC_ID.match(first) else "jsonl" if is_json else "lines"
    if not is_given and text_format in ("lines", "tsv"):
        check_lines(path, lines, text_format)
    if text_format == "lines":
        return lambda lines, rejected: ([""] * len(lines), [""] * len(lines), lines)
    if text_format == "tsv":
        return _each_line(_tsv_records(path, number, first))
    return _each_line(_bucc_record if text_format == "bucc" else _json_record)


def _each_line(parse: Callable[[str], Record | None]) -> LineParser:
    """Return a parser of lines by ``parse``, which returns None if malformed."""

    def parse_lines(lines: Sequence[str], rejected: Rejected) -> Columns:
        records = []
        for position, line in enumerate(lines):
            record, why = None, Rejection.MALFORMED
            try:
                record = parse(line)
            except UnicodeEncodeError:
                why = Rejection.UNDECODABLE
            if record is None and line.strip():  # a blank line is rejected later
                rejected.setdefault(position, why)
            records.append(record or ("", "", ""))
        ids, docs, texts = map(list, zip(*records, strict=True))
        return ids, docs, texts

    return parse_lines


def _bucc_record(line: str) -> Record | None:
    name, tab, text = line.partition("\t")
    return (name, "", text) if tab else None


def _tsv_records(path: AnyPath, number: int, first: str) -> Callable[[str], Record | None]:
    columns = first.count("\t") + 1 if first else 2
    if columns not in (2, 3):
        plural = "column" if columns == 1 else "columns"
        raise CorpusError(
            f"{path}: line {number} has {columns} {plural}, expected id TAB text or "
            "id TAB document TAB text; if it is plain sentences, use --input-format lines"
        )

    def record(line: str) -> Record | None:
        cells = line.split("\t")
        if len(cells) != columns:
            return None
        return cells[0], cells[1] if columns == 3 else "", cells[-1]

    return record


def _json_record(line: str) -> Record | None:
    record = json_object(line)
    name, doc, text = _name(record.get("id")), _name(record.get("doc")), record.get("text")
    if name is None or doc is None or not isinstance(text, str):
        return None
    if "\\u" in line:  # raises for a lone surrogate such as ``\ud800``, which UTF-8 cannot encode
        (name + doc + text).encode()
    return name, doc, text


def _name(value: object) -> str | None:
    """Return an id as text, "" if missing, or None for other types of values."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
