"""Recognition of files that are not lists of sentences, by first lines.

A false alarm costs more than a miss, so no rule matches a list of sentences. A format that a user
sets (``--input-format``) is not checked.
"""

import csv
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import islice

from miner.storage.corpus.records import CorpusError
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression

Finding = tuple[str, str] | None
"""The contents of a file, and the remedy."""
Rule = Callable[[Sequence[str]], Finding]

logger = logging.getLogger(__name__)

SAMPLED_LINES = 200
MAX_LINE_CHARACTERS = 2000  # the rest of a line is ignored
MIN_FITTING = 0.8  # share of lines that fit the format
MIN_LINES = 3  # lines of a table
MIN_NUMBERED = 5  # numbered lines
MIN_LENGTH_RATIO = 0.4  # of a column of text to the last column, which is about as long

ONE_LANGUAGE = (
    "write the sentences of one language to a file, one per line (or force --input-format lines)"
)
ONE_COLUMN = "write the column of one language to a file (or force --input-format lines)"

# First lines that show a format, and the remedy.
_FIRST_LINES = {
    r"<\?xml[^>]*\?>\s*(<|$)": ("XML markup", ONE_LANGUAGE),
    r"<!doctype\s+html\b|<html(\s[^<>]*)?>": ("a web page", "rename it to end in .html"),
    r"<!doctype\s[^>]*>?\s*(<|$)": ("XML markup", ONE_LANGUAGE),
    r"<(xliff|tei|srcset|refset|tstset|mteval|corpus)(\s[^<>]*)?>\s*(<|$)": (
        "XML markup",
        ONE_LANGUAGE,
    ),
    r"WEBVTT\b": ("subtitles (WebVTT)", ONE_LANGUAGE),
    r"\[Script Info\]": ("subtitles (SubStation)", ONE_LANGUAGE),
    r"%PDF-\d": ("a PDF file", "extract its text, for example with pdftotext"),
    r"%!PS-Adobe": ("a PostScript file", "extract its text, for example with ps2ascii"),
    r"\{\\rtf": ("an RTF file", "save it as plain text"),
    r"\\documentclass\b": ("LaTeX source", "extract its text, for example with detex"),
}
_FIRST_LINE_PATTERNS = [
    (re.compile(rf"\s*({start})", re.IGNORECASE), *rest) for start, rest in _FIRST_LINES.items()
]
_TMX = re.compile(r"<tmx\b|<tu\b")
_ELEMENT = re.compile(r"\s*<[^<>]+>.*(</[^<>]+>|/>)\s*|\s*</?[\w:-]+[^<>]*>\s*")
_TIME = r"(\d+:)?\d\d?:\d\d[,.]\d{2,3}"
_TIMES = re.compile(rf"\s*{_TIME}(\s*-->\s*|,){_TIME}")
_FRAMES = re.compile(r"\{\d+\}\{\d+\}|\[\d+:\d\d(\.\d+)?\]")
_CATALOGUE = re.compile(r'(msgid(_plural)?|msgstr(\[\d\])?|msgctxt)\s+"')
_CATALOGUE_LINE = re.compile(r'msg(id|str|ctxt)|"|#')
_JSON_PART = re.compile(r'\s*([\[\]{}],?|[\[{]?"([^"\\]|\\.)*"\s*(:.*|[\]}]*,?)|[\[{].*[\]}],?)\s*')
_JSON_START = re.compile(r'\s*(\[\s*(\[|\{|")|\{\s*"[^"]*"\s*:)')
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
_LANGUAGE = re.compile("[a-z]{2}")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)


def check_lines(path: AnyPath, lines: Iterable[str], text_format: str) -> None:
    """Raise an error if the first lines of a file show another format.

    ``text_format`` is the format to check: ``lines``, or ``tsv`` by its suffix. A doubtful file is
    accepted, with one warning.

    Raises:
        CorpusError: One line with the format and the remedy.
    """
    filled = (line[:MAX_LINE_CHARACTERS] for line in lines if line.strip())
    sample = list(islice(filled, SAMPLED_LINES))
    if not sample:
        return
    rules: list[Rule] = [_columns_of_text]
    doubt = None
    if text_format == "lines":
        is_csv = split_compression(path)[0] == ".csv"
        rules = [*_RULES, partial(_comma_separated, is_named_so=is_csv)]
        doubt = _doubt(sample)
    for contents, remedy in filter(None, (rule(sample) for rule in rules)):
        raise CorpusError(f"{path}: contains {contents} instead of a sentence per line; {remedy}")
    if doubt is not None:
        _warn_once(f"{path}: {doubt}")


@cache
def _warn_once(line: str) -> None:
    logger.warning("%s", line)


def _share(sample: Sequence[str], has: Callable[[str], object]) -> float:
    return sum(bool(has(line)) for line in sample) / len(sample)


def _markup(sample: Sequence[str]) -> Finding:
    if any(map(_TMX.match, (line.lstrip() for line in sample[:5]))) or (
        sample[0].lstrip().startswith("<") and _TMX.search(sample[0])
    ):
        return "the units of a translation memory (TMX)", ONE_LANGUAGE
    for pattern, contents, remedy in _FIRST_LINE_PATTERNS:
        if pattern.match(sample[0]):
            return contents, remedy
    if len(sample) >= MIN_LINES and _share(sample, _ELEMENT.fullmatch) >= 0.9:
        return "markup", ONE_LANGUAGE
    return None


def _subtitles(sample: Sequence[str]) -> Finding:
    times = sum(map(bool, map(_TIMES.match, sample)))
    is_timed = times >= 2 and times >= 0.1 * len(sample)
    if is_timed or (len(sample) <= 4 and times):
        return "subtitles with times (SRT)", ONE_LANGUAGE
    if len(sample) >= MIN_LINES and _share(sample, _FRAMES.match) >= MIN_FITTING:
        return "subtitles with times", ONE_LANGUAGE
    return None


def _catalogue(sample: Sequence[str]) -> Finding:
    entries = sum(map(bool, map(_CATALOGUE.match, sample)))
    if entries >= 2 and _share(sample, _CATALOGUE_LINE.match) >= MIN_FITTING:
        return "messages of a gettext catalogue (PO)", ONE_LANGUAGE
    return None


def _messages(sample: Sequence[str]) -> Finding:
    entries = [entry for entry in map(_ENTRY.match, sample) if entry]
    fitting = len(entries) + sum(map(bool, map(_BRACKETS.fullmatch, sample)))
    if len(entries) < MIN_NUMBERED or fitting < MIN_FITTING * len(sample):
        return None
    are_marked = [
        entry["sign"] == "=" or bool(entry["indent"] or _IDENTIFIER.match(entry["key"]))
        for entry in entries
    ]
    is_keyed = len({entry["key"] for entry in entries}) >= 0.95 * len(entries)
    if is_keyed and 2 * sum(are_marked) > len(entries):
        return "messages with keys", ONE_LANGUAGE
    return None


def _json(sample: Sequence[str]) -> Finding:
    if not sample[0].lstrip().startswith(("{", "[")):
        return None
    objects = [record for record in map(_parse_json, sample) if isinstance(record, dict) and record]
    if len(objects) >= max(2, MIN_FITTING * len(sample)):
        names = ", ".join(map(str, islice(objects[0], 5)))
        return f"JSON objects without a field 'text' (fields: {names})", "rename a field to text"
    is_array = isinstance(value := _parse_json(sample[0]), list) and any(
        isinstance(element, str | dict | list) for element in value
    )
    is_opened = sample[0].strip() in ("[", "{") and len(sample) > 1
    is_part = (is_array or is_opened) and _share(sample, _JSON_PART.fullmatch) >= MIN_FITTING
    if is_part or (len(sample[0]) == MAX_LINE_CHARACTERS and _JSON_START.match(sample[0])):
        return "JSON", "write an object per line, with a field 'text' (.jsonl)"
    return None


def _parse_json(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _encoded(sample: Sequence[str]) -> Finding:
    lines = [line.strip() for line in sample if len(line) < MAX_LINE_CHARACTERS]
    is_encoded = all(_BASE64.fullmatch(line) and len(line) % 4 == 0 for line in lines)
    if len(lines) >= 2 and is_encoded and len({*"".join(lines)}) > 32:
        return "text in base64", "decode it, for example with base64 -d"
    return None


def _columns(sample: Sequence[str]) -> Finding:
    if len(sample) < MIN_LINES:
        return None
    for mark, name in (("\t", "tabs"), (" ||| ", "|||")):
        (count, _), *_ = Counter(line.count(mark) for line in sample).most_common(1)
        rows = [line.split(mark) for line in sample if line.count(mark) == count]
        filled = sum(all(cell.strip() for cell in (row[0], row[-1])) for row in rows)
        if count and filled >= MIN_FITTING * len(sample):
            has_ids = count == 1 and mark == "\t" and not contains_sentences(rows, 0)
            contents = f"{count + 1} columns with {name} between them"
            return contents, "use --input-format tsv for id TAB text" if has_ids else ONE_COLUMN
    return None


def _comma_separated(sample: Sequence[str], is_named_so: bool) -> Finding:
    for mark in ",;":
        try:
            rows = list(csv.reader(sample, delimiter=mark, skipinitialspace=True))
        except csv.Error:
            continue
        count, lines = Counter(map(len, rows)).most_common(1)[0]
        if count < 2 or lines < MIN_FITTING * len(sample):
            continue
        quoted = re.compile(rf'("([^"]|"")*"|[^"{mark}]*)({mark}("([^"]|"")*"|[^"{mark}]*))+')
        marks = re.compile(f'"{mark}|{mark}"')
        is_quoted = len(sample) >= MIN_LINES and all(map(quoted.fullmatch, sample))
        is_quoted = is_quoted and _share(sample, marks.search) >= MIN_FITTING
        names = list(map(str.strip, rows[0]))
        has_names = all(_COLUMN.fullmatch(name) or _LANGUAGE.fullmatch(name) for name in names)
        if is_named_so or is_quoted or has_names:
            return f"{count} columns with {mark!r} between them (CSV)", ONE_COLUMN
    return None


def _columns_of_text(sample: Sequence[str]) -> Finding:
    count, _ = Counter(line.count("\t") + 1 for line in sample).most_common(1)[0]
    rows = [cells for line in sample if len(cells := line.split("\t")) == count]
    if count in (2, 3) and all(map(_COLUMN.fullmatch, map(str.strip, rows[0]))):
        return "a header in its first line", "remove that line"
    if len(rows) < MIN_LINES or count not in (2, 3):
        return None
    for column in range(count - 1):
        if contains_sentences(rows, column):
            expected = "id TAB text" if count == 2 else "id TAB document TAB text"
            return (
                f"sentences in column {column + 1} of {count}",
                "write the column of one language to a file (or force --input-format tsv for "
                f"{expected})",
            )
    return None


def contains_sentences(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Return whether a column has sentences, not ids or names of documents."""
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
    first = numbers[0]
    consecutive = sum(number == first + index for index, number in enumerate(numbers))
    if len(sample) >= MIN_NUMBERED and first >= 0 and consecutive >= 0.95 * len(sample):
        return (
            "its lines are numbered, and the numbers are mined as text; remove them, for example "
            "with cut or sed"
        )
    if len(sample) >= MIN_NUMBERED and _share(sample, _VERSE.match) >= 0.95:
        return (
            "its lines begin with references, which are mined as text; remove them, for example "
            "with cut or sed"
        )
    if len(sample) < MIN_LINES and all("\t" in line.strip() for line in sample):
        return "each line has a tab; if it is id TAB text, use --input-format tsv"
    return None


_RULES = (_markup, _subtitles, _catalogue, _messages, _json, _encoded, _columns)
