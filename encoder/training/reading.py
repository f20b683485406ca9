"""Text to train on; what is missing, damaged or malformed is a ValueError that names the place.

The last part of a file's name before its suffix is the language pair of parallel text:
``de-en.tsv.xz``, ``News.de-en.parquet``, and ``News.de-en.de`` beside ``News.de-en.en``, line by
line (Moses). Ordered text is ``.txt``, a sentence or turn a line, an empty line between documents
or dialogues. Labelled pairs are ``.tsv``: ``LABEL TAB premise TAB hypothesis``, or columns
``gold_label``, ``sentence1`` and ``sentence2`` that a header names. Either may be compressed
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
COLUMNS = ({"source", "target"}, {"source_text", "target_text"})  # the second: mine-corpus writes

_OF_LANGUAGE = re.compile(r"(?:.*\.)?([a-z]{2,3})\.txt(?:\.xz)?")
# In the files of SNLI and MultiNLI, and of MultiNLI for XNLI, which spells one label otherwise.
_HEADERS = (("gold_label", "sentence1", "sentence2"), ("label", "premise", "hypo"))
_SPELT = {"contradictory": "contradiction"}


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """Sentence pairs of one language pair, with the corpus that each comes from.

    ``excluded`` are the corpora that were there, too, and are left out.
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
        """Return whether it is of two languages."""
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
Rows = Iterable[tuple[str, str, str]]  # source, target and corpus; or a label and two sentences


def find_text(folder: Path, objective: type[ObjectiveOptions]) -> dict[str, Files]:
    """Find what an objective learns from, by language pair.

    Where there is no parallel text and it can do without, by language (``NAME.XX.txt``).
    """
    if objective.labelled:
        return {objective.name: files_of(folder, ".tsv")}
    paths = sorted(folder.glob("*"))
    named = {path: match[1] for path in paths if (match := _OF_LANGUAGE.fullmatch(path.name))}
    parallel = any(path.name.endswith((TSV, PARQUET)) for path in paths)
    if parallel or not (named and objective.alone):
        return find_parallel_text(folder)
    return {
        language: tuple(path for path, name in named.items() if name == language)
        for language in sorted(set(named.values()))
    }


def files_of(folder: Path, suffix: str) -> Files:
    """Return the files of a folder that end so, or so compressed."""
    paths = _listed(folder)
    found = tuple(path for path in paths if path.name.endswith((suffix, f"{suffix}.xz")))
    if not found:
        raise ValueError(f"{folder}: no {suffix} or {suffix}.xz file")
    return found


def _listed(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"{folder}: folder not found")
    return sorted(folder.iterdir())


def find_parallel_text(folder: Path) -> dict[str, Files]:
    """Find the files of each language pair in a folder; of a Moses pair, the source side."""
    found: dict[str, Files] = {}
    for path in _listed(folder):
        _, name, suffix = _parts(path)
        if suffix in (TSV, PARQUET) and not PAIR.fullmatch(name):
            raise ValueError(
                f"{path}: name lacks a language pair; rename it to XX-YY{suffix}, or move it"
            )
        if suffix in (TSV, PARQUET) or name.partition("-")[0] == suffix.removeprefix("."):
            found[name] = (*found.get(name, ()), path)
    if not found:
        raise ValueError(
            f"{folder}: contains no parallel text; expected files XX-YY{TSV}, XX-YY{PARQUET}, or "
            "XX-YY.XX with XX-YY.YY"
        )
    return dict(sorted(found.items()))


def read_text(name: str, files: Files, exclude: frozenset[str]) -> ParallelText:
    """Read what ``find_text`` found under a name."""
    if PAIR.fullmatch(name):
        return read_parallel_text(files, exclude=exclude)
    is_text = _OF_LANGUAGE.fullmatch(files[0].name)
    return (read_sentences if is_text else read_labelled)(name, files)


def read_parallel_text(files: Sequence[Path], *, exclude: frozenset[str]) -> ParallelText:
    """Read the files of one language pair; leave the corpora ``exclude`` out.

    Where a file does not name a pair's corpus, it is what stands before the language pair in the
    file's name, or else the language pair.
    """
    readers = {TSV: _read_tsv, PARQUET: _read_parquet}
    rows = [row for file in files for row in readers.get(_parts(file)[2], _read_moses)(file)]
    pairs = [row for row in rows if row[2] not in exclude]
    if not pairs:
        places = ", ".join(map(str, files))
        without = f" after excluding {', '.join(sorted(exclude))}" if exclude else ""
        raise ValueError(f"{places}: no sentence pairs left{without}")
    source, target, corpus = (list(column) for column in zip(*pairs, strict=True))
    excluded = exclude.intersection(row[2] for row in rows)
    name = _parts(files[0])[1]
    return ParallelText(name=name, source=source, target=target, corpus=corpus, excluded=excluded)


def _parts(path: Path) -> tuple[str, str, str]:
    """Split a file's name into corpus, language pair and suffix."""
    suffix = TSV if path.name.endswith(TSV) else path.suffix
    corpus, _, name = path.name.removesuffix(suffix).rpartition(".")
    return corpus or name, name, suffix


def _read_tsv(path: Path) -> Rows:
    """Read source, TAB, target, TAB, corpus."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise ValueError(
                f"{path}:{number}: {len(columns)} columns; expected source, target and corpus"
            )
        yield columns[0], columns[1], columns[2]


def _read_moses(path: Path) -> Rows:
    corpus, name, _ = _parts(path)
    other = path.with_suffix("." + name.partition("-")[2])
    sides = [read_lines(path), read_lines(other)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{path}: has {len(sides[0]):,} lines, but {other.name} has {len(sides[1]):,}; "
            "line i of one must translate line i of the other"
        )
    return ((source, target, corpus) for source, target in zip(*sides, strict=True))


def _read_parquet(path: Path) -> Rows:
    """Read columns source and target (or source_text, target_text), and corpus if there is one."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: is not a Parquet file, or is damaged ({reason})") from error
    there = set(table.column_names)
    wanted = next((names for names in COLUMNS if names <= there), None)
    if wanted is None:
        raise ValueError(
            f"{path}: has the columns {', '.join(table.column_names)}; expected source and target"
        )
    names = [*sorted(wanted), *({"corpus"} & there)]
    for name in names:
        column = table.column(name)
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise ValueError(f"{path}: column {name} is of type {column.type}; expected string")
        if column.null_count:
            raise ValueError(f"{path}: column {name} has {column.null_count} empty cells (null)")
    texts = [table.column(name).to_pylist() for name in names]
    return zip(*texts, *([[_parts(path)[0]] * len(table)] if len(texts) == 2 else []), strict=True)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file."""
    if not path.is_file():
        raise ValueError(f"{path}: is missing")
    return lines_of(path.read_bytes(), str(path))


def lines_of(data: bytes, name: str) -> list[str]:
    r"""Return the lines of a UTF-8 file, without a byte order mark, line ends or a CR before them.

    One whose name ends in ``.xz`` is decompressed. Only ``\n`` ends a line: U+2028, U+0085 and
    their like occur inside sentences. An end of line at the end of the file opens no further line.
    """
    if name.endswith(".xz"):
        try:
            data = lzma.decompress(data)
        except lzma.LZMAError as error:
            raise ValueError(f"{name}: not compressed with xz, or cut short ({error})") from error
    return split_lines(data, name)


def split_lines(data: bytes, name: str) -> list[str]:
    """Split a UTF-8 file that is not compressed, like ``lines_of``."""
    try:
        *lines, last = data.decode().removeprefix("\ufeff").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name} line {line}: not UTF-8 ({error.reason})") from error
    return [line.removesuffix("\r") for line in (*lines, *filter(None, [last]))]


def read_sentences(name: str, files: Files) -> ParallelText:
    """Read each line as a pair with itself, repeated ones once."""
    found = dict.fromkeys(line for path in files for line in read_lines(path) if line.strip())
    if not found:
        raise ValueError(f"{files[0].parent}: contains no sentences")
    return ParallelText(name=name, source=[*found], target=[*found], corpus=[name] * len(found))


def read_successors(name: str, files: Files) -> ParallelText:
    """Read each line of a document with the one after it; each second line once."""
    pairs: dict[str, str] = {}  # templates answer much, so that an answer stands once
    for path in files:
        for before, after in pairwise(read_lines(path)):
            if before.strip() and after.strip() and before != after:
                pairs.setdefault(after, before)
    if not pairs:
        raise ValueError(f"{files[0].parent}: contains no two consecutive lines")
    source = list(pairs.values())
    return ParallelText(name=name, source=source, target=[*pairs], corpus=[name] * len(pairs))


def read_labelled(name: str, files: Files) -> ParallelText:
    """Read labelled pairs; the label of each stands where parallel text has its corpus."""
    rows = [row for path in files for row in read_inference(path)]
    labels, first, second = ([row[column] for row in rows] for column in range(3))
    if set(labels) != set(INFERENCE_LABELS):
        raise ValueError(
            f"{files[0].parent}: pairs have the labels {sorted(set(labels))}; all three are needed"
        )
    return ParallelText(name=name, source=first, target=second, corpus=labels)


def read_inference(path: Path) -> list[tuple[str, str, str]]:
    """Read label, premise and hypothesis: columns that a header names, or else the first three."""
    rows = [line.split("\t") for line in read_lines(path)]
    for names in _HEADERS:
        if rows and set(names) <= set(rows[0]):
            columns = [rows[0].index(name) for name in names]
            return labelled(path, columns, enumerate(rows[1:], start=2))
    return labelled(path, range(3), enumerate(rows, start=1))


def labelled(
    path: Path, columns: Sequence[int], rows: Iterable[tuple[int, Sequence[str]]]
) -> list[tuple[str, str, str]]:
    """Return label, premise and hypothesis of numbered lines; see ``read_inference``.

    Pairs without a label that their judges agreed on (``-``) are left out.
    """
    kept = []
    for number, row in rows:
        if len(row) <= max(columns):
            raise ValueError(
                f"{path}:{number}: {len(row)} columns; expected a label and two sentences"
            )
        label, first, second = (row[column] for column in columns)
        label = _SPELT.get(label, label)
        if label not in (*INFERENCE_LABELS, "-"):
            expected = ", ".join(INFERENCE_LABELS)
            raise ValueError(f"{path}:{number}: label {label[:40]!r}; expected {expected}")
        if label != "-":
            kept.append((label, first, second))
    return kept
