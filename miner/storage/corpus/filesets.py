"""Corpora of many files: read one after the other, as if joined, or a corpus for each language."""

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
from miner.storage.corpus.formats import FORMAT_BY_SUFFIX, format_of, json_object
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.reader import open_corpus, parquet_file
from miner.storage.corpus.records import BATCH_ROWS, CorpusError, Records, Rejection
from miner.storage.places import Place, RemotePath
from miner.storage.streams import split_compression

LANGUAGE = "language"  # the column
_PLAIN = (".txt", *FORMAT_BY_SUFFIX)
SHOWN = 5  # names in a line

# Files that come with a corpus, and are none of it.
NON_CORPUS_FILES = re.compile(
    r"(readme|licen[cs]e|copying|notice)(\.(md|txt|rst|html))?", re.IGNORECASE
)


NamedPlace = tuple[str, Place]
"""A file and its name in the corpus: its path below the corpus's folder."""


def may_hold_corpus(entry: Place) -> bool:
    """Return whether a file or folder is neither hidden nor about the corpus."""
    return not (entry.name.startswith(".") or NON_CORPUS_FILES.fullmatch(entry.name))


def folder_files(folder: Place) -> tuple[list[NamedPlace], list[str]]:
    """List the corpus files in a folder at any depth, and all other names.

    Files come folder by folder, entries in the order of their names' code points. A link to a
    folder that contains it leads nowhere.

    Raises:
        CorpusError: A folder may not be listed.
    """
    files: list[NamedPlace] = []
    others: list[str] = []
    _list_files(folder, "", frozenset(), files, others)
    return files, others


def _list_files(
    folder: Place, prefix: str, above: frozenset[str], files: list[NamedPlace], others: list[str]
) -> None:
    above |= {_real(folder)}
    try:
        entries: list[Place] = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except PermissionError:
        raise CorpusError(f"{folder}: cannot be listed; check its permissions") from None
    for entry in entries:
        name = prefix + entry.name.encode(errors="backslashreplace").decode()
        is_folder = entry.is_dir()
        if not may_hold_corpus(entry):
            others.append(name + "/" * is_folder)
        elif is_folder and _real(entry) not in above:
            _list_files(entry, f"{name}/", above, files, others)
        elif entry.is_file():
            files.append((name, entry))
        else:
            others.append(name + "/" * is_folder)


def _real(folder: Place) -> str:
    return str(folder) if isinstance(folder, RemotePath) else str(folder.resolve())


def describe_folder(folder: Place) -> str:
    """Return a line that names the read and the skipped files of a folder.

    Raises:
        CorpusError: The folder contains no file of a corpus.
    """
    files, others = _corpus_of(folder)
    line = f"{folder}: reads {summarise_names([name for name, _ in files])} as sentences"
    return line + (f"; skips {summarise_names(others)}" if others else "")


def _corpus_of(folder: Place) -> tuple[list[NamedPlace], list[str]]:
    files, others = folder_files(folder)
    if not files:
        only = f", only {summarise_names(others)}" if others else ""
        raise CorpusError(f"{folder}: folder contains no corpus files{only}")
    return files, others


def summarise_names(names: Sequence[str]) -> str:
    """Return how many names there are, and the first of them."""
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return f"{len(names):,} ({shown})"


def corpus_files(path: Place, *, input_format: str = "auto") -> list[NamedPlace]:
    """Return ``path``, or the files in it at any depth, with their names.

    Files come in the order of the ids of their first records, shorter ids first, then of their
    names. So records with ids of their own come in the same order whatever their files are called.

    Raises:
        CorpusError: ``path`` is a folder that contains no file of a corpus.
    """
    if not path.is_dir():
        return [(path.name, path)]

    def order(file: NamedPlace) -> tuple[bool, int, str, str]:
        name, place = file
        try:
            first = next(open_corpus(place, input_format=input_format)).ids()[0]
        except CorpusError:  # reported by whoever reads it
            return True, 0, "", name
        return False, len(first), first, name

    return sorted(_corpus_of(path)[0], key=order)


class CorpusReader:
    """Iterates over the records of files as over those of one; rows count through all of them.

    Of several files, one that cannot be read, or not to its end, is a rejected record from there
    on; a single one raises. ``starts`` are the rows at which the ``files``, by their ``names``,
    begin, as far as was read. ``escapes`` are the levels of HTML entities that texts have.
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
        how = self.input_format
        for name, file in zip(self.names, self.files, strict=True):
            self.starts.append(row)
            try:
                for records in open_corpus(file, input_format=how, first_row=row, name=name):
                    yield records
                    row = records.first_row + len(records)
            except CorpusError as error:
                if len(self.files) == 1:
                    raise
                why, found = {0: Rejection.UNREADABLE}, [os.fsencode(str(error))]
                yield Records.checked(row, ([""], [""], [""]), why, found.__getitem__)
                row += 1


def languages_of(folder: Place) -> tuple[dict[str, Place], list[Place]]:
    """Return the corpus of each language in a folder, by name, and what else is there.

    A corpus is a file or a folder whose name begins or ends with its ISO 639 code: ``de``,
    ``de.txt``, ``pt-BR.jsonl.gz``, ``de.news.txt``, ``news.de``, ``news.de.zst``. A CorpusError
    says that two of them are of the same language, or one is of two.
    """
    found: dict[str, Place] = {}
    by_tag: dict[str, Place] = {}
    left_out: list[Place] = []
    entries: list[Place] = sorted(folder.iterdir(), key=lambda entry: entry.name)
    for entry in entries:
        language = _language(entry) if may_hold_corpus(entry) else None
        if language is None:
            left_out.append(entry)
        elif (other := by_tag.setdefault(parse_language(language), entry)) is not entry:
            raise CorpusError(
                f"{entry}: a second corpus of {language} next to {other.name}; put the files of a "
                f"language into one folder {folder / language}"
            )
        else:
            found[language] = entry
    return found, left_out


def describe_languages(folder: Place) -> str:
    """Return a line that says which corpora of a folder are read, and what is left out."""
    found, left_out = languages_of(folder)
    line = f"{folder}: reads {', '.join(entry.name for entry in found.values()) or 'nothing'}"
    names = [entry.name for entry in left_out]
    return line + (f"; skips {summarise_names(names)}" if names else "")


def _language(entry: Place) -> str | None:
    """Return the language that a name begins or ends with; two letters count before three."""
    name = entry.name
    if not entry.is_dir():
        suffix, compression = split_compression(entry)
        name = name[: len(name) - len(compression)]
        name = name.removesuffix(suffix) if suffix in _PLAIN else name
    parts = name.split(".")
    codes = {part for part in (parts[0], parts[-1]) if is_code(part)}
    codes = {code for code in codes if len(re.split("[-_]", code)[0]) == 2} or codes
    if len(codes) > 1:
        one, other = sorted(codes)
        raise CorpusError(
            f"{entry}: could be {one} or {other}; rename it to one language, such as {one}.txt"
        )
    return next(iter(codes), None)


def language_pairs(languages: Sequence[str], wanted: str) -> list[tuple[str, str]]:
    """Return the pairs of languages named in a list such as ``de-en,fr-en``, or ``all`` of them.

    All are each once, both languages in the order of the alphabet. A ValueError names what is no
    pair of two of these languages, or is named twice.
    """
    if wanted == "all":
        return list(combinations(sorted(languages), 2))
    known = {f"{one}-{other}": (one, other) for one, other in permutations(languages, 2)}
    by_tags = {tuple(map(parse_language, pair)): pair for pair in known.values()}
    pairs: list[tuple[str, str]] = []
    for name in wanted.split(","):
        pair = known.get(name) or next(filter(None, map(by_tags.get, _parsed_pairs(name))), None)
        if pair is None:
            raise ValueError(
                f"--pairs {name}: is not a pair of {', '.join(sorted(languages))}; write pairs as "
                "de-en,fr-en, or all"
            )
        if {*pair} in [{*other} for other in pairs]:
            raise ValueError(f"--pairs {name}: is given twice; pass each language pair once")
        pairs.append(pair)
    return pairs


def _parsed_pairs(name: str) -> Iterator[tuple[str, ...]]:
    """Yield both tags in a name such as ``pt_br-eng``, for each way to part it."""
    for hyphen in re.finditer("-", name):
        with suppress(ValueError):
            yield parse_language(name[: hyphen.start()]), parse_language(name[hyphen.end() :])


def split_languages(corpus: Place, draft: Draft, *, input_format: str = "auto") -> dict[str, int]:
    """Write the records of each language of a corpus as ``XX.jsonl``; return how many of each.

    The corpus is JSON lines or Parquet with a field ``language`` beside ``text``, ``id`` and
    ``doc``. A record without an ``id`` gets its number in the corpus, from 1. Those without a
    language are left out, and counted as of ``""``; a CorpusError says that all are.
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
            wanted = [name for name in ("id", "doc", "text", LANGUAGE) if name in file.schema.names]
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=wanted):
                yield from batch.to_pylist()
    else:
        for lines in line_batches(corpus):
            yield from map(json_object, decode_lines(lines)[0])
