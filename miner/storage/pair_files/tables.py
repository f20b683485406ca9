"""Read pairs from TSV, columns with ``|||`` between them, and CSV."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from miner.addresses import addresses_in
from miner.choices import FILTERS
from miner.storage import recognition
from miner.storage.corpus.lines import text_lines
from miner.storage.corpus.records import CorpusError
from miner.storage.pair_files.base import BLANK, FilePair, PairFile
from miner.storage.pair_files.fields import language_of, named_sides
from miner.storage.places import Place
from miner.storage.streams import split_compression

LAYOUTS = {"\t": "TSV", " ||| ": "columns with |||", ",": "CSV", ";": "CSV with semicolons"}
_OTHER_NAMES = ("score", "probability", "corpus")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table of pairs, by position from 0.

    ``delimiter`` is one of ``LAYOUTS``. ``texts`` are source and target. ``count`` is the number of
    columns of every row, None if rows may differ. ``others`` are score, probability and corpus, by
    name. ``header`` has names in the first line, if any.
    """

    delimiter: str
    texts: tuple[int, int]
    count: int | None
    others: Mapping[str, int]
    header: Sequence[str]


def open_table(path: Place, lines: Sequence[str], columns: Sequence[str]) -> PairFile:
    """Recognise the columns of a table by its first lines, not all blank.

    ``columns`` are names or numbers (from 1) of source and target, or empty. CorpusError says that
    the lines are not a table or lack ``columns``, or that the columns of text are in doubt.
    """
    filled = [line for line in lines if line.strip()]
    table = _table(path, filled)
    first = next(recognition.divide(filled[:1], table.delimiter))
    is_header = first == table.rows[0] and _is_header(first, columns)
    header = [name.strip() for name in first] if is_header else []
    body = table.rows[bool(header) :]
    is_own = not (columns or header) and _is_own(body)
    if columns:
        texts = _chosen(path, columns, header, table.width)
    else:
        texts = (1, 2) if is_own else named_sides(header) or _guessed(path, body, header)
    lowered = [name.lower() for name in header]
    others = {name: lowered.index(name) for name in _OTHER_NAMES if name in lowered}
    if is_own:
        others = {"score": 0}
    elif not header and _is_rated(body, texts):
        others = {"score": table.width - 3, "probability": table.width - 2}
    elif table.width == 3 and texts == (0, 1) and not (header or _are_numbers(body, 2)):
        others = {"corpus": 2}
    names = [header[at] if header else str(at + 1) for at in texts]
    has_lines = table.delimiter not in recognition.QUOTING
    read = partial(
        _read_lines if has_lines else _read_csv,
        path,
        Columns(
            delimiter=table.delimiter,
            texts=texts,
            count=None if columns or _has_reasons(body, texts) else table.width,
            others=others,
            header=header,
        ),
    )
    return PairFile(
        layout=f"{LAYOUTS[table.delimiter]}, columns {names[0]} and {names[1]} of {table.width}"
        + (" (named by the first line)" if header else ""),
        read=read,
        languages=(language_of(names[0]), language_of(names[1])),
        header=filled[0] if header else None,
        has_lines=has_lines,
    )


def _table(path: Place, lines: Sequence[str]) -> recognition.Table:
    # That of the delimiter that most lines have equally often.
    tables = [table for table in recognition.tables_in(lines) if table.share >= 0.5]
    is_csv = split_compression(path)[0] == ".csv"
    candidates = [table for table in tables if table.delimiter not in recognition.QUOTING] or [
        table for table in tables if is_csv or named_sides(table.rows[0])
    ]
    if candidates:
        return max(candidates, key=lambda table: table.share)
    finding = recognition.recognise(lines)
    contents = f"contains {finding.contents}" if finding else "no pairs found in its first lines"
    raise CorpusError(
        f"{path}: {contents}; pass TSV, CSV, JSON lines, Parquet, TMX, a zip file of OPUS, or SRC "
        "and TGT as two files"
    )


def _is_header(names: Sequence[str], columns: Sequence[str]) -> bool:
    if any(_number(name) is not None for name in names):
        return False
    if columns and not all(map(str.isdecimal, columns)):
        return True
    is_name = re.compile(r"[\w.:# -]{0,40}").fullmatch
    return named_sides(names) is not None and all(map(is_name, names))


def _chosen(
    path: Place, columns: Sequence[str], header: Sequence[str], width: int
) -> tuple[int, int]:
    names = {name: at for at, name in enumerate(header)}
    if len(columns) != 2:
        raise CorpusError(f"--columns: expected two columns such as 3,4, not {len(columns)}")
    positions = [names.get(name, int(name) - 1 if name.isdecimal() else -1) for name in columns]
    for name, position in zip(columns, positions, strict=True):
        if not 0 <= position < width:
            known = f"the names {', '.join(names)}" if names else f"1 to {width}"
            raise CorpusError(f"{path}: no column {name!r}; choose --columns among {known}")
    return positions[0], positions[1]


def _is_own(rows: Sequence[Sequence[str]]) -> bool:
    width = len(rows[0]) if rows else 0
    return (width == 3 or (width == 4 and _has_reasons(rows, (1, 2)))) and _are_numbers(rows, 0)


def _is_rated(rows: Sequence[Sequence[str]], texts: tuple[int, int]) -> bool:
    # ``adit rate`` adds a score, a probability and a reason or "". Other lines have no numbers.
    if not rows or max(texts) >= len(rows[0]) - 3 or all(row[-1] for row in rows):
        return False
    numbers = [[_number(cell) for cell in row[-3:]] for row in rows if row[-3] or not row[-1]]
    return all(
        score is not None and chance is not None and 0 <= chance <= 1 and reason is None
        for score, chance, reason in numbers
    )


def _guessed(path: Place, rows: Sequence[Sequence[str]], header: Sequence[str]) -> tuple[int, int]:
    width = len(rows[0]) if rows else 0
    texts = [at for at in range(width) if _is_text(rows, at)]
    if width == 2 and texts in ([], [0]):
        return 0, 1
    if len(texts) == 2:
        return texts[0], texts[1]
    looks = "its 2 columns look like an id and a sentence"
    if width != 2:
        looks = f"{len(texts)} of its {width} columns look like text"
    named = f" or their names ({', '.join(header)})" if header else ""
    raise CorpusError(
        f"{path}: {looks}; pass the numbers of the source and target columns{named}, such as "
        f"--columns {width - 1},{width} (of adit convert or rate)"
    )


def _is_text(rows: Sequence[Sequence[str]], column: int) -> bool:
    cells = [row[column] for row in rows]
    urls = sum(bool(addresses_in(cell)) and len(cell.split()) == 1 for cell in cells)
    is_other = 2 * urls >= len(cells) or _are_numbers(rows, column)
    return not is_other and recognition.contains_sentences(rows, column)


def _are_numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    return bool(rows) and all(_number(row[column]) is not None for row in rows)


def _has_reasons(rows: Sequence[Sequence[str]], texts: tuple[int, int]) -> bool:
    last = max(texts) + 1
    cells = {name for row in rows if len(row) > last for name in row[last].split(",")}
    return bool(cells) and cells <= {*FILTERS, "identical"}


def _read_lines(path: Place, columns: Columns) -> Iterator[FilePair]:
    for number, (line, problem) in enumerate(text_lines(path), 1):
        if number == 1 and columns.header:
            continue
        place = f"{path} line {number}"
        cells = [] if problem else line.split(columns.delimiter)
        yield _pair(place, cells, columns, problem, line)


def _read_csv(path: Place, columns: Columns) -> Iterator[FilePair]:
    problems: list[str] = []  # of the lines of a record, which may be blank within quotes

    def lines() -> Iterator[str]:
        for line, problem in text_lines(path):
            problems.extend({problem} - {"", BLANK})
            yield line + "\n"

    number = 0
    try:
        for number, cells in enumerate(recognition.divide(lines(), columns.delimiter), 1):
            problem = problems[0] if problems else "" if any(cells) else BLANK
            problems.clear()
            if number > 1 or not columns.header:
                yield _pair(f"{path} record {number}", cells, columns, problem)
    except csv.Error as error:
        raise CorpusError(
            f"{path} record {number + 1}: not CSV ({error}); close its quotes, and remove "
            "carriage returns in cells"
        ) from error


def _pair(
    place: str, cells: Sequence[str], columns: Columns, problem: str, raw: str | None = None
) -> FilePair:
    first, second = columns.texts
    texts = None
    if len(cells) > max(first, second) and len(cells) == (columns.count or len(cells)):
        texts = cells[first], cells[second]
    elif not problem:
        expected = columns.count or f"at least {max(first, second) + 1}"
        plural = "s" * (len(cells) != 1)
        problem = f"has {len(cells)} column{plural}, expected {expected}"
    positions = map(columns.others.get, _OTHER_NAMES)
    score, probability, corpus = (
        cells[at] if texts and at is not None and at < len(cells) else "" for at in positions
    )
    if score.strip() and _number(score) is None:
        problem = problem or f"score {score[:60]!r} is not a number"
    return FilePair(
        place=place,
        texts=texts,
        score=_number(score),
        probability=_number(probability),
        corpus=corpus,
        raw=raw,
        problem=problem,
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
