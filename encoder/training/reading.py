"""Readers of training text, whose errors name the file and line.

The last part of a file's name before its suffix is the language pair of parallel text, in any of
``SUFFIXES`` (``de-en.tsv.xz``, ``News.de-en.parquet``), or line by line in two files (Moses:
``News.de-en.de`` with ``News.de-en.en``). A ``.tsv`` has source, target and optionally corpus.
Ordered text is ``.txt``, with a sentence or turn per line and an empty line between documents or
dialogues. Labelled pairs are ``.tsv``: ``LABEL TAB premise TAB hypothesis``, or columns
``gold_label``, ``sentence1`` and ``sentence2`` under a header. All but Parquet may be compressed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.training.options import INFERENCE_LABELS, ObjectiveOptions
from miner.storage.streams import check_directory, read_lines, split_compression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAIR = re.compile(r"[^-]+-[^-]+")
SUFFIXES = (".tsv", ".parquet", ".jsonl", ".tmx")  # of parallel text in one file

_LANGUAGE = re.compile(r"(?:.*\.)?([a-z]{2,3})\.txt(?:\.[a-z0-9]+)?")
# Of SNLI and MultiNLI, and of MultiNLI for XNLI, which spells one label differently.
_HEADERS = (("gold_label", "sentence1", "sentence2"), ("label", "premise", "hypo"))
_LABEL_SPELLINGS = {"contradictory": "contradiction"}


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """The sentence pairs of one language pair, or other text for training.

    ``name`` is the language pair (``de-en``) or another name. ``corpus`` has each pair's corpus or
    label, and ``excluded`` the corpora that were skipped.
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
        """Whether the name has the form of a language pair (``de-en``)."""
        return bool(PAIR.fullmatch(self.name))

    def take(self, rows: NDArray[np.int64]) -> ParallelText:
        """Return the pairs at ``rows``, in that order, without ``excluded``."""
        columns = (self.source, self.target, self.corpus)
        source, target, corpus = ([column[row] for row in rows] for column in columns)
        return ParallelText(name=self.name, source=source, target=target, corpus=corpus)

    def digest(self) -> str:
        """Return 12 hex digits of a hash of pairs and corpora, in their order."""
        digest = hashlib.sha256()
        for column in (self.source, self.target, self.corpus):
            digest.update("\n".join(column).encode())
        return digest.hexdigest()[:12]


Texts = Sequence[ParallelText]
Files = tuple[Path, ...]


def find_text(folder: Path, objective: type[ObjectiveOptions]) -> dict[str, Files]:
    """Find the files of an objective's text in a folder.

    Tuples of files are by language pair. Labelled pairs are by the objective's name. If the
    objective can use text of one language, and the folder has files ``[NAME.]XX.txt`` but none of
    ``SUFFIXES``, they are by language. Errors are of ``find_files`` and ``find_parallel_text``.
    """
    if objective.labelled:
        return {objective.name: find_files(folder, ".tsv")}
    paths = sorted(folder.glob("*"))
    languages = {path: match[1] for path in paths if (match := _LANGUAGE.fullmatch(path.name))}
    has_pairs = any(_split(path)[2] in SUFFIXES for path in paths)
    if has_pairs or not (languages and objective.alone):
        return find_parallel_text(folder)
    return {
        language: tuple(path for path, name in languages.items() if name == language)
        for language in sorted(set(languages.values()))
    }


def find_files(folder: Path, suffix: str) -> Files:
    """Return a folder's files of ``suffix`` (``.tsv`` or ``.tsv.gz``), sorted.

    Raises:
        ValueError: The folder has no such file, or does not exist.
    """
    check_directory(folder)
    matches = tuple(p for p in sorted(folder.iterdir()) if split_compression(p)[0] == suffix)
    if not matches:
        raise ValueError(f"{folder}: contains no {suffix} file, compressed or not; put one there")
    return matches


def find_parallel_text(folder: Path) -> dict[str, Files]:
    """Find the tuple of files of each language pair in a folder, sorted.

    Of two files of lines, ``XX-YY.XX`` and ``XX-YY.YY``, the first is returned, even if alone.

    Raises:
        ValueError: The folder or text is missing, or a file of ``SUFFIXES`` names no pair.
    """
    check_directory(folder)
    files: dict[str, Files] = {}
    for path in sorted(folder.iterdir()):
        _, name, suffix = _split(path)
        if suffix in SUFFIXES and not PAIR.fullmatch(name):
            raise ValueError(
                f"{path}: name lacks a language pair; rename it to XX-YY{suffix}, or move it"
            )
        if suffix in SUFFIXES or f".{name.partition('-')[0]}" == suffix:
            files[name] = (*files.get(name, ()), path)
    if not files:
        raise ValueError(
            f"{folder}: contains no parallel text; expected files XX-YY.tsv, .parquet, .jsonl or "
            ".tmx, or XX-YY.XX with XX-YY.YY"
        )
    return dict(sorted(files.items()))


def read_text(name: str, files: Files, exclude: frozenset[str]) -> ParallelText:
    """Read the text of one name from ``find_text``.

    It is read by ``read_sentences``, ``read_labelled`` or ``read_parallel_text``, which alone skips
    corpora in ``exclude``. Their errors are raised.
    """
    if PAIR.fullmatch(name):
        return read_parallel_text(files, exclude=exclude)
    is_text = _LANGUAGE.fullmatch(files[0].name)
    return (read_sentences if is_text else read_labelled)(name, files)


def read_parallel_text(files: Sequence[Path], *, exclude: frozenset[str]) -> ParallelText:
    """Read the sentence pairs of one language pair.

    Corpora in ``exclude`` are skipped, but pairs with blank sentences are not. Without a column of
    corpora, a file is a corpus, named by its name before the language pair, or else by the pair.

    Raises:
        ValueError: A file is missing or malformed, or no pairs remain.
    """
    rows = [row for file in files for row in _read_pairs(file)]
    pairs = [row for row in rows if row[2] not in exclude]
    if not pairs:
        names_of_files = ", ".join(map(str, files))
        excluding = f"--exclude {','.join(sorted(exclude))} leaves no pair; exclude fewer corpora"
        why = excluding if rows else "no sentence pairs; add some, or move the file"
        raise ValueError(f"{names_of_files}: {why}")
    source, target, corpus = (list(column) for column in zip(*pairs, strict=True))
    excluded = exclude.intersection(row[2] for row in rows)
    name = _split(files[0])[1]
    return ParallelText(name=name, source=source, target=target, corpus=corpus, excluded=excluded)


def _split(path: Path) -> tuple[str, str, str]:
    """Split a file's name into corpus (else pair), language pair and suffix."""
    suffix, compression = split_compression(path)
    corpus, _, name = path.name[: len(path.name) - len(suffix + compression)].rpartition(".")
    return corpus or name, name, suffix


def _read_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    from miner.storage.pair_files import open_pairs  # loads NumPy
    from miner.storage.pair_files.base import BLANK
    from miner.storage.pair_files.moses import open_moses

    corpus, name, suffix = _split(path)
    source, _, target = name.partition("-")
    if suffix not in SUFFIXES:
        ending = "".join(split_compression(path))
        other_ending = ending.replace(suffix, f".{target}")
        pairs = open_moses(path, path.with_name(path.name.removesuffix(ending) + other_ending))
    elif suffix == ".tsv":
        pairs = open_pairs(path, columns=("1", "2"))
    else:
        pairs = open_pairs(path, languages=(source, target))
    widths = set()
    for pair in pairs.read():
        if pair.texts is None or pair.problem not in ("", BLANK):
            raise ValueError(
                f"{pair.place}: {pair.problem or 'has no texts'}; correct or remove it"
            )
        widths.add(width := pair.raw.count("\t") + 1 if pair.raw else 2)
        if len(widths) > 1 or width > 3:
            raise ValueError(
                f"{pair.place}: the number of columns is {width}; expected source, target and "
                "corpus, or source and target, and the same number in each line"
            )
        yield *pair.texts, pair.corpus or corpus


def read_sentences(name: str, files: Files) -> ParallelText:
    """Read the distinct lines of files, each as a pair with itself.

    Blank lines are skipped. The corpus of all pairs is ``name``.

    Raises:
        ValueError: The files have no sentences, are not UTF-8, or cannot be read.
    """
    lines = dict.fromkeys(line for path in files for line in read_lines(path) if line.strip())
    if not lines:
        names_of_files = ", ".join(map(str, files))
        raise ValueError(f"{names_of_files}: contains no sentences; expected one per line")
    return ParallelText(name=name, source=[*lines], target=[*lines], corpus=[name] * len(lines))


def read_successors(name: str, files: Files) -> ParallelText:
    """Read pairs of consecutive lines of documents.

    Files and blank lines end documents. A distinct line is the target of at most one pair, whose
    source is the first different line that it follows directly. Each pair's corpus is ``name``.

    Raises:
        ValueError: No consecutive lines differ, or a file is not UTF-8 or cannot be read.
    """
    pairs: dict[str, str] = {}  # each answer once, because templates recur
    for path in files:
        for before, after in pairwise(read_lines(path)):
            if before.strip() and after.strip() and before != after:
                pairs.setdefault(after, before)
    if not pairs:
        raise ValueError(
            f"{files[0].parent}: no document has two different lines in a row; expected a sentence "
            "per line, in the order of documents"
        )
    source = list(pairs.values())
    return ParallelText(name=name, source=source, target=[*pairs], corpus=[name] * len(pairs))


def read_labelled(name: str, files: Files) -> ParallelText:
    """Read the pairs of ``read_inference``, whose labels become the corpora.

    Raises:
        ValueError: A file or line is malformed, or entailment, neutral or contradiction is missing.
    """
    rows = [row for path in files for row in read_inference(path)]
    labels, first, second = ([row[column] for row in rows] for column in range(3))
    if set(labels) != set(INFERENCE_LABELS):
        raise ValueError(
            f"{files[0].parent}: its labels are {', '.join(sorted(set(labels))) or 'none'}; add "
            f"pairs so that each of {', '.join(INFERENCE_LABELS)} occurs"
        )
    return ParallelText(name=name, source=first, target=second, corpus=labels)


def read_inference(path: Path) -> list[tuple[str, str, str]]:
    """Read the label, premise and hypothesis of each line of a file.

    Without a header of SNLI, MultiNLI or XNLI, columns are in this order. Pairs and errors are as
    in ``parse_labelled``. ValueError also says that the file is not UTF-8 or cannot be read.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    for names in _HEADERS:
        if rows and set(names) <= set(rows[0]):
            columns = [rows[0].index(name) for name in names]
            return parse_labelled(path, columns, enumerate(rows[1:], start=2))
    return parse_labelled(path, range(3), enumerate(rows, start=1))


def parse_labelled(
    path: Path, columns: Sequence[int], rows: Iterable[tuple[int, Sequence[str]]]
) -> list[tuple[str, str, str]]:
    """Return the label, premise and hypothesis of rows of cells, in order.

    ``rows`` are cells with line numbers, ``columns`` the positions of the three, from 0, and
    ``path`` is for errors. Labels become ``entailment``, ``neutral`` or ``contradiction`` (also
    from ``contradictory``). Pairs without an agreed label (``-``) are skipped.

    Raises:
        ValueError: A line has too few columns, or an unknown label.
    """
    labelled_pairs = []
    for number, row in rows:
        if len(row) <= max(columns):
            raise ValueError(
                f"{path}:{number}: the number of columns is {len(row)}; expected a label and two "
                f"sentences in columns {', '.join(str(column + 1) for column in columns)}"
            )
        label, first, second = (row[column] for column in columns)
        label = _LABEL_SPELLINGS.get(label, label)
        if label not in (*INFERENCE_LABELS, "-"):
            expected = ", ".join(INFERENCE_LABELS)
            raise ValueError(f"{path}:{number}: unknown label {label[:40]!r}; expected {expected}")
        if label != "-":
            labelled_pairs.append((label, first, second))
    return labelled_pairs
