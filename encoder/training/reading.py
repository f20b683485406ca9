"""Readers of training text, whose errors name the file and line.

The last part of a file's name before its suffix is the language pair of parallel text:
``de-en.tsv.xz``, ``News.de-en.parquet``, or ``News.de-en.de`` with ``News.de-en.en``, line by line
(Moses). Ordered text is ``.txt``, with a sentence or turn per line and an empty line between
documents or dialogues. Labelled pairs are ``.tsv``: ``LABEL TAB premise TAB hypothesis``, or
columns ``gold_label``, ``sentence1`` and ``sentence2`` under a header. Each may be compressed
(``.xz``).
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.training.options import INFERENCE_LABELS, ObjectiveOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAIR = re.compile(r"[^-]+-[^-]+")
TSV, PARQUET = ".tsv.xz", ".parquet"
COLUMNS = ({"source", "target"}, {"source_text", "target_text"})  # the latter of 'adit mine'

_LANGUAGE = re.compile(r"(?:.*\.)?([a-z]{2,3})\.txt(?:\.xz)?")
# Of SNLI and MultiNLI, and of MultiNLI for XNLI, which spells one label differently.
_HEADERS = (("gold_label", "sentence1", "sentence2"), ("label", "premise", "hypo"))
_LABEL_SPELLINGS = {"contradictory": "contradiction"}


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """Sentence pairs of one language pair, or of other text.

    ``corpus`` has the corpus or the label of each pair, and ``excluded`` the corpora that were
    skipped.
    """

    name: str
    source: list[str]
    target: list[str]
    corpus: list[str]
    excluded: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.source)

    @property
    def is_parallel(self) -> bool:
        """Whether the text has two languages."""
        return bool(PAIR.fullmatch(self.name))

    def take(self, rows: NDArray[np.int64]) -> ParallelText:
        """Return the pairs at ``rows``, in that order."""
        columns = (self.source, self.target, self.corpus)
        source, target, corpus = ([column[row] for row in rows] for column in columns)
        return ParallelText(name=self.name, source=source, target=target, corpus=corpus)

    def digest(self) -> str:
        """Return the first digits of a hash of all pairs in their order."""
        digest = hashlib.sha256()
        for column in (self.source, self.target, self.corpus):
            digest.update("\n".join(column).encode())
        return digest.hexdigest()[:12]


Texts = Sequence[ParallelText]
Files = tuple[Path, ...]
Rows = Iterable[tuple[str, str, str]]  # source, target and corpus


def find_text(folder: Path, objective: type[ObjectiveOptions]) -> dict[str, Files]:
    """Find the text of an objective, by language pair.

    Without parallel text, the files of an objective that can use other text are listed by language
    (``NAME.XX.txt``).
    """
    if objective.labelled:
        return {objective.name: find_files(folder, ".tsv")}
    paths = sorted(folder.glob("*"))
    languages = {path: match[1] for path in paths if (match := _LANGUAGE.fullmatch(path.name))}
    has_pairs = any(path.name.endswith((TSV, PARQUET)) for path in paths)
    if has_pairs or not (languages and objective.alone):
        return find_parallel_text(folder)
    return {
        language: tuple(path for path, name in languages.items() if name == language)
        for language in sorted(set(languages.values()))
    }


def find_files(folder: Path, suffix: str) -> Files:
    """List the files of a folder with a suffix, or with it and ``.xz``.

    Raises:
        ValueError: There are none.
    """
    paths = _list_files(folder)
    matches = tuple(path for path in paths if path.name.endswith((suffix, f"{suffix}.xz")))
    if not matches:
        raise ValueError(f"{folder}: no {suffix} or {suffix}.xz file")
    return matches


def _list_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"{folder}: folder not found")
    return sorted(folder.iterdir())


def find_parallel_text(folder: Path) -> dict[str, Files]:
    """Find the files of each language pair in a folder.

    For a Moses pair, it is the file of the source side.

    Raises:
        ValueError: The folder has no parallel text, or a file without a language pair in its name.
    """
    files: dict[str, Files] = {}
    for path in _list_files(folder):
        _, name, suffix = _split(path)
        if suffix in (TSV, PARQUET) and not PAIR.fullmatch(name):
            raise ValueError(
                f"{path}: name lacks a language pair; rename it to XX-YY{suffix}, or move it"
            )
        if suffix in (TSV, PARQUET) or name.partition("-")[0] == suffix.removeprefix("."):
            files[name] = (*files.get(name, ()), path)
    if not files:
        raise ValueError(
            f"{folder}: contains no parallel text; expected files XX-YY{TSV}, XX-YY{PARQUET}, or "
            "XX-YY.XX with XX-YY.YY"
        )
    return dict(sorted(files.items()))


def read_text(name: str, files: Files, exclude: frozenset[str]) -> ParallelText:
    """Read the files of one name of ``find_text``."""
    if PAIR.fullmatch(name):
        return read_parallel_text(files, exclude=exclude)
    is_text = _LANGUAGE.fullmatch(files[0].name)
    return (read_sentences if is_text else read_labelled)(name, files)


def read_parallel_text(files: Sequence[Path], *, exclude: frozenset[str]) -> ParallelText:
    """Read the files of one language pair, without the corpora in ``exclude``.

    If a file has no column of corpora, its corpus is the part of its name before the language pair,
    or else the language pair.

    Raises:
        ValueError: A file is malformed, or no pairs remain.
    """
    readers = {TSV: _read_tsv, PARQUET: _read_parquet}
    rows = [row for file in files for row in readers.get(_split(file)[2], _read_moses)(file)]
    pairs = [row for row in rows if row[2] not in exclude]
    if not pairs:
        names_of_files = ", ".join(map(str, files))
        exclusion = f" after excluding {', '.join(sorted(exclude))}" if exclude else ""
        raise ValueError(f"{names_of_files}: no sentence pairs left{exclusion}")
    source, target, corpus = (list(column) for column in zip(*pairs, strict=True))
    excluded = exclude.intersection(row[2] for row in rows)
    name = _split(files[0])[1]
    return ParallelText(name=name, source=source, target=target, corpus=corpus, excluded=excluded)


def _split(path: Path) -> tuple[str, str, str]:
    """Split a file's name into corpus, language pair and suffix."""
    suffix = TSV if path.name.endswith(TSV) else path.suffix
    corpus, _, name = path.name.removesuffix(suffix).rpartition(".")
    return corpus or name, name, suffix


def _read_tsv(path: Path) -> Rows:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise ValueError(
                f"{path}:{number}: {len(columns)} columns; expected source, target and corpus"
            )
        yield columns[0], columns[1], columns[2]


def _read_moses(path: Path) -> Rows:
    corpus, name, _ = _split(path)
    target_path = path.with_suffix("." + name.partition("-")[2])
    sides = [read_lines(path), read_lines(target_path)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{path}: has {len(sides[0]):,} lines, but {target_path.name} has {len(sides[1]):,}; "
            "line i of one must translate line i of the other"
        )
    return ((source, target, corpus) for source, target in zip(*sides, strict=True))


def _read_parquet(path: Path) -> Rows:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: is not a Parquet file, or is damaged ({reason})") from error
    present = set(table.column_names)
    text_columns = next((names for names in COLUMNS if names <= present), None)
    if text_columns is None:
        raise ValueError(
            f"{path}: has the columns {', '.join(table.column_names)}; expected source and target"
        )
    names = [*sorted(text_columns), *({"corpus"} & present)]
    for name in names:
        column = table.column(name)
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise ValueError(f"{path}: column {name} is of type {column.type}; expected string")
        if column.null_count:
            raise ValueError(f"{path}: column {name} has {column.null_count} empty cells (null)")
    texts = [table.column(name).to_pylist() for name in names]
    return zip(*texts, *([[_split(path)[0]] * len(table)] if len(texts) == 2 else []), strict=True)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file, decompressed if its suffix is ``.xz``.

    Only LF, after a CR or not, ends a line, because U+2028, U+0085 and others occur inside
    sentences. A byte order mark and line ends are removed, and the last line may lack an end.

    Raises:
        ValueError: The file is missing, not UTF-8, or its compressed data are damaged.
    """
    if not path.is_file():
        raise ValueError(f"{path}: is missing")
    data = path.read_bytes()
    if path.suffix == ".xz":
        try:
            data = lzma.decompress(data)
        except lzma.LZMAError as error:
            raise ValueError(
                f"{path}: not compressed with xz, or cut short ({error}); rename it without .xz, "
                "or fetch it again"
            ) from error
    return split_lines(data, str(path))


def split_lines(data: bytes, name: str) -> list[str]:
    """Split an uncompressed UTF-8 file into lines, like ``read_lines``.

    Raises:
        ValueError: The file is not UTF-8.
    """
    try:
        *lines, last = data.decode().removeprefix("\ufeff").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name} line {line}: not UTF-8 ({error.reason})") from error
    return [line.removesuffix("\r") for line in (*lines, *filter(None, [last]))]


def read_sentences(name: str, files: Files) -> ParallelText:
    """Read each distinct line as a pair with itself.

    Raises:
        ValueError: The files have no sentences.
    """
    lines = dict.fromkeys(line for path in files for line in read_lines(path) if line.strip())
    if not lines:
        raise ValueError(f"{files[0].parent}: contains no sentences")
    return ParallelText(name=name, source=[*lines], target=[*lines], corpus=[name] * len(lines))


def read_successors(name: str, files: Files) -> ParallelText:
    """Read each line of a document with the next line.

    Raises:
        ValueError: The files have no two consecutive lines.
    """
    pairs: dict[str, str] = {}  # each answer once, because templates recur
    for path in files:
        for before, after in pairwise(read_lines(path)):
            if before.strip() and after.strip() and before != after:
                pairs.setdefault(after, before)
    if not pairs:
        raise ValueError(f"{files[0].parent}: contains no two consecutive lines")
    source = list(pairs.values())
    return ParallelText(name=name, source=source, target=[*pairs], corpus=[name] * len(pairs))


def read_labelled(name: str, files: Files) -> ParallelText:
    """Read labelled pairs, with their labels as ``corpus``.

    Raises:
        ValueError: A line is malformed, or one of the three labels does not occur.
    """
    rows = [row for path in files for row in read_inference(path)]
    labels, first, second = ([row[column] for row in rows] for column in range(3))
    if set(labels) != set(INFERENCE_LABELS):
        raise ValueError(
            f"{files[0].parent}: pairs have the labels {sorted(set(labels))}; all three are needed"
        )
    return ParallelText(name=name, source=first, target=second, corpus=labels)


def read_inference(path: Path) -> list[tuple[str, str, str]]:
    """Read label, premise and hypothesis, by a header or in this order."""
    rows = [line.split("\t") for line in read_lines(path)]
    for names in _HEADERS:
        if rows and set(names) <= set(rows[0]):
            columns = [rows[0].index(name) for name in names]
            return parse_labelled(path, columns, enumerate(rows[1:], start=2))
    return parse_labelled(path, range(3), enumerate(rows, start=1))


def parse_labelled(
    path: Path, columns: Sequence[int], rows: Iterable[tuple[int, Sequence[str]]]
) -> list[tuple[str, str, str]]:
    """Select label, premise and hypothesis of numbered lines.

    Pairs without an agreed label (``-``) are skipped.

    Raises:
        ValueError: A line has too few columns, or an unknown label.
    """
    labelled_pairs = []
    for number, row in rows:
        if len(row) <= max(columns):
            raise ValueError(
                f"{path}:{number}: {len(row)} columns; expected a label and two sentences"
            )
        label, first, second = (row[column] for column in columns)
        label = _LABEL_SPELLINGS.get(label, label)
        if label not in (*INFERENCE_LABELS, "-"):
            expected = ", ".join(INFERENCE_LABELS)
            raise ValueError(f"{path}:{number}: label {label[:40]!r}; expected {expected}")
        if label != "-":
            labelled_pairs.append((label, first, second))
    return labelled_pairs
