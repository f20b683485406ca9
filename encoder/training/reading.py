"""Files of parallel text: TSV compressed with xz, Moses pairs, Parquet.

The last part of a file's name before its suffix is the language pair: ``de-en.tsv.xz``,
``News.de-en.parquet``, and ``News.de-en.de`` beside ``News.de-en.en``, line by line (Moses).
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAIR = re.compile(r"[^-]+-[^-]+")
TSV, PARQUET = ".tsv.xz", ".parquet"
COLUMNS = ({"source", "target"}, {"source_text", "target_text"})  # the second: mine-corpus writes


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
        return ParallelText(
            name=self.name,
            source=[self.source[row] for row in rows],
            target=[self.target[row] for row in rows],
            corpus=[self.corpus[row] for row in rows],
        )

    def corpus_sizes(self) -> dict[str, int]:
        """Count pairs by corpus, largest first."""
        return dict(Counter(self.corpus).most_common())

    def digest(self) -> str:
        """Return the first digits of a hash of all pairs in their order."""
        digest = hashlib.sha256()
        for column in (self.source, self.target, self.corpus):
            digest.update("\n".join(column).encode())
        return digest.hexdigest()[:12]


Texts = Sequence[ParallelText]


def find_parallel_text(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Find the files of each language pair in a folder; of a Moses pair, the source side.

    Raises:
        ValueError: there is no such folder, no parallel text in it, or a file whose name has no
            language pair.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    found: dict[str, tuple[Path, ...]] = {}
    for path in sorted(folder.iterdir()):
        _, name, suffix = _parts(path)
        if suffix in (TSV, PARQUET) and not PAIR.fullmatch(name):
            raise ValueError(
                f"{path}: its name has no language pair; name it XX-YY{suffix} or move it away"
            )
        if suffix in (TSV, PARQUET) or name.partition("-")[0] == suffix.removeprefix("."):
            found[name] = (*found.get(name, ()), path)
    if not found:
        raise ValueError(
            f"{folder}: no parallel text there; files are named XX-YY{TSV}, XX-YY{PARQUET}, or "
            "XX-YY.XX beside XX-YY.YY"
        )
    return dict(sorted(found.items()))


def read_parallel_text(files: Sequence[Path], *, exclude: frozenset[str]) -> ParallelText:
    """Read the files of one language pair; leave the corpora ``exclude`` out.

    Where a file does not name a pair's corpus, it is what stands before the language pair in the
    file's name, or else the language pair.

    Raises:
        ValueError: a file is missing, damaged or not of its form, or nothing is left.
    """
    pairs, excluded = [], set()
    for file in files:
        for pair in _read(file):
            if pair[2] in exclude:
                excluded.add(pair[2])
            else:
                pairs.append(pair)
    if not pairs:
        places = ", ".join(map(str, files))
        without = f" after excluding {', '.join(sorted(exclude))}" if exclude else ""
        raise ValueError(f"{places}: no sentence pairs left{without}")
    source, target, corpora = (list(column) for column in zip(*pairs, strict=True))
    name = _parts(files[0])[1]
    return ParallelText(
        name=name, source=source, target=target, corpus=corpora, excluded=frozenset(excluded)
    )


def _parts(path: Path) -> tuple[str, str, str]:
    """Split a file's name into corpus, language pair and suffix."""
    suffix = TSV if path.name.endswith(TSV) else path.suffix
    corpus, _, name = path.name.removesuffix(suffix).rpartition(".")
    return corpus or name, name, suffix


def _read(path: Path) -> Iterable[tuple[str, str, str]]:
    suffix = _parts(path)[2]
    return {TSV: _read_tsv, PARQUET: _read_parquet}.get(suffix, _read_moses)(path)


def _read_tsv(path: Path) -> Iterable[tuple[str, str, str]]:
    """Read source, TAB, target, TAB, corpus."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise ValueError(
                f"{path}:{number}: {len(columns)} columns; expected source, target and corpus"
            )
        yield columns[0], columns[1], columns[2]


def _read_moses(path: Path) -> Iterable[tuple[str, str, str]]:
    corpus, name, _ = _parts(path)
    other = path.with_suffix("." + name.partition("-")[2])
    sides = [read_lines(path), read_lines(other)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{path}: has {len(sides[0]):,} lines, and {other.name} {len(sides[1]):,}; "
            "line by line, they must be translations"
        )
    return ((source, target, corpus) for source, target in zip(*sides, strict=True))


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file that may be compressed (``.xz``).

    Raises:
        ValueError: it is missing, or no such text.
    """
    if not path.is_file():
        raise ValueError(f"{path}: is missing")
    return lines_of(path.read_bytes(), str(path))


def lines_of(data: bytes, name: str) -> list[str]:
    r"""Return the lines of a UTF-8 file, without a byte order mark, line ends or a CR before them.

    One whose name ends in ``.xz`` is decompressed.

    Only ``\n`` ends a line: U+2028, U+0085 and their like occur inside sentences. An end of line
    at the end of the file opens no further line.

    Raises:
        ValueError: the file is not UTF-8, or ``.xz`` and no such file or cut short.
    """
    if name.endswith(".xz"):
        try:
            data = lzma.decompress(data)
        except lzma.LZMAError as error:
            raise ValueError(f"{name}: not compressed with xz, or cut short ({error})") from error
    try:
        *lines, last = data.decode().removeprefix("\ufeff").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name} line {line}: not UTF-8 ({error.reason})") from error
    return [line.removesuffix("\r") for line in (*lines, *filter(None, [last]))]


def _read_parquet(path: Path) -> Iterable[tuple[str, str, str]]:
    """Read columns source and target (or source_text, target_text), and corpus if there is one."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: is no Parquet file, or damaged ({reason})") from error
    there = set(table.column_names)
    wanted = next((names for names in COLUMNS if names <= there), None)
    if wanted is None:
        raise ValueError(
            f"{path}: has the columns {', '.join(table.column_names)}; expected source and target"
        )
    names = [*sorted(wanted), *({"corpus"} & there)]
    columns = [table.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise ValueError(f"{path}: column {name} is of type {column.type}; expected string")
        if column.null_count:
            raise ValueError(f"{path}: column {name} has {column.null_count} empty cells (null)")
    texts = [column.to_pylist() for column in columns]
    return zip(*texts, *([[_parts(path)[0]] * len(table)] if len(texts) == 2 else []), strict=True)
