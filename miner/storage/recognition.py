"""Recognition of files of sentences and of pairs by their first lines."""

import csv
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import NamedTuple

from miner.storage.corpus.records import MAX_LINE_BYTES, CorpusError
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression

logger = logging.getLogger(__name__)

SAMPLED_LINES = 200
MAX_LINE_CHARACTERS = 2000  # the rest of a line is ignored
MIN_FITTING = 0.8  # share of fitting lines; a false alarm costs more than a miss
MIN_LINES = 3  # lines of a table
MIN_NUMBERED = 5  # numbered lines
MIN_LENGTH_RATIO = 0.4  # of a column of text to the last column, which is about as long

ONE_LANGUAGE = (
    "write the sentences of one language to a file, one per line (or force --input-format lines)"
)
ONE_COLUMN = "write the column of one language to a file (or force --input-format lines)"

# The names of columns' delimiters.
DELIMITERS = {"\t": "tabs", " ||| ": "|||", ",": "','", ";": "';'"}
QUOTING = ",;"  # delimiters of CSV, in which cells may be quoted


class Finding(NamedTuple):
    """A description of a file's contents, and the remedy for a user."""

    contents: str
    remedy: str = ONE_LANGUAGE


# First lines that show a format.
_FIRST_LINES = {
    r"<\?xml[^>]*\?>\s*(<|$)": Finding("XML markup"),
    r"<!doctype\s+html\b|<html(\s[^<>]*)?>": Finding("a web page", "rename it to end in .html"),
    r"<!doctype\s[^>]*>?\s*(<|$)": Finding("XML markup"),
    r"<(xliff|tei|srcset|refset|tstset|mteval|corpus)(\s[^<>]*)?>\s*(<|$)": Finding("XML markup"),
    r"WEBVTT\b": Finding("subtitles (WebVTT)"),
    r"\[Script Info\]": Finding("subtitles (SubStation)"),
    r"%PDF-\d": Finding("a PDF file", "extract its text, for example with pdftotext"),
    r"%!PS-Adobe": Finding("a PostScript file", "extract its text, for example with ps2ascii"),
    r"\{\\rtf": Finding("an RTF file", "save it as plain text"),
    r"\\documentclass\b": Finding("LaTeX source", "extract its text, for example with detex"),
}
_TMX = re.compile(r"<(tmx|tu)\b")
_TIME = r"(\d+:)?\d\d?:\d\d[,.]\d{2,3}"
_TIMES = re.compile(rf"\s*{_TIME}(\s*-->\s*|,){_TIME}")
_ELEMENT = re.compile(r"\s*<[^<>]+>.*(</[^<>]+>|/>)\s*$|\s*</?[\w:-]+[^<>]*>\s*$")
_FRAMES = re.compile(r"\{\d+\}\{\d+\}|\[\d+:\d\d(\.\d+)?\]")
_CATALOGUE = re.compile(r'(msgid(_plural)?|msgstr(\[\d\])?|msgctxt)\s+"')
# Contents, the pattern of some lines, their smallest number and share.
_REPEATED_LINES = (
    ("markup", _ELEMENT, MIN_LINES, 0.9),
    ("subtitles with times (SRT)", _TIMES, 2, 0.1),
    ("subtitles with times (SRT)", _TIMES, 1, 0.25),
    ("subtitles with times", _FRAMES, MIN_LINES, MIN_FITTING),
    ("messages of a gettext catalogue (PO)", _CATALOGUE, 2, 0.2),
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_ENTRY = re.compile(  # a message with its key, as in properties and YAML
    r"(?P<indent>\s*)(?P<key>\"[^\"]+\"|'[^']+'|[A-Za-z_][\w.-]*)\s*(?P<sign>=|:(?=\s))\s*\S"
)
_IDENTIFIER = re.compile(r".*[\d\"'_.-]|[a-z]+[A-Z]")
_BRACKETS = re.compile(r"[\s{}\[\](),;]*")
_NUMBER = re.compile(r"\s*[(\[]?(\d+)(?:[.):\]|]+\s*|\s+)(?=\S)")
_VERSE = re.compile(r"\s*(\d+ ?)?\w+\.? \d+[:.,]\d+\s+\S")
_COLUMN = re.compile(
    r"#?(source|target|src|tgt|trg|ref(erence)?|sentences?|text|id|ids|doc(ument)?|score|lang(uage)?|"
    r"translation|url)([ _-]?(sentence|text|id|lang(uage)?|doc(ument)?|url|\d))?|sentence[12]",
    re.IGNORECASE,
)
_CODE = re.compile("[a-z]{2}")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)


def check_lines(path: AnyPath, lines: Iterable[str], text_format: str) -> None:
    """Check that the first lines of a file do not show another format.

    ``text_format``, ``lines`` or ``tsv``, is the expected one. At most 200 lines with text count.
    Doubtful ``lines`` log a warning, once. ``path`` is not read, but its ``.csv`` counts.

    Raises:
        CorpusError: The lines show another format. The message names it and the remedy.
    """
    filled = (line[:MAX_LINE_CHARACTERS] for line in lines if line.strip())
    sample = list(islice(filled, SAMPLED_LINES))
    if not sample:
        return
    if text_format == "lines":
        is_csv = split_compression(path)[0] == ".csv"
        finding, expected = recognise(sample) or _table(sample, is_csv=is_csv), "a sentence"
    else:
        finding, expected = _table_of_text(sample), "an id and a sentence"
    if finding:
        raise CorpusError(
            f"{path}: contains {finding.contents} instead of {expected} per line; {finding.remedy}"
        )
    if text_format == "lines" and (doubt := _doubt(sample)):
        _warn_once(f"{path}: {doubt}")


@cache
def _warn_once(line: str) -> None:
    logger.warning("%s", line)


def recognise(sample: Sequence[str]) -> Finding | None:
    """Recognise the format of a file that has neither sentences nor a table.

    ``sample`` are first lines, at least one and none blank. An unknown format gives None.
    """
    if is_tmx("".join(sample[:5]).lstrip()):
        return Finding("the units of a translation memory (TMX)")
    for start, finding in _FIRST_LINES.items():
        if re.match(rf"\s*({start})", sample[0], re.IGNORECASE):
            return finding
    for contents, pattern, count, share in _REPEATED_LINES:
        matches = sum(map(bool, map(pattern.match, sample)))
        if matches >= max(count, share * len(sample)):
            return Finding(contents)
    return _messages(sample) or _json(sample) or _encoded(sample)


def is_tmx(start: str) -> bool:
    """Return whether a stripped text begins like XML with units of TMX."""
    return start.startswith("<") and bool(_TMX.search(start))


class Table(NamedTuple):
    """Lines as a table, divided by a delimiter.

    ``rows`` are the rows of the commonest width, in order, a ``share`` (0 to 1) of all rows.
    """

    delimiter: str
    rows: list[list[str]]
    share: float

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])


def tables_in(lines: Sequence[str], delimiters: Iterable[str] = DELIMITERS) -> Iterator[Table]:
    """Yield lines as a table for each delimiter by which they have columns.

    A delimiter is skipped if the commonest number of cells per line, or of several the first, is 1.
    CSV is read up to its first error.
    """
    for delimiter in delimiters:
        rows: list[list[str]] = []
        with suppress(csv.Error):
            rows.extend(divide(lines, delimiter))
        (width, count), *_ = Counter(map(len, rows)).most_common(1) or [(0, 0)]
        if width > 1:
            same = [row for row in rows if len(row) == width]
            yield Table(delimiter, same, count / len(rows))


def divide(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of each line, or of each record of CSV.

    Delimiters ``,`` and ``;`` are of CSV, where a quoted cell may contain them and ends of lines,
    and spaces before a cell are skipped. ``MAX_LINE_BYTES`` becomes the field limit of ``csv``.
    Iteration raises csv.Error for a longer cell of CSV, or a carriage return outside of quotes.
    """
    if delimiter not in QUOTING:
        return (line.split(delimiter) for line in lines)
    csv.field_size_limit(MAX_LINE_BYTES)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _share(sample: Sequence[str], has: Callable[[str], object]) -> float:
    return sum(bool(has(line)) for line in sample) / len(sample)


def _messages(sample: Sequence[str]) -> Finding | None:
    entries = [entry for entry in map(_ENTRY.match, sample) if entry]
    fitting = len(entries) + sum(map(bool, map(_BRACKETS.fullmatch, sample)))
    if len(entries) < MIN_NUMBERED or fitting < MIN_FITTING * len(sample):
        return None
    marked = sum(
        entry["sign"] == "=" or bool(entry["indent"] or _IDENTIFIER.match(entry["key"]))
        for entry in entries
    )
    is_keyed = len({entry["key"] for entry in entries}) >= 0.95 * len(entries)
    return Finding("messages with keys") if is_keyed and 2 * marked > len(entries) else None


def _json(sample: Sequence[str]) -> Finding | None:
    text = "\n".join(sample)
    if not text.lstrip().startswith(("{", "[")):
        return None
    objects = [record for record in map(json_object, sample) if record]
    if len(objects) >= max(2, MIN_FITTING * len(sample)):
        names = ", ".join(map(str, islice(objects[0], 5)))
        contents = f"JSON objects without a field 'text' (fields: {names})"
        return Finding(contents, "rename a field to text")
    try:
        value = json.loads(text)
        is_json = len(sample) > 1 or (
            isinstance(value, list) and any(isinstance(one, str | dict | list) for one in value)
        )
    except json.JSONDecodeError as error:  # the sample may end before the value does
        is_long = len(text) >= MAX_LINE_CHARACTERS
        is_json = error.pos >= len(text) > 1 or (is_long and error.msg.startswith("Untermin"))
    except RecursionError:
        is_json = True
    remedy = "write an object per line, with a field 'text' (.jsonl)"
    return Finding("JSON", remedy) if is_json else None


def json_object(line: str) -> dict[str, object]:
    """Return the JSON object in a line, or an empty one for any other line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError for thousands of nested brackets
        return {}
    return record if isinstance(record, dict) else {}


def _encoded(sample: Sequence[str]) -> Finding | None:
    lines = [line.strip() for line in sample if len(line) < MAX_LINE_CHARACTERS]
    is_encoded = all(_BASE64.fullmatch(line) and len(line) % 4 == 0 for line in lines)
    if len(lines) >= 2 and is_encoded and len({*"".join(lines)}) > 32:
        return Finding("text in base64", "decode it, for example with base64 -d")
    return None


def _table(sample: Sequence[str], *, is_csv: bool) -> Finding | None:
    for table in tables_in(sample):
        mark, rows = table.delimiter, table.rows
        if mark in QUOTING:
            is_quoted = _share(sample, re.compile(f'"{mark} ?"').search) >= MIN_FITTING
            has_names = all(_COLUMN.fullmatch(cell) or _CODE.fullmatch(cell) for cell in rows[0])
            is_named = is_csv or has_names or (is_quoted and len(sample) >= MIN_LINES)
            is_table, note = is_named and table.share >= MIN_FITTING, " (CSV)"
        else:
            filled = sum(bool(row[0].strip() and row[-1].strip()) for row in rows)
            is_table, note = filled >= max(MIN_LINES, MIN_FITTING * len(sample)), ""
        if is_table:
            has_ids = table.width == 2 and mark == "\t" and not contains_sentences(rows, 0)
            remedy = "use --input-format tsv for id TAB text" if has_ids else ONE_COLUMN
            contents = f"{table.width} columns with {DELIMITERS[mark]} between them{note}"
            return Finding(contents, remedy)
    return None


def _table_of_text(sample: Sequence[str]) -> Finding | None:
    table = next(tables_in(sample, "\t"), None)
    if table is None or table.width > 3:
        return None
    if all(map(_COLUMN.fullmatch, map(str.strip, table.rows[0]))):
        return Finding("a header in its first line", "remove that line")
    for column in range(table.width - 1 if len(table.rows) >= MIN_LINES else 0):
        if contains_sentences(table.rows, column):
            expected = "id TAB text" if table.width == 2 else "id TAB document TAB text"
            remedy = f"{ONE_COLUMN[: -len('lines)')]}tsv for {expected})"
            return Finding(f"sentences in column {column + 1} of {table.width}", remedy)
    return None


def contains_sentences(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Return whether a column has sentences, rather than ids or names.

    ``column`` is a position in each row. More than half of its cells must look like sentences and
    differ by more than numbers. It must have at least 0.4 times the letters of the last column.
    """
    cells = [row[column] for row in rows]
    last_cells = [row[-1] for row in rows]
    shapes = {re.sub(r"\d+", "0", cell) for cell in cells}
    lengths = sum(map(_alphabetic_length, cells)), sum(map(_alphabetic_length, last_cells))
    return (
        2 * sum(map(_is_sentence, cells)) > len(cells)
        and 2 * len(shapes) > len(cells)
        and lengths[0] >= MIN_LENGTH_RATIO * lengths[1]
    )


def _alphabetic_length(cell: str) -> int:
    """Estimate the number of letters that a text would have in an alphabet."""
    return len(cell) + 2 * len(_UNSPACED.findall(cell))


def _is_sentence(cell: str) -> bool:
    if "#char=" in cell:  # the id of a sentence of a document
        return False
    ends = unicodedata.category(cell.rstrip()[-1:] or " ") == "Po" and any(map(str.isalpha, cell))
    return len(cell.split()) >= 3 or ends or len(_UNSPACED.findall(cell)) >= 6


def _doubt(sample: Sequence[str]) -> str | None:
    numbers = [int(match[1][:18]) if (match := _NUMBER.match(line)) else -1 for line in sample]
    consecutive = sum(number == numbers[0] + index for index, number in enumerate(numbers))
    beginning = ""
    if numbers[0] >= 0 and consecutive >= 0.95 * len(sample):
        beginning = "its lines are numbered, and the numbers"
    elif _share(sample, _VERSE.match) >= 0.95:
        beginning = "its lines begin with references, which"
    if beginning and len(sample) >= MIN_NUMBERED:
        return f"{beginning} are mined as text; remove these, for example with cut or sed"
    if len(sample) < MIN_LINES and all("\t" in line.strip() for line in sample):
        return "each line has a tab; if it is id TAB text, use --input-format tsv"
    return None
