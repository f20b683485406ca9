"""Corpora of many files, which are joined or sorted by language."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import combinations, permutations
from typing import IO

from miner.language_codes import parse_language
from miner.languages import is_code
from miner.storage.artefacts import Draft
from miner.storage.corpus.entities import unescape_records
from miner.storage.corpus.formats import FORMAT_BY_SUFFIX, format_of
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.reader import open_corpus, parquet_file, record_columns
from miner.storage.corpus.records import BATCH_ROWS, CorpusError, Records, Rejection
from miner.storage.places import Place
from miner.storage.recognition import json_object
from miner.storage.streams import split_compression
from miner.wording import counted

LANGUAGE = "language"  # the column with a record's language
_DATA_SUFFIXES = (".txt", *FORMAT_BY_SUFFIX)
SHOWN = 5  # names per message

# Files that come with a corpus but contain no sentences of it.
NON_CORPUS_FILES = re.compile(r"(?i)(readme|licen[cs]e|copying|notice)(\.(md|txt|rst|html))?")

NamedPlace = tuple[str, Place]
"""A file and its name in the corpus: its path below the corpus's folder."""


def may_hold_corpus(entry: Place) -> bool:
    """Return whether a name is not hidden, nor of a README, licence or notice."""
    return not (entry.name.startswith(".") or NON_CORPUS_FILES.fullmatch(entry.name))


def folder_files(folder: Place) -> tuple[list[NamedPlace], list[str]]:
    """List the corpus files in a folder at any depth, and all other paths.

    A file is a pair of its path below ``folder`` and its place. Other paths are of entries that
    fail ``may_hold_corpus``, of links to a folder that contains them, and of broken links and
    devices. A folder's path ends in ``/``. Each folder is in the order of code points. A missing
    remote one is empty. Without permission to list a folder or to see its files, CorpusError is
    raised. A local ``folder`` that is missing or a file, or a remote error, raises OSError.
    """
    files: list[NamedPlace] = []
    others: list[str] = []

    def visit(folder: Place, prefix: str, above: frozenset[Place]) -> None:
        above |= {folder.resolve()}
        try:
            entries: list[Place] = sorted(folder.iterdir(), key=lambda entry: entry.name)
            are_folders = [entry.is_dir() for entry in entries]
        except PermissionError:
            raise CorpusError(f"{folder}: cannot be listed; check its permissions") from None
        for entry, is_folder in zip(entries, are_folders, strict=True):
            name = prefix + entry.name.encode(errors="backslashreplace").decode()
            is_data = may_hold_corpus(entry)
            if is_data and is_folder and entry.resolve() not in above:
                visit(entry, f"{name}/", above)
            elif is_data and entry.is_file():
                files.append((name, entry))
            else:
                others.append(name + "/" * is_folder)

    visit(folder, "", frozenset())
    return files, others


def describe_folder(folder: Place) -> str:
    """Return a line with the first files of a folder that are read or skipped.

    A folder without a file of a corpus raises CorpusError. Other errors are as in ``folder_files``.
    """
    files, others = _list_corpus(folder)
    line = f"{folder}: reads {summarise_names([name for name, _ in files])} as sentences"
    return line + (f"; skips {summarise_names(others, 'entries')}" if others else "")


def _list_corpus(folder: Place) -> tuple[list[NamedPlace], list[str]]:
    files, others = folder_files(folder)
    if not files:
        others_note = f", only {summarise_names(others, 'entries')}" if others else ""
        remedy = "put text, JSON lines or Parquet there"
        raise CorpusError(f"{folder}: folder contains no corpus files{others_note}; {remedy}")
    return files, others


def summarise_names(names: Sequence[str], unit: str = "files") -> str:
    """Count names, and list at most five, as ``6 files (a, b, c, d, e, ...)``."""
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return f"{counted(len(names), unit)} ({shown})"


def corpus_files(path: Place, *, input_format: str = "auto") -> list[NamedPlace]:
    """Return pairs of name and place of the files of the corpus at ``path``.

    A path that is not a folder is returned unchecked. Files at any depth in a folder, named by
    their paths below it, are sorted by the id of the first record (1 without an id), shorter ids
    first, then by name. Files that cannot be opened as a corpus are last. A folder without a file
    of a corpus raises CorpusError. Other errors of ``folder_files`` and ``open_corpus`` are raised.
    """
    if not path.is_dir():
        return [(path.name, path)]

    def order(file: NamedPlace) -> tuple[bool, int, str, str]:
        name, place = file
        try:
            first = next(open_corpus(place, input_format=input_format)).ids()[0]
        except CorpusError:  # reported when the file is read
            return True, 0, "", name
        return False, len(first), first, name

    return sorted(_list_corpus(path)[0], key=order)


class CorpusReader:
    """An iterable over the records of files, as if they were one file.

    Pairs of a name and a place are passed, and are in ``names`` and ``files``. ``starts`` are the
    first rows of files read so far. ``input_format`` is as in ``open_corpus``. Iteration yields
    ``Records`` in batches, with ``escapes`` levels of entities replaced, and raises errors of
    ``open_corpus``. If one of several files cannot be read to its end, no CorpusError is raised,
    and one rejected record stands for the rest.
    """

    def __init__(
        self, files: Sequence[NamedPlace], *, input_format: str = "auto", escapes: int = 0
    ) -> None:
        self.names = [name for name, _ in files]
        self.files = [file for _, file in files]
        self.input_format, self.escapes = input_format, escapes
        self.starts: list[int] = []

    def __iter__(self) -> Iterator[Records]:
        return unescape_records(self._records(), self.escapes)

    def _records(self) -> Iterator[Records]:
        self.starts.clear()
        row = 0
        kind = self.input_format
        for name, file in zip(self.names, self.files, strict=True):
            self.starts.append(row)
            try:
                for records in open_corpus(file, input_format=kind, first_row=row, name=name):
                    yield records
                    row = records.first_row + len(records)
            except CorpusError as error:
                if len(self.files) == 1:
                    raise
                why, messages = {0: Rejection.UNREADABLE}, [os.fsencode(str(error))]
                yield Records.from_columns(row, ([""], [""], [""]), why, messages.__getitem__)
                row += 1


def languages_of(folder: Place) -> tuple[dict[str, Place], list[Place]]:
    """Return the corpora in a folder by language, and all other entries.

    Both are in the order of names. A corpus is a file or folder that ``may_hold_corpus``. Its name,
    without suffixes of format and compression, begins or ends with a code (``is_code``), divided by
    a dot: ``pt-BR.jsonl.gz``, ``de.news.txt``, ``news.de.zst``. The key is the code as written. A
    code with three letters does not count next to one with two. Errors of ``iterdir`` are raised.

    Raises:
        CorpusError: Two corpora have the same language, or two different codes of one name count.
    """
    corpora: dict[str, Place] = {}
    by_tag: dict[str, Place] = {}
    skipped: list[Place] = []
    entries: list[Place] = sorted(folder.iterdir(), key=lambda entry: entry.name)
    for entry in entries:
        language = _language(entry) if may_hold_corpus(entry) else None
        if language is None:
            skipped.append(entry)
        elif (first := by_tag.setdefault(parse_language(language), entry)) is not entry:
            raise CorpusError(
                f"{entry}: a second corpus of {language} next to {first.name}; put the files of a "
                f"language into one folder {folder / language}"
            )
        else:
            corpora[language] = entry
    return corpora, skipped


def describe_languages(folder: Place) -> str:
    """Describe ``languages_of`` a folder in one line, with its errors."""
    corpora, skipped = languages_of(folder)
    line = f"{folder}: reads {', '.join(entry.name for entry in corpora.values()) or 'nothing'}"
    names = [entry.name for entry in skipped]
    return line + (f"; skips {summarise_names(names, 'entries')}" if names else "")


def _language(entry: Place) -> str | None:
    name = entry.name
    if not entry.is_dir():
        suffix, compression = split_compression(entry)
        name = name[: len(name) - len(compression)]
        name = name.removesuffix(suffix) if suffix in _DATA_SUFFIXES else name
    parts = name.split(".")
    codes = {part for part in (parts[0], parts[-1]) if is_code(part)}
    codes = {code for code in codes if len(re.split("[-_]", code)[0]) == 2} or codes
    if len(codes) > 1:
        first, second = sorted(codes)
        raise CorpusError(
            f"{entry}: name has the codes of two languages, {first} and {second}; keep one"
        )
    return next(iter(codes), None)


def language_pairs(languages: Sequence[str], wanted: str) -> list[tuple[str, str]]:
    """Return the pairs of languages of a list such as ``de-en,fr-en``.

    They are in its order. ``all`` returns each pair of ``languages`` once, in alphabetical order.
    Other codes, such as ``deu``, are accepted. Results have the codes of ``languages``.

    Raises:
        ValueError: An item is not a pair of two of the languages, or repeats one in any order.
    """
    if wanted == "all":
        return list(combinations(sorted(languages), 2))
    names = {f"{one}-{other}": (one, other) for one, other in permutations(languages, 2)}
    by_tags = {tuple(map(parse_language, pair)): pair for pair in names.values()}
    pairs: list[tuple[str, str]] = []
    for name in wanted.split(","):
        pair = names.get(name) or next(filter(None, map(by_tags.get, _parse_pairs(name))), None)
        if pair is None:
            raise ValueError(
                f"--pairs {name!r}: is not a pair of {', '.join(sorted(languages))}; write pairs "
                "as de-en,fr-en, or all"
            )
        if {*pair} in [{*other} for other in pairs]:
            raise ValueError(f"--pairs {name}: is given twice; pass each language pair once")
        pairs.append(pair)
    return pairs


def _parse_pairs(name: str) -> Iterator[tuple[str, ...]]:
    """Yield both tags of a name such as ``pt_br-eng``, for each hyphen."""
    for hyphen in re.finditer("-", name):
        with suppress(ValueError):
            yield parse_language(name[: hyphen.start()]), parse_language(name[hyphen.end() :])


def split_languages(corpus: Place, draft: Draft, *, input_format: str = "auto") -> dict[str, int]:
    """Write the records of each language to a draft, and count them.

    The corpus is Parquet or else JSON lines, with a field ``language``. ``TAG.jsonl`` gets the
    fields ``text``, ``id`` (by default the record's number in the corpus, from 1) and ``doc``. The
    result has counts by BCP 47 tag. Other records and lines, even blank ones, are skipped, and
    counted under "". Unreachable remote corpora and failed writes raise OSError.

    Raises:
        CorpusError: No record has a known language, or the corpus cannot be read.
    """
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        files: dict[str, IO[bytes]] = {}
        for number, record in enumerate(_records(corpus, input_format), 1):
            code = record.get(LANGUAGE)
            if not isinstance(code, str) or not is_code(code):
                counts[""] += 1
                continue
            language = parse_language(code)
            if language not in files:
                path = stack.enter_context(draft.file(f"{language}.jsonl"))
                files[language] = stack.enter_context(path.open("wb"))
            kept = {name: record.get(name) for name in ("id", "doc", "text")}
            kept["id"] = number if kept["id"] is None else kept["id"]
            files[language].write((json.dumps(kept) + "\n").encode())
            counts[language] += 1
    if not files:
        raise CorpusError(
            f"{corpus}: no record has a field '{LANGUAGE}' with an ISO 639 code such as de; pass "
            "a folder of files such as de.txt, or a corpus with that field"
        )
    return dict(counts)


def _records(corpus: Place, input_format: str) -> Iterator[Mapping[str, object]]:
    if format_of(corpus, input_format) == "parquet":
        with parquet_file(corpus) as file:
            fields = record_columns(corpus, file.schema_arrow)
            fields += [LANGUAGE] if LANGUAGE in file.schema.names else []
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=fields):
                yield from batch.to_pylist()
    else:
        for lines in line_batches(corpus):
            yield from map(json_object, decode_lines(lines)[0])
